"""Child processes: what they may not do, and that nothing of them stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from krm.functions.external.child_process import CannotStart, Finished, Limits, run_child

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def _run(script: str, stdin: bytes = b"", limits: Limits = Limits()) -> Finished:  # noqa: B008 - immutable
    return run_child(["sh", "-c", script], stdin, environment=ENVIRONMENT, limits=limits)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not _is_alive(pid)


def _is_noted(note: Path) -> bool:
    return note.exists() and note.read_text().endswith("\n")


def test_output_error_output_and_exit_code_come_back() -> None:
    assert _run("cat; echo note >&2; exit 7", b"in") == Finished(7, b"in", b"note\n")


def test_more_than_a_pipe_holds_goes_both_ways() -> None:
    data = os.urandom(1 << 20)

    assert _run("cat", data).stdout == data


def test_child_that_does_not_read_its_input_is_no_failure() -> None:
    assert _run("echo done", b"x" * (1 << 20)) == Finished(0, b"done\n", b"")


def test_child_that_closes_its_output_is_waited_for() -> None:
    assert _run("exec >&- 2>&-; sleep 0.2; exit 5").exit_code == 5


def test_signal_counts_as_the_shell_counts_it() -> None:
    assert _run("kill -TERM $$").exit_code == 128 + signal.SIGTERM


@pytest.mark.parametrize("script", ["while :; do :; done", "sleep 60", "trap '' TERM INT; sleep 60"])
def test_time_limit_ends_whatever_it_does(script: str) -> None:
    started = time.monotonic()

    finished = _run(script, limits=Limits(seconds=0.3))

    assert finished.problem == "ran longer than 0.3 seconds and was stopped"
    assert finished.exit_code == 128 + signal.SIGKILL
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(("stream", "title"), [("1", "output"), ("2", "error output")])
def test_flood_is_stopped_at_its_limit(stream: str, title: str) -> None:
    finished = _run(f"yes >&{stream}", limits=Limits(stdout_bytes=10_000, stderr_bytes=10_000))

    assert finished.problem == f"wrote more than 10000 bytes of {title} and was stopped"
    assert len(finished.stdout) + len(finished.stderr) == 10_000


def test_what_it_started_is_killed_with_it() -> None:
    finished = _run("sleep 60 & echo $!; sleep 60", limits=Limits(seconds=3))

    assert _gone_within(int(finished.stdout), 30)


def test_what_it_left_behind_is_killed_and_not_waited_for() -> None:
    started = time.monotonic()

    finished = _run("sleep 60 & echo $!")

    assert (finished.exit_code, finished.problem) == (0, "")
    assert time.monotonic() - started < 30
    assert _gone_within(int(finished.stdout), 30)


def test_interrupted_caller_leaves_nothing_running(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def interrupt() -> None:
        while not _is_noted(note):
            time.sleep(0.01)
        time.sleep(1)  # the child runs before the call that started it has returned
        signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt, daemon=True)
    interrupting.start()

    with pytest.raises(KeyboardInterrupt):
        _run(f"echo $$ > {note}; sleep 60")

    interrupting.join()
    assert _gone_within(int(note.read_text()), 30)


def test_killed_caller_leaves_nothing_running_and_its_cleaning_up_is_done(tmp_path: Path) -> None:
    note, cleaned = tmp_path / "pid", tmp_path / "cleaned"
    program = (
        "from krm.functions.external.child_process import run_child\n"
        f"run_child(['sh', '-c', 'sleep 60 & echo $! > {note}; sleep 60'], b'', environment={ENVIRONMENT!r},"
        f" when_abandoned=['touch', {str(cleaned)!r}])\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not _is_noted(note) and time.monotonic() < deadline:
        time.sleep(0.02)

    caller.kill()
    caller.wait()

    assert _gone_within(int(note.read_text()), 30)
    while not cleaned.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert cleaned.exists()


def test_child_that_ended_is_not_cleaned_up_after(tmp_path: Path) -> None:
    run_child(["true"], b"", environment=ENVIRONMENT, when_abandoned=["touch", str(tmp_path / "cleaned")])

    time.sleep(0.2)
    assert not (tmp_path / "cleaned").exists()


def test_child_sees_the_environment_it_is_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "x")

    finished = run_child([sys.executable, "-c", "import os; print(sorted(os.environ))"], b"", environment={"A": "1"})

    assert b"SECRET" not in finished.stdout
    assert b"'A'" in finished.stdout


@pytest.mark.parametrize("program", ["no-such-program", "/", "nul\0byte"])
def test_program_that_is_none_is_named(program: str) -> None:
    with pytest.raises(CannotStart, match="cannot start"):
        run_child([program], b"", environment=ENVIRONMENT)

"""The limits of scripts, enforced on the real child process."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cost import metered
from starlark_runs import CONFIG_MAP, IMAGE, resources, starlark_run

from krm.functions.catalog.starlark import worker_process
from krm.functions.catalog.starlark.function import run_script
from krm.functions.catalog.starlark.worker_process import Limits, WorkerDied, WorkerProcess
from krm.functions.runner import ResourceList

LATEST = (0, 5, 5)
FOREVER = "for _ in range(2147483647):\n  for _ in range(2147483647): pass"


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess(Limits(seconds=30.0, memory=256 << 20))
    yield worker
    worker.close()


@pytest.fixture
def impatient_worker() -> Iterator[WorkerProcess]:
    worker = WorkerProcess(Limits(seconds=1.0, memory=256 << 20))
    yield worker
    worker.close()


def _run(worker: WorkerProcess, source: str) -> tuple[int, str]:
    """The exit code, and the error or what was printed."""
    given = ResourceList(resources(CONFIG_MAP), starlark_run(source))
    result = run_script(worker, given, LATEST)
    return result.exit_code, result.results[0]["message"] if result.results else result.stderr


def _pid(worker: WorkerProcess) -> int:
    assert worker._process is not None
    return worker._process.pid


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_until_gone(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while _is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not _is_alive(pid)


def test_one_process_serves_many_scripts(worker: WorkerProcess) -> None:
    assert _run(worker, "print(1)") == (0, "1")
    first = _pid(worker)

    assert _run(worker, "fail(2)") == (1, "fail: 2")
    assert _pid(worker) == first


@pytest.mark.parametrize(
    "source", [FOREVER, "while True: pass", "def f(n):\n  for _ in range(2):\n    if n: f(n - 1)\nf(99)"]
)
def test_an_endless_script_fails_at_the_time_limit_and_the_next_one_runs(
    impatient_worker: WorkerProcess, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_GRACE", 100.0)  # it ends itself, and is not killed for being late
    _run(impatient_worker, "pass")
    began = time.monotonic()

    assert _run(impatient_worker, source) == (1, "the script ran for more than 1 seconds")
    assert time.monotonic() - began < 50
    assert _run(impatient_worker, "print(1)") == (0, "1")


@pytest.mark.parametrize(
    "source",
    [
        'x = "x"\nwhile True: x += x',
        "x = []\nwhile True: x.append(x + [1])",
        "x = [0]\nfor _ in range(40): x += x",
        'x = "x" * (1 << 30)',
        "x = list(range(1 << 30))",
    ],
)
def test_a_script_that_takes_too_much_memory_fails_and_the_next_one_runs(worker: WorkerProcess, source: str) -> None:
    code, message = _run(worker, source)

    assert code == 1
    assert "memory" in message or message.startswith("script:")
    assert _run(worker, "print(1)") == (0, "1")


def test_the_kernel_enforces_the_limit_of_memory(worker: WorkerProcess) -> None:
    _run(worker, "pass")
    limits = Path(f"/proc/{_pid(worker)}/limits").read_text()

    assert next(line for line in limits.splitlines() if line.startswith("Max address space")).split()[3:5] == [
        str(256 << 20),
        str(256 << 20),
    ]


def test_recursion_without_end_is_an_error(worker: WorkerProcess) -> None:
    assert _run(worker, "def f(n): return f(n + 1)\nf(0)") == (1, "script:1:18: Starlark call stack overflow")


def test_a_script_nested_too_deeply_fails_and_the_next_one_runs(worker: WorkerProcess) -> None:
    code, _ = _run(worker, "x = " + "[" * 500_000 + "]" * 500_000)

    assert code == 1
    assert _run(worker, "print(1)") == (0, "1")


def test_a_worker_that_was_killed_is_replaced(worker: WorkerProcess) -> None:
    _run(worker, "pass")
    first = _pid(worker)
    os.kill(first, signal.SIGKILL)
    assert _wait_until_gone(first, 60)

    assert _run(worker, "print(1)") == (0, "1")
    assert _pid(worker) != first


def test_a_worker_killed_in_the_middle_fails_that_script_only(worker: WorkerProcess) -> None:
    _run(worker, "pass")
    killer = threading.Timer(0.2, os.kill, (_pid(worker), signal.SIGKILL))
    killer.start()

    with pytest.raises(WorkerDied):
        worker.evaluate({"program": "p", "source": FOREVER, "numbers": []}, "{}")
    assert _run(worker, "print(1)") == (0, "1")


def test_threads_share_a_worker_and_get_their_own_answers(worker: WorkerProcess) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: _run(worker, f"print({number})"), range(100)))

    assert answers == [(0, str(number)) for number in range(100)]


def test_a_closed_worker_ends_and_starts_again_when_needed() -> None:
    worker = WorkerProcess()
    _run(worker, "pass")
    first = _pid(worker)

    worker.close()
    assert not _is_alive(first)
    assert _run(worker, "print(1)") == (0, "1")
    worker.close()


@pytest.mark.parametrize("program", ["/bin/false", "/bin/echo", "/nonexistent"])
def test_an_interpreter_that_does_not_start_is_told_from_a_script_that_fails(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    code, message = _run(worker, "print(1)")

    assert code == 1
    assert message.startswith("the interpreter for scripts does not start: ")


def test_a_forked_process_starts_its_own_worker() -> None:
    code = (
        "import os, sys\n"
        "from krm.functions.builtins import BuiltinRunner\n"
        "from krm.functions.runner import FunctionConfig, ResourceList\n"
        "data = {'apiVersion': 'fn.kpt.dev/v1alpha1', 'kind': 'StarlarkRun', 'source': 'print(1)'}\n"
        f"run = lambda: BuiltinRunner().run({IMAGE!r}, ResourceList([], FunctionConfig(data, typed=data))).stderr\n"
        "assert run() == '1'\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(7 if run() == '1' else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert run() == '1'\n"
    )

    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("source", ["pass", FOREVER])
def test_no_worker_survives_a_server_that_was_killed(source: str) -> None:
    code = (
        "import sys, threading, time\n"
        "from krm.functions.catalog.starlark.worker_process import Limits, WorkerProcess\n"
        "worker = WorkerProcess(Limits(seconds=5.0))\n"
        "worker.evaluate({'program': 'p', 'source': 'pass', 'numbers': []}, '{}')\n"
        "about = {'program': 'p', 'source': sys.argv[1], 'numbers': []}\n"
        "threading.Thread(target=worker.evaluate, args=(about, '{}'), daemon=True).start()\n"
        "time.sleep(0.2)\n"
        "print(worker._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, source], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        assert _is_alive(pid)
        server.kill()

    assert _wait_until_gone(pid, 60)


def test_the_worker_sees_no_environment_and_none_of_our_files(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STARLARK_CANARY", "secret")
    inherited = (tmp_path / "secret").open("w")
    os.set_inheritable(inherited.fileno(), True)
    _run(worker, "pass")

    seen = Path(f"/proc/{_pid(worker)}/environ").read_bytes()
    files = {str(entry.readlink()) for entry in Path(f"/proc/{_pid(worker)}/fd").iterdir()}

    inherited.close()
    assert b"STARLARK_CANARY" not in seen
    assert str(tmp_path / "secret") not in files


def test_the_time_for_a_package_is_linear_in_its_resources(worker: WorkerProcess) -> None:
    text = CONFIG_MAP + "".join(f"k{number}: [a, {number}]\n" for number in range(50))
    config = starlark_run("pass")

    def seconds(count: int) -> float:
        given = resources(*[text] * count)
        before = _processor_seconds(_pid(worker))
        with metered() as cost:
            assert run_script(worker, ResourceList(given, config), LATEST).items == given
        return cost.seconds + _processor_seconds(_pid(worker)) - before

    _run(worker, "pass")
    assert min(seconds(800), seconds(800)) < 10 * min(seconds(200), seconds(200)) + 0.5


def _processor_seconds(pid: int) -> float:
    """What a process has cost until now."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_the_memory_of_whoever_starts_a_worker_does_not_count_as_its_own(tmp_path: Path) -> None:
    program = tmp_path / "large.py"
    program.write_text(
        "ballast = b'x' * (200 << 20)\n"
        "from krm.functions.catalog.starlark.worker_process import Limits, WorkerProcess\n"
        "worker = WorkerProcess(Limits(memory=256 << 20))\n"
        "answer = worker.evaluate({'program': 'p', 'source': 'pass', 'numbers': []}, '{}')\n"
        "worker.close()\n"
        "print(answer.last)\n"
    )

    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=100)

    assert (done.stdout, done.stderr) == ("False\n", "")

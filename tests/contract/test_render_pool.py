"""The pool of render workers, with real child processes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apiserver.engine.function_options import FunctionOptions
from apiserver.engine.render_pool import RenderPool
from apiserver.engine.rendering import RendererByWork, is_quick
from krm.functions.pipeline import Rendered, render
from krm.meta.errors import TooManyRequests
from krm.package.contents import EXECUTABLE, File

LABELS = b"""apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: pkg
pipeline:
  mutators:
    - image: set-labels:v0.2.0
      configMap:
        team: blue
"""
LOOPS = b"""apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: pkg
pipeline:
  mutators:
    - image: starlark:v0.5.0
      configMap:
        source: |
          while True:
              pass
"""


def package(kptfile: bytes = LABELS, *, resources: int = 1) -> dict[str, File]:
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-{}\n  labels:\n    of: cm-{}\ndata:\n  key: value\n"
    files = {f"cm-{number}.yaml": File(one.format(number, number).encode()) for number in range(resources)}
    return {"Kptfile": File(kptfile), "run.sh": File(b"#!/bin/sh\n", EXECUTABLE), "logo.png": File(b"\x89\0"), **files}


LARGE = package(resources=1500)
"""Takes a second or so."""


@asynccontextmanager
async def pool(*, size: int = 1, waiting: int = 8, seconds: float = 60.0) -> AsyncIterator[RenderPool]:
    made = RenderPool(FunctionOptions(), size=size, waiting=waiting, seconds=seconds)
    try:
        yield made
    finally:
        await made.close()


def outcome(rendered: Rendered) -> tuple[object, ...]:
    return rendered.contents, rendered.results, rendered.status, rendered.error, rendered.failed


async def until(check: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not check():
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_worker_renders_what_this_process_would_render() -> None:
    given = package()
    async with pool() as workers:
        rendered = await workers.render(given)

    assert outcome(rendered) == outcome(render(given, FunctionOptions().runner()))
    assert b"team: blue" in rendered.contents["cm-0.yaml"].data
    assert rendered.contents["run.sh"] is given["run.sh"]


async def test_a_failed_pipeline_is_an_outcome_like_any_other() -> None:
    given = package(LABELS.replace(b"set-labels", b"no-such-function"))
    async with pool() as workers:
        rendered = await workers.render(given)
        assert not (await workers.render(package())).failed

    assert outcome(rendered) == outcome(render(given, FunctionOptions().runner()))
    assert "no-such-function" in rendered.error


async def test_files_that_functions_remove_are_removed() -> None:
    script = b"""
    - image: starlark:v0.5.0
      configMap:
        source: |
          ctx.resource_list["items"] = [r for r in ctx.resource_list["items"] if r["kind"] == "Kptfile"]
"""
    async with pool() as workers:
        rendered = await workers.render(package(LABELS + script.lstrip(b"\n"), resources=3))

    assert rendered.error == ""
    assert sorted(rendered.contents) == ["Kptfile", "logo.png", "run.sh"]


async def test_one_worker_serves_many_renders() -> None:
    async with pool() as workers:
        await workers.render(package())
        first = workers.pids
        await asyncio.gather(*(workers.render(package()) for _ in range(5)))

        assert workers.pids == first


async def test_no_more_workers_run_than_allowed() -> None:
    async with pool(size=2) as workers:
        await asyncio.gather(*(workers.render(package(resources=50)) for _ in range(6)))

        assert len(workers.pids) == 2


async def test_an_idle_worker_that_was_killed_is_replaced() -> None:
    async with pool() as workers:
        await workers.render(package())
        [pid] = workers.pids
        os.kill(pid, signal.SIGKILL)

        assert not (await workers.render(package())).failed
        assert workers.pids != [pid]


async def test_a_render_whose_worker_is_killed_is_tried_again() -> None:
    async with pool() as workers:
        rendering = asyncio.create_task(workers.render(LARGE))
        await until(lambda: workers.pids)
        [pid] = workers.pids
        await asyncio.sleep(0.3)
        assert not rendering.done()
        os.kill(pid, signal.SIGKILL)

        assert not (await rendering).failed
        assert workers.pids != [pid]


async def test_a_render_that_kills_every_worker_fails_and_says_what_to_do() -> None:
    async with pool() as workers:
        rendering = asyncio.create_task(workers.render(LARGE))
        killed: set[int] = set()
        while not rendering.done():
            for pid in set(workers.pids) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            await asyncio.sleep(0.002)
        rendered = await rendering

        assert rendered.failed
        assert rendered.contents == LARGE
        assert "two workers ended while rendering it (SIGKILL)" in rendered.error
        assert len(killed) == 2
        assert not (await workers.render(package())).failed


async def test_a_render_that_takes_too_long_ends_with_its_worker() -> None:
    async with pool(seconds=2) as workers:
        await workers.render(package())
        [pid] = workers.pids
        rendered = await workers.render(package(LOOPS))

        assert rendered.failed
        assert "took longer than 2 s" in rendered.error
        assert not is_running(pid)
        assert not (await workers.render(package())).failed


async def test_a_cancelled_render_ends_its_worker_and_frees_its_place() -> None:
    async with pool() as workers:
        rendering = asyncio.create_task(workers.render(LARGE))
        await until(lambda: workers.pids)
        [pid] = workers.pids
        rendering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rendering

        assert not is_running(pid)
        assert not (await workers.render(package())).failed


async def test_too_many_waiting_renders_are_refused() -> None:
    async with pool(waiting=2) as workers:
        renders = [asyncio.create_task(workers.render(LARGE)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests) as refusal:
            await workers.render(package())

        assert refusal.value.retry_after > 0
        assert not any(rendered.failed for rendered in await asyncio.gather(*renders))


async def test_closing_ends_the_workers_and_what_they_are_doing() -> None:
    async with pool() as workers:
        rendering = asyncio.create_task(workers.render(LARGE))
        await until(lambda: workers.pids)
        [pid] = workers.pids
        await workers.close()

        assert (await rendering).failed
        assert not is_running(pid)


def test_workers_end_with_a_server_that_is_killed_amid_a_render(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(
        "import asyncio, sys\n"
        "from apiserver.engine.render_pool import RenderPool\n"
        "from apiserver.engine.function_options import FunctionOptions\n"
        "from krm.package.contents import File\n"
        f"LOOPS = {LOOPS!r}\n"
        "async def main():\n"
        "    pool = RenderPool(FunctionOptions(), size=1, waiting=1, seconds=60)\n"
        "    asyncio.create_task(pool.render({'Kptfile': File(LOOPS)}))\n"
        "    while not pool.pids:\n"
        "        await asyncio.sleep(0.01)\n"
        "    print(pool.pids[0], flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        time.sleep(0.5)
        assert is_running(pid)
        server.kill()
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert not is_running(pid)


async def test_what_takes_milliseconds_stays_in_this_process() -> None:
    class Noting:
        def __init__(self) -> None:
            self.seen: list[int] = []

        async def render(self, contents: dict[str, File]) -> Rendered:
            self.seen.append(len(contents))
            return Rendered(contents, {})

    quick, slow = Noting(), Noting()
    renderer = RendererByWork(quick, slow)  # type: ignore[arg-type] # narrower contents than the port's
    await renderer.render(package())
    await renderer.render(LARGE)

    assert quick.seen == [4]
    assert slow.seen == [1503]


@pytest.mark.parametrize(
    ("kptfile", "resources", "expected"),
    [
        pytest.param(b"kind: Kptfile\n", 500, True, id="large-but-without-functions"),
        pytest.param(LABELS, 500, False, id="large"),
        pytest.param(LABELS, 1, True, id="built-in"),
        pytest.param(LABELS.replace(b"set-labels:v0.2.0", b"no-op"), 1, True, id="no-tag"),
        pytest.param(LOOPS, 1, False, id="script"),
        pytest.param(LOOPS.replace(b"starlark:v0.5.0", b'"st\\x61rlark"'), 1, False, id="script-in-disguise"),
        pytest.param(LABELS.replace(b"set-labels", b"example.com/lint"), 1, False, id="other-registry"),
        pytest.param(LABELS.replace(b"set-labels", b"no-such-function"), 1, False, id="unknown"),
        pytest.param(LABELS.replace(b"image:", b"exec:"), 1, True, id="command"),
        pytest.param(b"pipeline: [", 1, True, id="not-yaml"),
    ],
)
def test_a_package_is_quick_if_it_is_small_and_runs_no_foreign_code(
    kptfile: bytes, resources: int, expected: bool
) -> None:
    assert is_quick(package(kptfile, resources=resources)) is expected


def test_the_pipeline_of_a_subpackage_counts() -> None:
    assert not is_quick({**package(), "sub/Kptfile": File(LOOPS)})

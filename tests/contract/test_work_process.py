"""Merges and clones of large packages: in processes of their own, which end in any case."""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cost import metered

from apiserver.engine import work_process
from apiserver.engine.package_work import CloneWork, MergeWork
from apiserver.engine.work_process import WorkProcesses
from krm.meta.errors import InternalError, TooManyRequests
from krm.package.contents import File

KPTFILE = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n")
SECTION = {"type": "git", "git": {"repo": "https://git.example/up.git", "directory": "p", "ref": "p/v2"}}
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: {a}\n  b: {b}\n"


def package(a: int, b: int, size: int, resources: int = 1) -> dict[str, File]:
    files = {f"settings{n}.yaml": File(SETTINGS.format(a=a, b=b).encode()) for n in range(resources)}
    return {"Kptfile": KPTFILE, "blob.txt": File(b"x" * size), **files}


def merge(size: int = 100_000, resources: int = 1) -> MergeWork:
    old, new, local = (package(a, b, size, resources) for a, b in ((1, 1), (2, 1), (1, 2)))
    return MergeWork("p", "resource-merge", old, new, local, SECTION, SECTION, deployment=False)


def children() -> set[int]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    found: set[int] = set()
    for task in tasks.iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread ended meanwhile
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


async def test_large_work_gives_in_a_process_what_it_gives_here() -> None:
    work = merge()
    clone = CloneWork(work.old, "mine", SECTION, SECTION, "nets/mine")

    assert await WorkProcesses().do(work) == work.run()
    assert await WorkProcesses().do(clone) == clone.run()
    assert work.run().contents["settings0.yaml"].data.endswith(b"data:\n  a: 2\n  b: 2\n")


async def test_what_is_wrong_with_large_packages_comes_back_as_a_sentence() -> None:
    work = replace(merge(), local={**merge().local, "Kptfile": File(b"kind: [")})

    made = await WorkProcesses().do(work)

    assert made == work.run()
    assert "Kptfile" in made.problem


async def test_a_merge_that_takes_too_long_ends_with_its_process() -> None:
    before = children()

    made = await WorkProcesses(seconds=1).do(merge(resources=9000))

    assert made.contents == {}
    assert made.problem == "it took longer than 1 s; make the packages smaller"
    assert children() <= before


async def test_a_cancelled_merge_ends_its_process_and_frees_its_place() -> None:
    before = children()
    processes = WorkProcesses(at_once=1)
    task = asyncio.create_task(processes.do(merge(resources=9000)))
    async with asyncio.timeout(60):
        while children() <= before:
            await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert children() <= before
    assert (await processes.do(merge())).problem == ""


async def test_a_process_that_is_killed_is_told() -> None:
    before = children()
    task = asyncio.create_task(WorkProcesses().do(merge(resources=9000)))
    async with asyncio.timeout(60):
        while children() <= before:
            await asyncio.sleep(0.01)
    (child,) = children() - before
    os.kill(child, 9)

    assert (await task).problem == "it took more memory or time than there is; make the packages smaller"


async def test_what_waits_too_long_for_its_turn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = WorkProcesses(seconds=2, at_once=1)
    first = asyncio.create_task(processes.do(merge(resources=9000)))
    await asyncio.sleep(0)
    monkeypatch.setattr(work_process, "MOST_WAITING", 1)
    second = asyncio.create_task(processes.do(merge(resources=9000)))
    await asyncio.sleep(0)

    with pytest.raises(TooManyRequests):
        await processes.do(merge())

    await asyncio.gather(first, second, return_exceptions=True)


async def test_the_event_loop_goes_on_while_a_large_merge_runs() -> None:
    longest = 0.0
    task = asyncio.create_task(WorkProcesses(seconds=5).do(merge(size=10_000_000, resources=3000)))
    while not task.done():
        with metered() as cost:  # what the loop itself works on: other processes are not its doing
            await asyncio.sleep(0.005)
        longest = max(longest, cost.seconds)

    assert longest < 0.5


async def test_a_defect_is_no_fault_of_the_client(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InternalError):
        await WorkProcesses().do(replace(merge(), strategy=["no", "text"]))  # type: ignore[arg-type]

    assert "Traceback" in capfd.readouterr().err

"""Workers keep the contract of controller-runtime: one key once at a time, failures later, an orderly stop."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Self

import pytest
import structlog
from prometheus_client import CollectorRegistry

from controllers.runtime.controller import Controller, Result, Terminal
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.workqueue import Key, WorkQueue
from krm.client.client import Unanswered, WriteRefused
from krm.meta.errors import Conflict

A, B = ("default", "a"), ("default", "b")


class Running:
    """A controller that runs; what it reconciled is in ``seen``."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[Result]], **options: float) -> None:
        self.metrics = ControllerMetrics(CollectorRegistry())
        self.queue: WorkQueue = self.metrics.queue("test")
        self.seen: list[Key] = []
        self._reconcile = reconcile
        self.controller = Controller("test", self._look, self.queue, 4, self.metrics, **options)
        self._task: asyncio.Task[None] | None = None

    async def _look(self, key: Key) -> Result:
        self.seen.append(key)
        return await self._reconcile(key)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.controller.run())
        await asyncio.sleep(0)
        return self

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def counted(self, result: str) -> float:
        labels = {"controller": "test", "result": result}
        return self.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0


@pytest.fixture
async def every_error_is_taken() -> AsyncIterator[None]:
    """By the end of the test asyncio has no error to tell that nobody asked for."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    yield
    gc.collect()
    assert told == []


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.002)


async def done(_: Key) -> Result:
    return Result()


def failing(error: Exception, times: int) -> Callable[[Key], Awaitable[Result]]:
    left = [times]

    async def reconcile(_: Key) -> Result:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return Result()

    return reconcile


async def test_what_succeeded_does_not_come_again() -> None:
    async with Running(done) as running:
        running.queue.add(A)
        running.queue.add(B)
        await until(lambda: len(running.seen) == 2)
        await asyncio.sleep(0.02)

    assert sorted(running.seen) == [A, B]
    assert running.counted("success") == 2


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), Conflict("other"), Unanswered("?"), WriteRefused("no lease"), TimeoutError()],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_of_any_kind_comes_again_until_it_succeeds(error: Exception) -> None:
    async with Running(failing(error, 2)) as running:
        running.queue.add(A)
        await until(lambda: running.counted("success") == 1)

    assert running.seen == [A, A, A]
    assert running.counted("error") == 2
    assert running.queue.retries == 2


async def test_a_terminal_error_does_not_come_again_by_itself() -> None:
    async with Running(failing(Terminal("nonsense"), 1)) as running:
        running.queue.add(A)
        await until(lambda: running.counted("terminal_error") == 1)
        await asyncio.sleep(0.03)
        assert running.seen == [A]
        running.queue.add(A)
        await until(lambda: running.counted("success") == 1)


async def test_a_result_may_ask_for_another_look_later() -> None:
    async def later(key: Key) -> Result:
        return Result(requeue_after=0.02) if running.seen.count(key) == 1 else Result()

    async with Running(later) as running:
        running.queue.add(A)
        await until(lambda: running.counted("success") == 1)

    assert running.counted("requeue_after") == 1
    assert running.queue.retries == 0


async def test_an_expected_failure_backs_off_up_to_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    async def expected(_: Key) -> Result:
        return Result(back_off=0.01)

    async with Running(expected) as running:
        monkeypatch.setattr(running.queue._retried, "set", lambda _key, seconds, _: delays.append(seconds))
        for times in range(1, 4):
            running.queue.add(A)
            await until(lambda times=times: running.counted("requeue") == times)  # type: ignore[misc]

    assert delays == [0.005, 0.01, 0.01]


async def test_one_key_is_never_reconciled_twice_at_once() -> None:
    inside: set[Key] = set()

    async def alone(key: Key) -> Result:
        assert key not in inside
        inside.add(key)
        await asyncio.sleep(0.01)
        inside.remove(key)
        return Result()

    async with Running(alone) as running:
        for _ in range(10):
            running.queue.add(A)
            running.queue.add(B)
            await asyncio.sleep(0.005)
        await until(lambda: running.counted("success") == len(running.seen))

    assert running.counted("error") == 0
    assert running.seen.count(A) > 1


async def test_a_reconcile_that_hangs_is_ended_by_its_deadline_and_the_others_go_on() -> None:
    async def hangs(key: Key) -> Result:
        if key == A and running.seen.count(A) == 1:
            await asyncio.sleep(3600)
        return Result()

    async with Running(hangs, deadline=0.05) as running:
        running.queue.add(A)
        running.queue.add(B)
        await until(lambda: running.counted("success") == 2)

    assert running.counted("error") == 1


async def test_a_stop_lets_what_runs_finish_and_begins_nothing() -> None:
    finished: list[Key] = []

    async def slow(key: Key) -> Result:
        await asyncio.sleep(0.1)
        finished.append(key)
        return Result(requeue_after=0.001)

    async with Running(slow) as running:
        keys = [("default", f"k{number}") for number in range(10)]
        for key in keys:
            running.queue.add(key)
        await until(lambda: len(running.seen) == 4)

    assert finished == keys[:4]
    assert running.seen == keys[:4]


async def test_a_stop_cuts_short_what_does_not_finish_within_the_grace() -> None:
    async def hangs(_: Key) -> Result:
        await asyncio.sleep(3600)
        return Result()

    async with Running(hangs, grace=0.05) as running:
        running.queue.add(A)
        await until(lambda: running.seen == [A])
        async with asyncio.timeout(60):
            await running.stop()

    assert running.counted("success") == 0


class Broken(BaseException):
    """No ``except Exception`` takes it for a failure of a key."""


@pytest.mark.usefixtures("every_error_is_taken")
async def test_what_breaks_several_workers_at_once_is_all_raised() -> None:
    async def breaks(_: Key) -> Result:
        raise Broken

    metrics = ControllerMetrics(CollectorRegistry())
    queue = metrics.queue("test")
    queue.add(A)
    queue.add(B)

    with pytest.raises(BaseExceptionGroup) as raised:
        await Controller("test", breaks, queue, 4, metrics).run()

    assert [type(error) for error in raised.value.exceptions] == [Broken, Broken]


async def test_a_worker_that_is_cancelled_from_inside_ends_the_controller_as_cancelled() -> None:
    async def gives_up(_: Key) -> Result:
        raise asyncio.CancelledError

    metrics = ControllerMetrics(CollectorRegistry())
    queue = metrics.queue("test")
    queue.add(A)

    with pytest.raises(asyncio.CancelledError):
        await Controller("test", gives_up, queue, 4, metrics).run()


@pytest.mark.usefixtures("every_error_is_taken")
async def test_what_breaks_a_worker_while_all_stop_is_logged() -> None:
    async def breaks_late(_: Key) -> Result:
        await asyncio.sleep(0.02)
        raise Broken

    with structlog.testing.capture_logs() as lines:
        async with Running(breaks_late) as running:
            running.queue.add(A)
            await until(lambda: running.seen == [A])

    assert [line["error"] for line in lines if line["event"] == "a worker broke"] == ["Broken()"]


async def test_it_is_unhealthy_while_a_reconcile_does_not_even_end_when_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("controllers.runtime.controller.HANG_MARGIN", 0.05)
    release = asyncio.Event()

    async def stubborn(_: Key) -> Result:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return Result()

    async with Running(stubborn, deadline=0.05) as running:
        running.queue.add(A)
        assert running.controller.healthy
        await until(lambda: not running.controller.healthy)
        release.set()
        await until(lambda: running.controller.healthy)


async def test_the_figures_of_a_queue_are_those_of_the_controller_that_runs_now() -> None:
    async with Running(done) as running:
        running.queue.add(A)
        await until(lambda: running.seen == [A])
        read = running.metrics.registry.get_sample_value

        assert read("workqueue_adds_total", {"name": "test"}) == 1
        assert read("workqueue_depth", {"name": "test"}) == 0
        assert read("controller_runtime_max_concurrent_reconciles", {"controller": "test"}) == 4

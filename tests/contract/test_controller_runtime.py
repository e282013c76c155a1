"""What the controllers' runtime does with a real API server: the Lease, statuses, Events, its own endpoints."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from manifests import namespace_object
from porch_process import PorchProcess
from prometheus_client import CollectorRegistry, Counter

from controllers.runtime.endpoints import endpoints
from controllers.runtime.leader import Election, LedWorkEnded, Timings, boottime
from controllers.runtime.status import Recorder, set_status
from krm.client.client import KubeClient, WriteRefused, connect
from krm.client.resources import EVENTS, LEASES, PACKAGE_VARIANTS
from krm.meta.errors import Conflict, NotFound

Json = dict[str, Any]
QUICK = Timings(duration=5.0, renew=3.5, retry=0.3)
"""Short enough to wait for, long enough for a busy machine."""


@pytest.fixture
async def client(porch_server: PorchProcess) -> AsyncIterator[KubeClient]:
    async with connect(porch_server.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def place(client: KubeClient, porch_server: PorchProcess) -> str:
    """A namespace of the test's own."""
    name = f"runtime-{uuid.uuid4().hex[:8]}"
    plain = porch_server.client()
    assert plain.request("POST", "/api/v1/namespaces", namespace_object(name)).code == 201
    plain.close()
    return name


async def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)


# --- the Lease ------------------------------------------------------------------------------------


class Candidate:
    """One process's part in an election, and what its work went through."""

    def __init__(self, client: KubeClient, place: str, identity: str, timings: Timings = QUICK, **options: Any) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []
        self.election = Election(client, place, "controllers", identity, timings, **options)
        self.task: asyncio.Task[Any] | None = None

    def start(self, work: Callable[[], Awaitable[None]] | None = None) -> None:
        self.task = asyncio.create_task(self.election.run(work or self.work))

    async def stop(self) -> None:
        if self.task:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def work(self) -> None:
        self.began.append(time.monotonic())
        try:
            await asyncio.sleep(3600)
        finally:
            self.ended.append(time.monotonic())

    @property
    def working(self) -> bool:
        return len(self.began) > len(self.ended)


Candidates = Callable[..., Candidate]


@pytest.fixture
async def candidate(client: KubeClient, place: str) -> AsyncIterator[Candidates]:
    """Make candidates, and stop them in the end."""
    made: list[Candidate] = []

    def make(identity: str, *arguments: Any, **options: Any) -> Candidate:
        made.append(Candidate(client, place, identity, *arguments, **options))
        return made[-1]

    yield make
    await asyncio.gather(*(one.stop() for one in made))


async def spec(client: KubeClient, place: str) -> Json:
    found: Json = (await client.get(LEASES, place, "controllers"))["spec"]
    return found


async def test_of_two_candidates_one_works_and_its_lease_says_so(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    one, other = candidate("one"), candidate("other")
    one.start()
    other.start()
    await until(lambda: one.working or other.working)
    await asyncio.sleep(QUICK.duration + 1)
    lease = await spec(client, place)

    assert one.working != other.working
    assert one.election.leading() == one.working
    assert lease["holderIdentity"] == ("one" if one.working else "other")
    assert lease["leaseDurationSeconds"] == QUICK.duration
    assert lease["leaseTransitions"] == 0
    assert len(one.began) + len(other.began) == 1
    assert lease["acquireTime"] < lease["renewTime"]
    assert lease["renewTime"].endswith("Z")


async def test_a_leader_that_stops_in_order_is_followed_at_once(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    slow = Timings(duration=60, renew=50, retry=0.2)
    one, other = candidate("one", slow), candidate("other", slow)
    one.start()
    await until(lambda: one.working)
    other.start()
    await asyncio.sleep(0.5)
    assert not other.working
    await one.stop()
    await until(lambda: other.working, slow.renew - 10)

    assert one.ended[0] <= other.began[0]
    assert (await spec(client, place))["leaseTransitions"] == 1


async def test_the_lease_is_kept_until_the_work_has_ended(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    held: list[str] = []

    async def slow_to_end() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(1.5 * QUICK.duration)
            held.append((await spec(client, place))["holderIdentity"])

    one, other = candidate("one"), candidate("other")
    one.start(slow_to_end)
    await until(one.election.leading)
    other.start()
    await one.stop()

    assert held == ["one"]
    assert not one.election.leading()
    await until(lambda: other.working)


async def test_a_leader_whose_work_hangs_stops_before_another_begins(candidate: Candidates) -> None:
    healthy = [True]
    one, other = candidate("one", healthy=lambda: healthy[0]), candidate("other")
    one.start()
    await until(lambda: one.working)
    other.start()
    await asyncio.sleep(1)
    healthy[0] = False
    since = time.monotonic()
    await until(lambda: other.working)

    assert one.ended[0] < other.began[0]
    assert other.began[0] - since > QUICK.duration - QUICK.renew, "the last sign of life is no older"


async def test_a_process_that_slept_knows_at_once_that_it_may_not_write(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    """Its clock is the first thing it reads, before anybody tells it that somebody else leads."""
    slept = [0.0]
    one = candidate("one", clock=lambda: boottime() + slept[0])
    one.start()
    await until(lambda: one.working)
    guarded = client.guarded(one.election.leading)
    await guarded.create(EVENTS, place, event(place, "before"))
    slept[0] = QUICK.duration

    with pytest.raises(WriteRefused):
        await guarded.create(EVENTS, place, event(place, "after"))
    with pytest.raises(NotFound):
        await client.get(EVENTS, place, "after")
    assert await guarded.get(EVENTS, place, "before")
    await until(lambda: len(one.began) == 2)
    assert len(one.ended) == 1


@pytest.mark.parametrize("verb", ["create", "delete"])
async def test_a_lease_that_runs_out_while_a_write_is_on_its_way_stops_it_at_the_last_moment(
    verb: str, client: KubeClient, place: str
) -> None:
    """The process may be stopped between the first look and the writing of the bytes, which is some turns of its loop later."""
    looks = [True, False]
    guarded = client.guarded(lambda: looks.pop(0))
    made = await client.create(EVENTS, place, event(place, "made"))
    late: dict[str, Callable[[], Awaitable[Any]]] = {
        "create": lambda: guarded.create(EVENTS, place, event(place, "late")),
        "delete": lambda: guarded.delete(EVENTS, place, "made"),
    }
    with pytest.raises(WriteRefused):
        await late[verb]()

    assert looks == []
    assert [one["metadata"] for one in await events(client, place)] == [made["metadata"]]


async def test_of_a_write_that_is_stopped_at_the_last_moment_no_byte_leaves(
    porch_server: PorchProcess, tmp_path: Path
) -> None:
    arrived: list[bytes] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read(1000))
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    config = {"clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{port}"}}], "current-context": "a"}
    config |= {
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    looks = [True, False]
    async with connect(tmp_path / "kubeconfig") as plain, listener:
        with pytest.raises(WriteRefused):
            await plain.guarded(lambda: looks.pop(0)).create(EVENTS, "default", event("default", "late"))
        await asyncio.sleep(0.1)

    assert arrived == [b""]


def event(place: str, name: str) -> Json:
    involved = {"kind": "ConfigMap", "namespace": place, "name": "any"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": involved,
        "reason": "Any",
    }


@pytest.mark.parametrize("renewed", ["2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
async def test_what_the_holder_says_the_time_is_does_not_matter(
    renewed: str, client: KubeClient, place: str, candidate: Candidates
) -> None:
    lease = {"holderIdentity": "gone", "leaseDurationSeconds": 2, "renewTime": renewed, "leaseTransitions": 7}
    body = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": "controllers"}, "spec": lease}
    await client.create(LEASES, place, body)
    one = candidate("one")
    since = time.monotonic()
    one.start()
    await until(lambda: one.working)

    assert one.began[0] - since > 1.9
    assert (await spec(client, place))["leaseTransitions"] == 8


@pytest.mark.parametrize("ends", ["crashes", "returns"])
async def test_work_that_ends_by_itself_ends_the_process_and_frees_the_lease(
    ends: str, client: KubeClient, place: str, candidate: Candidates
) -> None:
    async def work() -> None:
        if ends == "crashes":
            raise ValueError("a bug")

    one = candidate("one")
    one.start(work)
    assert one.task
    with pytest.raises(LedWorkEnded) as ended:
        await asyncio.wait_for(one.task, 60)

    assert isinstance(ended.value.__cause__, ValueError) == (ends == "crashes")
    assert (await spec(client, place))["holderIdentity"] == ""


async def test_work_that_does_not_end_ends_the_process_and_the_lease_stays_taken(
    client: KubeClient, place: str, candidate: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.runtime.leader.STOP_SECONDS", 0.2)
    let_go = asyncio.Event()
    healthy = [True]

    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    one = candidate("one", healthy=lambda: healthy[0])
    one.start(stubborn)
    await until(one.election.leading)
    healthy[0] = False
    assert one.task
    with pytest.raises(LedWorkEnded):
        await asyncio.wait_for(one.task, 60)

    assert (await spec(client, place))["holderIdentity"] == "one"
    assert not one.election.leading()
    let_go.set()


async def test_a_lease_that_somebody_deleted_is_made_again_without_a_break(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    one = candidate("one")
    one.start()
    await until(lambda: one.working)
    await client.delete(LEASES, place, "controllers")
    await asyncio.sleep(QUICK.duration + 1)

    assert (await spec(client, place))["holderIdentity"] == "one"
    assert len(one.began) == 1
    assert one.working


async def test_a_lease_that_somebody_took_ends_the_work_until_it_is_free_again(
    client: KubeClient, place: str, candidate: Candidates
) -> None:
    one = candidate("one")
    one.start()
    await until(lambda: one.working)
    await client.patch(LEASES, place, "controllers", {"spec": {"holderIdentity": "thief"}})
    await until(lambda: not one.working)
    await until(lambda: one.working)

    assert one.began[1] - one.ended[0] > QUICK.duration / 2
    assert (await spec(client, place))["leaseTransitions"] == 1


async def test_a_leader_without_a_server_stops_in_time_and_leads_again_when_it_is_back(
    porch_server: PorchProcess, candidate: Candidates
) -> None:
    one = candidate("one")
    one.start()
    await until(lambda: one.working)
    since = time.monotonic()
    porch_server.kill()
    await until(lambda: not one.working)
    assert one.ended[0] - since < QUICK.renew + 20
    await asyncio.to_thread(porch_server.restart)

    await until(lambda: one.working)


async def test_a_trouble_that_lasts_is_logged_once(client: KubeClient, candidate: Candidates) -> None:
    with structlog.testing.capture_logs() as told:
        one = Candidate(client, "there-is-no-such-namespace", "one")
        one.start()
        await until(lambda: bool(told))
        await asyncio.sleep(1.5)
        await one.stop()

    assert [line["event"] for line in told] == ["lease neither read nor written"]


# --- statuses -------------------------------------------------------------------------------------


def variant(name: str = "v") -> Json:
    spec = {"upstream": {"repo": "a", "package": "p"}, "downstream": {"repo": "b", "package": "p"}}
    return {
        "apiVersion": PACKAGE_VARIANTS.api_version,
        "kind": PACKAGE_VARIANTS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def ready(status: str) -> Json:
    condition = {"type": "Ready", "status": status, "reason": "Any", "message": "", "observedGeneration": 1}
    return {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


async def test_a_status_is_written_once_and_only_when_it_differs(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    written = await set_status(client, PACKAGE_VARIANTS, body, ready("True"))
    assert written is not None
    again = await set_status(client, PACKAGE_VARIANTS, written, {**ready("True"), "observedGeneration": None})

    assert again is None
    assert "status" not in body
    assert (await client.get(PACKAGE_VARIANTS, place, "v"))["metadata"] == written["metadata"]


async def test_a_status_meets_a_conflict_and_is_written_while_the_generation_is_the_same(
    client: KubeClient, place: str
) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    await client.patch(PACKAGE_VARIANTS, place, "v", {"metadata": {"labels": {"by": "user"}}})
    written = await set_status(client, PACKAGE_VARIANTS, body, ready("True"))

    assert written is not None
    assert written["status"] == ready("True")
    assert written["metadata"]["labels"] == {"by": "user"}


async def test_a_status_of_another_generation_is_not_written(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    await client.patch(PACKAGE_VARIANTS, place, "v", {"spec": {"adoptionPolicy": "adoptExisting"}})

    assert await set_status(client, PACKAGE_VARIANTS, body, ready("True")) is None
    assert "status" not in await client.get(PACKAGE_VARIANTS, place, "v")


async def test_a_status_of_a_deleted_or_another_object_is_not_written(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    await client.delete(PACKAGE_VARIANTS, place, "v")
    assert await set_status(client, PACKAGE_VARIANTS, body, ready("True")) is None
    await client.create(PACKAGE_VARIANTS, place, variant())

    assert await set_status(client, PACKAGE_VARIANTS, body, ready("True")) is None
    assert "status" not in await client.get(PACKAGE_VARIANTS, place, "v")


async def test_conflicts_that_do_not_end_are_told(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())

    class Overtaken(KubeClient):
        """Somebody else is always faster."""

        async def get(self, *arguments: Any) -> Json:
            found = await client.get(*arguments)
            labels = {"round": uuid.uuid4().hex}
            await client.patch(PACKAGE_VARIANTS, place, "v", {"metadata": {"labels": labels}})
            return found

    overtaken = Overtaken(client._connection)
    await overtaken.get(PACKAGE_VARIANTS, place, "v")
    with pytest.raises(Conflict):
        await set_status(overtaken, PACKAGE_VARIANTS, body, ready("True"))


# --- Events ---------------------------------------------------------------------------------------


@asynccontextmanager
async def recording(client: KubeClient) -> AsyncIterator[Recorder]:
    recorder = Recorder(client, "test-controller")
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)  # one that is cancelled before it began writes nothing
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def events(client: KubeClient, place: str) -> list[Json]:
    return [item async for page in client.list(EVENTS, place) for item in page.items]


async def test_the_same_report_is_one_event_that_counts_also_across_processes(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    async with recording(client) as recorder:
        for _ in range(3):
            recorder.event(body, "Normal", "DraftCreated", "draft d was created")
        recorder.event(body, "Warning", "DraftChurn", "x" * 5000)
    async with recording(client) as recorder:
        recorder.event(body, "Normal", "DraftCreated", "draft d was created")
        await asyncio.sleep(0.3)
        recorder.event(body, "Normal", "DraftCreated", "draft d was created")

    found = {one["reason"]: one for one in await events(client, place)}
    assert {reason: one["count"] for reason, one in found.items()} == {"DraftCreated": 5, "DraftChurn": 1}
    told = found["DraftCreated"]
    assert told["involvedObject"]["uid"] == body["metadata"]["uid"]
    assert told["involvedObject"]["kind"] == "PackageVariant"
    assert told["source"] == {"component": "test-controller"}
    assert told["type"] == "Normal"
    assert len(found["DraftChurn"]["message"]) == 1024


async def test_an_event_that_expired_meanwhile_is_made_again(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    async with recording(client) as recorder:
        recorder.event(body, "Normal", "Any", "told")
        async with asyncio.timeout(60):
            while not (told := await events(client, place)):
                await asyncio.sleep(0.05)
        for one in told:
            await client.delete(EVENTS, place, one["metadata"]["name"])
        recorder.event(body, "Normal", "Any", "told")

    assert [one["count"] for one in await events(client, place)] == [1]


async def test_an_event_that_cannot_be_written_hinders_no_other(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    nowhere = {**body, "metadata": {**body["metadata"], "namespace": "there-is-no-such-namespace"}}
    nameless: Json = {"metadata": {"name": "../x"}}
    async with recording(client) as recorder:
        recorder.event(nowhere, "Normal", "Any", "told")
        recorder.event(nameless, "Normal", "Any", "told")
        recorder.event(body, "Normal", "Any", "told")

    assert len(await events(client, place)) == 1


async def test_more_reports_than_can_be_kept_are_dropped_and_the_log_says_so(
    client: KubeClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.runtime.status.WAITING", 10)
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    with structlog.testing.capture_logs() as told:
        async with recording(client) as recorder:
            for number in range(13):
                recorder.event(body, "Normal", "Any", f"number {number}")

    assert len(await events(client, place)) == 10
    assert [line["number"] for line in told] == [3]


async def test_a_process_that_lost_its_lease_reports_nothing(client: KubeClient, place: str) -> None:
    body = await client.create(PACKAGE_VARIANTS, place, variant())
    async with recording(client.guarded(lambda: False)) as recorder:
        for number in range(10):
            recorder.event(body, "Normal", "Any", f"number {number}")

    assert await events(client, place) == []


# --- endpoints ------------------------------------------------------------------------------------


async def test_health_readiness_and_metrics_are_served() -> None:
    registry = CollectorRegistry()
    Counter("looks", "Looks.", registry=registry).inc()
    alive = [True]
    async with (
        endpoints(
            "127.0.0.1", 0, registry, health={"work": lambda: alive[0]}, readiness={"synced": lambda: False}
        ) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        assert await get("/healthz") == (200, "ok")
        assert await get("/readyz") == (503, "[-]synced failed\n")
        code, text = await get("/metrics")
        assert code == 200
        assert "looks_total 1.0" in text
        assert (await get("/"))[0] == 404
        alive[0] = False
        assert await get("/healthz") == (503, "[-]work failed\n")


async def test_a_port_that_is_taken_is_an_error() -> None:
    nothing = CollectorRegistry()
    async with endpoints("127.0.0.1", 0, nothing, health={}, readiness={}) as port:
        with pytest.raises(OSError, match="in use"):
            async with endpoints("127.0.0.1", port, nothing, health={}, readiness={}):
                pass

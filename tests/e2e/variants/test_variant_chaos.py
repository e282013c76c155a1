"""The whole controller, with its caches and queue, on a connection that fails, while people work and it is killed.

What people do and what fails is drawn from a seed. When the trouble ends every variant has to be true, nothing that
somebody was told is saved may be lost, nothing published changed, and there is at most one draft for each variant.
Source: ``variants.md`` I1 to I8.
"""

import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually
from git_server import GitServer
from golden import golden
from porch_client import CONFIG, PORCH
from porch_process import PorchProcess
from recorded_controller import RecordedController
from recording_client import Recording, RecordingConnection
from variant_place import (
    GATE,
    SET_LABELS,
    SET_NAMESPACE,
    Json,
    Place,
    blueprint,
    condition_of,
    downstream,
    new_place,
    upstream,
    variant,
    with_blueprint,
)

from krm.client.connection import Connection
from krm.client.errors import Unanswered, Unreachable
from krm.meta.errors import Conflict, InternalError, ServiceUnavailable

VARIANTS = 6
DEEDS = 45
KILLS = 3
FAILING = 0.12
"""Share of the requests that fail in one of the ways, as long as there is trouble."""
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
POINT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: point\n  annotations:\n    kpt.dev/config-injection: required\n"
    "data:\n  number: '0'\n"
)
PIPELINES: list[Json | None] = [{"mutators": [SET_LABELS]}, {"mutators": [SET_NAMESPACE]}, None]
LABEL = "tags.porch.kpt.dev/stable"


class TroubledConnection(RecordingConnection):
    """Fails at random: before a request is sent, or after it was done; watches break."""

    def __init__(self, inner: Connection, recording: Recording, dice: random.Random) -> None:
        super().__init__(inner, recording)
        self._dice = dice
        self.trouble = True
        self.failed = 0

    async def request(self, method: str, path: str, *, body: bytes | None = None, **more: Any) -> bytes:
        """Send a request that may fail."""
        fate = self._dice.choice(FATES) if self.trouble and self._dice.random() < FAILING else None
        if fate:
            self.failed += 1
        if fate and not fate.done:
            raise fate.error()
        answer = await super().request(method, path, body=body, **more)
        if fate:
            raise fate.error()
        return answer

    async def lines(self, path: str, *, query: Mapping[str, str], seconds: float) -> AsyncGenerator[list[bytes], None]:
        """Stream lines until the stream breaks."""
        async for batch in super().lines(path, query=query, seconds=seconds):
            if self.trouble and self._dice.random() < FAILING:
                raise Unanswered(f"{path}: the connection broke")
            yield batch


@dataclass(frozen=True)
class Fate:
    """One way to fail."""

    error: Callable[[], Exception]
    done: bool = False


FATES = [
    Fate(lambda: InternalError("the disk is full")),
    Fate(lambda: ServiceUnavailable("starting")),
    Fate(lambda: Conflict("the object has been modified")),
    Fate(lambda: Unreachable("no route")),
    Fate(lambda: Unanswered("no answer within 30 s")),
    Fate(lambda: Unanswered("no answer within 30 s"), done=True),
    Fate(lambda: Unanswered("no answer within 30 s"), done=True),
]


class TroubledController(RecordedController):
    """A live controller on a troubled connection."""

    def __init__(self, server: PorchProcess, namespace: str, dice: random.Random) -> None:
        super().__init__(server, namespace)
        self._dice = dice
        self.connection: TroubledConnection | None = None

    def connection_over(self, inner: Connection) -> RecordingConnection:
        """Return a connection that fails."""
        self.connection = TroubledConnection(inner, self.recording, self._dice)
        return self.connection

    def end_trouble(self) -> None:
        """Have everything work from now on."""
        assert self.connection is not None
        self.connection.trouble = False


@dataclass
class People:
    """Those who work in the place, and what they were told."""

    place: Place
    dice: random.Random
    notes: dict[str, str] = field(default_factory=dict)
    """Acknowledged text of each package's note."""
    pipelines: dict[str, Json | None] = field(default_factory=dict)
    upstreams: dict[str, Any] = field(default_factory=dict)
    published: dict[str, dict[str, str]] = field(default_factory=dict)
    """Files of each revision when it was approved."""
    number: int = 0

    def begin(self) -> list[str]:
        """Make the variants; return their names, which are those of their packages."""
        names = [f"v{number}" for number in range(VARIANTS)]
        for number, name in enumerate(names):
            self.upstreams[name] = {"tag": "stable"} if number % 3 == 0 else {"revision": 1 + number % 2}
            self.pipelines[name] = PIPELINES[number % 3]
            self.place.add_variant(self.wanted(name))
        return names

    def wanted(self, name: str) -> Json:
        """Return a variant as it should be. Those that are made anew leave everything to their successors."""
        spec: Json = {"upstream": upstream(**self.upstreams[name]), "injectors": [{"name": "source"}]}
        spec |= {"pipeline": self.pipelines[name]} if self.pipelines[name] else {}
        spec |= {"adoptionPolicy": "adoptExisting", "deletionPolicy": "orphan"} if is_made_anew(name) else {}
        return variant(name, downstream=downstream(name), **spec)

    def act(self, name: str) -> None:
        """Do something at random; what the server refuses is not done."""
        deeds = [self.repipe, self.repoint, self.note, self.note, self.approve, self.approve, self.reject, self.feed]
        self.dice.choice([*deeds, self.retag, self.make_anew])(name)

    def repipe(self, name: str) -> None:
        self.pipelines[name] = self.dice.choice(PIPELINES)
        if self.place.has_variant(name):
            self.place.change_variant(name, pipeline=self.pipelines[name])

    def repoint(self, name: str) -> None:
        if "tag" not in self.upstreams[name]:
            self.upstreams[name] = {"revision": self.dice.choice([1, 2, 3])}
            if self.place.has_variant(name):
                self.place.change_variant(name, upstream=upstream(**self.upstreams[name]))

    def make_anew(self, name: str) -> None:
        """Delete a variant, or make it again when it is gone."""
        if not is_made_anew(name):
            return
        if self.place.has_variant(name):
            self.place.delete(CONFIG, "packagevariants", name)
        else:
            self.place.add_variant(self.wanted(name))

    def note(self, name: str) -> None:
        self.number += 1
        for draft in self.unpublished(name, "Draft"):
            if self.place.porch.save(draft, {"note.txt": f"{self.number}\n"}).code == 200:
                self.notes[name] = f"{self.number}\n"

    def approve(self, name: str) -> None:
        porch = self.place.porch
        for draft in self.unpublished(name, "Draft"):
            if porch.propose(draft).code == 200 and self.dice.random() < 0.7:
                self._approved(draft)
        for proposal in self.unpublished(name, "Proposed"):
            if self.dice.random() < 0.5:
                self._approved(proposal)

    def _approved(self, name: str) -> None:
        if self.place.porch.approve(name).code == 200:
            self.published[name] = self.place.files(name)

    def reject(self, name: str) -> None:
        for proposal in self.unpublished(name, "Proposed"):
            self.place.porch.set_lifecycle(proposal, "Draft", "approval")

    def feed(self, name: str) -> None:
        self.number += 1
        self.place.patch("/api/v1", "configmaps", "source", {"data": {"number": str(self.number)}})

    def retag(self, name: str) -> None:
        for number in (1, 2, 3):
            on = "x" if self.dice.random() < 0.5 or number == 1 else None
            self.place.patch(
                PORCH, "packagerevisions", f"blueprints.foo.v{number}", {"metadata": {"labels": {LABEL: on}}}
            )

    def unpublished(self, package: str, lifecycle: str) -> list[str]:
        found = self.place.revisions_of(package)
        return [f"deployments.{package}.{workspace}" for workspace, now in found.items() if now == lifecycle]

    def end(self, names: list[str]) -> None:
        """Leave no proposal behind, which the variant would have to wait for, and no variant deleted."""
        for name in names:
            eventually(lambda name=name: self._rejected(name))  # type: ignore[misc]
            eventually(lambda name=name: self._restored(name), timeout=60)  # type: ignore[misc]

    def _rejected(self, name: str) -> None:
        """Reject what is proposed; the controller may write it in the same moment, which refuses ours."""
        self.reject(name)
        assert not self.unpublished(name, "Proposed")

    def _restored(self, name: str) -> None:
        if not self.place.has_variant(name):
            self.place.add_variant(self.wanted(name))
        assert "deletionTimestamp" not in self.place.variant(name)["metadata"]


def is_made_anew(name: str) -> bool:
    """Whether the variant is deleted at times, and made again."""
    return int(name[1:]) % 2 == 1


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A place on the server of all tests."""
    made = furnished(porch_server, git_http, namespace)
    yield made
    made.porch.close()


def furnished(server: PorchProcess, git_server: GitServer, namespace: str) -> Place:
    """Make a place with three revisions of a blueprint, the first tagged stable, and an object to inject."""
    made = with_blueprint(new_place(server, git_server, namespace), blueprint(point_yaml=POINT))
    for number in (2, 3):
        made.new_upstream(number)
    made.patch(PORCH, "packagerevisions", "blueprints.foo.v1", {"metadata": {"labels": {LABEL: "x"}}})
    made.create("/api/v1", "configmaps", {"metadata": {"name": "source"}, "data": {"number": "1"}})
    return made


@contextmanager
def troubled(place: Place, dice: random.Random) -> Iterator[TroubledController]:
    controller = TroubledController(place.server, place.namespace, dice)
    controller.start()
    try:
        yield controller
    finally:
        if controller.is_running:
            controller.stop()


@golden("I1", "I2", "I3", "I5", "I7", "I8")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_all_trouble_every_variant_is_true_and_nothing_is_lost(place: Place, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  (no secret hangs on it)
    people = People(place, dice)
    names = people.begin()
    failed = 0
    for _ in range(KILLS):
        with troubled(place, dice) as controller:
            for _ in range(DEEDS // KILLS):
                people.act(dice.choice(names))
                time.sleep(dice.random() * 0.3)
            controller.die()
            assert controller.connection is not None
            failed += controller.connection.failed
    assert failed > KILLS, "there was trouble"

    with troubled(place, dice) as controller:
        controller.end_trouble()
        end_well(people, names, controller)


@golden("I2", "I3", "I5", "I7", "I8")
@pytest.mark.timeout(600)
def test_after_kills_of_the_server_every_variant_is_true_and_nothing_is_lost(
    git_http: GitServer, tmp_path: Path
) -> None:
    """The controller goes on all the time; what was under way when the server was killed may be done or not."""
    server = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "2"})
    server.start()
    try:
        dice = random.Random(4)  # noqa: S311  (no secret hangs on it)
        place = furnished(server, git_http, "killed-servers")
        people = People(place, dice)
        names = people.begin()
        with troubled(place, dice) as controller:
            controller.end_trouble()
            for _ in range(KILLS):
                for _ in range(DEEDS // KILLS):
                    people.act(dice.choice(names))
                    time.sleep(dice.random() * 0.2)
                place.porch.close()
                server.kill()
                server.start()
                place.porch = server.client(place.namespace)
            end_well(people, names, controller)
        place.porch.close()
    finally:
        server.stop()


def end_well(people: People, names: list[str], controller: TroubledController) -> None:
    """Check that everything ends as it should, now that nothing fails any more."""
    people.end(names)
    for name in names:
        eventually(lambda name=name: check(people, name), timeout=60)  # type: ignore[misc]
    controller.settle()
    controller.recording.clear()
    controller.resync()
    controller.settle()
    assert [write.line for write in controller.recording.writes] == []
    for name, files in people.published.items():
        assert people.place.files(name) == files, "published content does not change"


def check(people: People, name: str) -> None:
    """Check that a variant's target is what everything together asks for."""
    place = people.place
    assert place.condition("Ready", name) == READY
    lifecycles = place.revisions_of(name)
    assert [one for one in lifecycles.values() if one != "Published"].count("Draft") <= 1, lifecycles
    (target,) = place.targets(name)
    revision, files = place.revision(target), place.files(target)
    assert condition_of(revision, GATE)["status"] == "True"
    assert revision["status"]["upstreamLock"]["git"]["commit"] == wanted_commit(people, name)
    assert files.get("note.txt") == people.notes.get(name)
    mutators = yaml.safe_load(files["Kptfile"]).get("pipeline", {}).get("mutators", [])
    wanted = (people.pipelines[name] or {}).get("mutators", [])
    assert [one["image"] for one in mutators] == [one["image"] for one in wanted]
    number = place.porch.request("GET", place.path("/api/v1", "configmaps", "source")).object["data"]["number"]
    assert yaml.safe_load(files["point.yaml"])["data"] == {"number": number}


def wanted_commit(people: People, name: str) -> str:
    number = people.upstreams[name].get("revision")
    if number is None:
        labelled = [one for one in (1, 2, 3) if LABEL in labels_of(people.place, one)]
        number = max(labelled)
    commit: str = people.place.revision(f"blueprints.foo.v{number}")["status"]["selfLock"]["git"]["commit"]
    return commit


def labels_of(place: Place, number: int) -> dict[str, str]:
    return place.revision(f"blueprints.foo.v{number}")["metadata"].get("labels") or {}

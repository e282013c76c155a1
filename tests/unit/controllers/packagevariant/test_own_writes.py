"""Events of our own writes wake nobody, however fast they are; what others write meanwhile is not lost."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from cluster_bodies import revision, variant

from controllers.packagevariant.cached_views import CachedViews
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from controllers.packagevariant.own_writes import OwnWrites
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import (
    EVENTS,
    PACKAGE_REVISION_RESOURCES,
    PACKAGE_REVISIONS,
    PACKAGE_VARIANTS,
    Resource,
)
from krm.meta.errors import Conflict

Json = dict[str, Any]
NAME = "deployments.bar.packagevariant-1"


def draft(version: str, **parts: Any) -> Json:
    return revision("bar", "packagevariant-1", repository="deployments", owner="bar", version=version, **parts)


class Server:
    """Answers with what the test prepares, after it has sent the events of ``meanwhile``."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.refusal: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        self.sent: list[str] = []

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        return self._answer(f"GET {name}")

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        return self._answer(f"POST {body['metadata']['name']}")

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        return self._answer(f"PUT {body['metadata']['name']} {subresource}".strip())

    async def delete(self, resource: Resource, namespace: str | None, name: str, **_: str) -> None:
        self._answer(f"DELETE {name}")

    def _answer(self, sent: str) -> Json:
        self.sent.append(sent)
        self.meanwhile()
        if self.refusal:
            raise self.refusal
        return self.answer


class Rig:
    def __init__(self) -> None:
        self.server = Server()
        client = cast("KubeClient", self.server)  # its single objects
        self.caches = Caches(client, None)
        self.views = CachedViews(self.caches, cast("Injectables", None), lambda _keys: None)  # nothing is injected
        self.writes = OwnWrites(client, self.caches, self.views)
        self.told: list[tuple[str, str]] = []
        self.caches.package_revisions.subscribe(self._tell)
        self.caches.variants.subscribe(self._tell)

    def _tell(self, old: Any, new: Any) -> None:
        self.told.append((old.resource_version if old else "", new.resource_version if new else ""))

    def event(self, kind: str, body: Json, informer: Informer[Any] | None = None) -> None:
        (informer or self.caches.package_revisions)._reflector.event(kind, body)


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def test_the_event_of_a_create_may_come_before_its_answer(rig: Rig) -> None:
    rig.server.answer = draft("5")
    rig.server.meanwhile = lambda: rig.event("ADDED", draft("5"))
    await rig.writes.create(PACKAGE_REVISIONS, "default", draft(""))
    rig.event("ADDED", draft("5"))

    assert rig.told == []
    known = rig.caches.revision("default", NAME)
    assert known is not None
    assert known.resource_version == "5"


async def test_what_others_wrote_after_it_is_told(rig: Rig) -> None:
    rig.server.answer = draft("5")

    def both() -> None:
        rig.event("ADDED", draft("5"))
        rig.event("MODIFIED", draft("6", commit="c2"))

    rig.server.meanwhile = both
    await rig.writes.create(PACKAGE_REVISIONS, "default", draft(""))

    assert rig.told == [("5", "6")]


async def test_a_refused_write_holds_no_news_back(rig: Rig) -> None:
    rig.caches.package_revisions.wrote(draft("4"))
    rig.server.refusal = Conflict("somebody was faster")
    rig.server.meanwhile = lambda: rig.event("MODIFIED", draft("5", commit="c2"))
    with pytest.raises(Conflict):
        await rig.writes.update(PACKAGE_REVISIONS, draft("4"))

    assert rig.told == [("4", "5")]


async def test_the_status_of_a_variant_wakes_nobody(rig: Rig) -> None:
    rig.caches.variants.wrote(variant(version="4"))
    told = {**variant(version="5"), "status": {"observedGeneration": 1}}
    rig.server.answer = told
    rig.server.meanwhile = lambda: rig.event("MODIFIED", told, rig.caches.variants)
    await rig.writes.update(PACKAGE_VARIANTS, told, subresource="status")

    assert rig.told == []
    assert rig.views.variant("default", "bar") == told
    assert rig.server.sent == ["PUT bar status"]


async def test_saved_files_are_news_of_the_revision_that_are_known_for_ours(rig: Rig) -> None:
    rig.caches.package_revisions.wrote(draft("4"))
    rig.server.answer = {"metadata": {"namespace": "default", "name": NAME, "resourceVersion": "5"}}
    rig.server.meanwhile = lambda: rig.event("MODIFIED", draft("5", commit="c2"))
    seen: list[object] = []
    rig.caches.package_revisions.subscribe(
        lambda _, new: seen.append(new and rig.views._saved.get(("default", new.name)))
    )
    await rig.writes.update(PACKAGE_REVISION_RESOURCES, draft("4"))

    assert seen == [("5", None)]
    assert rig.told == [("4", "5")]


async def test_a_deletion_is_seen_at_once_and_told_to_nobody(rig: Rig) -> None:
    rig.caches.package_revisions.wrote(draft("4"))
    rig.server.meanwhile = lambda: rig.event("DELETED", draft("5"))
    await rig.writes.delete(PACKAGE_REVISIONS, "default", NAME, uid="u", resource_version="4")
    rig.event("DELETED", draft("5"))

    assert rig.told == []
    assert rig.caches.revision("default", NAME) is None


async def test_other_objects_are_sent_as_they_are(rig: Rig) -> None:
    rig.server.answer = {"kind": "Event"}
    event = {"metadata": {"name": "e"}}

    assert await rig.writes.create(EVENTS, "default", event) == {"kind": "Event"}
    assert await rig.writes.update(EVENTS, event) == {"kind": "Event"}
    assert await rig.writes.get(EVENTS, "default", "e") == {"kind": "Event"}
    await rig.writes.delete(EVENTS, "default", "e")
    assert rig.server.sent == ["POST e", "PUT e", "GET e", "DELETE e"]

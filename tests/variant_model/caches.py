"""What the controller has cached: behind the server by as many events as a test likes, kind by kind.

Of one kind events arrive in order, as a watch delivers them; between kinds in any order. An event may arrive twice, several
may be passed over by a new list, and a new process starts from a list.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from controllers.packagevariant.views import ObjectType, RepositoryView
from krm.variants.mutation import Listing
from krm.variants.revisions import Lock, Owner, Revision
from krm.variants.vocabulary import GROUP, KIND, PAUSED
from variant_model.porch import CONFIG_MAPS, REPOSITORIES, REVISIONS, VARIANTS, Event, PorchModel, copied

Json = dict[str, Any]
Key = tuple[str, str]
KINDS = (REVISIONS, VARIANTS, REPOSITORIES, CONFIG_MAPS)
Woken = Callable[["StaleViews", str, Json | None, Json | None], Iterable[Key]]
"""Whom a change concerns: gets the kind, the object before and after."""


class StaleViews:
    """The caches of one controller process. Implements ``controllers.packagevariant.views.Views``."""

    def __init__(self, porch: PorchModel, woken: Woken, wake: Callable[[Key], None]) -> None:
        self._porch = porch
        self._woken = woken
        self._wake = wake
        self._held: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self._seen = dict.fromkeys(KINDS, 0)
        """How many of the server's events of any kind were looked at for events of this kind."""
        self._own: set[tuple[str, str]] = set()
        """Kind and resourceVersion of answers to our own writes whose events have not come yet."""
        self._parsed: dict[tuple[str, str], Revision] = {}
        self.watched: dict[Key, frozenset[ObjectType]] = {}
        for kind in KINDS:
            self.relist(kind)

    # --- what arrives ------------------------------------------------------------------------------------

    def relist(self, kind: str) -> None:
        """Take over the server's state of one kind, whatever events were missed."""
        now = {body["metadata"]["name"]: copied(body) for body in self._porch.all(kind)}
        self._seen[kind] = len(self._porch.events)
        for name in sorted(self._held[kind].keys() | now):
            self._take(kind, name, now.get(name))

    def deliver(self, kind: str) -> bool:
        """Take the next event of one kind; tell whether there was one."""
        for place in range(self._seen[kind], len(self._porch.events)):
            event = self._porch.events[place]
            if event.plural == kind:
                self._seen[kind] = place + 1
                self._observe(event)
                return True
        self._seen[kind] = len(self._porch.events)
        return False

    def deliver_again(self, kind: str) -> None:
        """Take the newest event of one kind that was taken already once more."""
        for event in reversed(self._porch.events[: self._seen[kind]]):
            if event.plural == kind:
                self._observe(event)
                return

    def deliver_all(self) -> bool:
        """Take every event; tell whether there was any."""
        before = dict(self._seen)
        for kind in KINDS:
            while self.deliver(kind):
                pass
        return before != self._seen

    def _observe(self, event: Event) -> None:
        meta = event.body["metadata"]
        held = self._held[event.plural].get(meta["name"])
        if held is not None and int(held["metadata"]["resourceVersion"]) > int(meta["resourceVersion"]):
            return
        own = (event.plural, meta["resourceVersion"])
        if own in self._own:
            self._own.discard(own)
            return
        self._take(event.plural, meta["name"], None if event.type == "DELETED" else copied(event.body))

    def _take(self, kind: str, name: str, body: Json | None) -> None:
        old = self._held[kind].get(name)
        if body is None:
            self._held[kind].pop(name, None)
        else:
            self._held[kind][name] = body
        if (old or {}).get("metadata") == (body or {}).get("metadata"):
            return
        for key in self._woken(self, kind, old, body):
            self._wake(key)

    # --- what the reconciler asks ------------------------------------------------------------------------

    def variant(self, namespace: str, name: str) -> Json | None:
        return self._held[VARIANTS].get(name)

    def variants(self) -> Sequence[Json]:
        return list(self._held[VARIANTS].values())

    def _revisions(self) -> Iterable[Revision]:
        return map(self._revision, self._held[REVISIONS].values())

    def _revision(self, body: Json) -> Revision:
        key = (body["metadata"]["name"], body["metadata"]["resourceVersion"])
        if key not in self._parsed:
            self._parsed[key] = Revision.of(body)
        return self._parsed[key]

    def revisions_of(self, namespace: str, repository: str, package: str) -> Sequence[Revision]:
        return [each for each in self._revisions() if (each.repository, each.package) == (repository, package)]

    def owned(self, namespace: str, uid: str) -> Sequence[Revision]:
        return [each for each in self._revisions() if each.owned_by(uid)]

    def locked_at(self, namespace: str, lock: Lock) -> Sequence[Revision]:
        return [each for each in self._revisions() if each.self_lock is not None and each.self_lock.place == lock.place]

    def revision(self, namespace: str, name: str) -> Revision | None:
        body = self._held[REVISIONS].get(name)
        return None if body is None else self._revision(body)

    def repository(self, namespace: str, name: str) -> RepositoryView | None:
        body = self._held[REPOSITORIES].get(name)
        if body is None:
            return None
        return RepositoryView(name, body["spec"]["git"]["branch"], deployment=bool(body["spec"].get("deployment")))

    def is_alive(self, owner: Owner, namespace: str) -> bool:
        if owner.kind != KIND or not owner.api_version.startswith(f"{GROUP}/"):
            return True
        return any(body["metadata"]["uid"] == owner.uid for body in self.variants())

    async def injectables(self, key: Key, namespace: str, types: set[ObjectType]) -> Mapping[ObjectType, Listing]:
        self.watched[key] = frozenset(types)
        config_maps = Listing(objects=dict(self._held[CONFIG_MAPS]))
        missing = Listing(error="the server could not find the requested resource")
        return {each: config_maps if each == ("v1", "ConfigMap") else missing for each in types}

    # --- what the reconciler tells -----------------------------------------------------------------------

    def wrote(self, body: Json) -> None:
        self._wrote(REVISIONS, body)

    def wrote_variant(self, body: Json) -> None:
        name = body["metadata"]["name"]
        old = self._held[VARIANTS].get(name)
        self._wrote(VARIANTS, body)
        if old is not None and _by_user(old) != _by_user(self._held[VARIANTS][name]):
            self._wake((body["metadata"]["namespace"], name))

    def _wrote(self, kind: str, body: Json) -> None:
        meta = body["metadata"]
        held = self._held[kind].get(meta["name"])
        if held is not None and int(held["metadata"]["resourceVersion"]) >= int(meta["resourceVersion"]):
            return
        self._own.add((kind, meta["resourceVersion"]))
        self._held[kind][meta["name"]] = copied(body)
        if kind == REVISIONS:
            mine = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
            for key in self._woken(self, kind, held, body):
                variant = self.variant(*key)
                if variant is None or variant["metadata"]["uid"] not in mine:
                    self._wake(key)

    def forget(self, namespace: str, name: str) -> None:
        held = self._held[REVISIONS].pop(name, None)
        if held is not None:
            for key in self._woken(self, REVISIONS, held, None):
                self._wake(key)


def _by_user(variant: Json) -> list[Any]:
    """Return what a variant's user decides; news of that may come with the answer to a write of the status."""
    meta = variant["metadata"]
    paused = (meta.get("annotations") or {}).get(PAUSED)
    return [meta["uid"], meta.get("generation"), bool(meta.get("deletionTimestamp")), paused]

"""The reconciler of package variants on a real server, one pass at a time, with what it wrote.

Its views are lists that are made anew before each pass: no event is waited for, and a pass sees everything that came
before it. The views of the real controller, which live on events, are tested where it runs as a whole.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from drafts import accepted
from git_server import GitServer
from porch_client import CONFIG, PORCH, PorchClient
from porch_process import PorchProcess
from recording_client import Recording, RecordingClient, Write, recording_client
from variant_place import Json, Place, new_place

from controllers.packagevariant.drift import report_drift
from controllers.packagevariant.reconciler import PackageVariantReconciler
from controllers.packagevariant.views import Key, ObjectType, RepositoryView
from krm.client.errors import NoAnswer
from krm.meta.errors import StatusError
from krm.variants.mutation import Listing
from krm.variants.revisions import Lock, Owner, Revision

OK = 200
PASSES = 8
"""After so many passes whatever a case changed has to be done."""
PAUSE_SECONDS = 0.05
"""Between two passes of which the first failed: a request that was cut off may still be under way."""


class ListedViews:
    """Views that list the namespace when asked to look."""

    def __init__(self, porch: PorchClient) -> None:
        self._porch = porch
        self._revisions: dict[str, Revision] = {}
        self._variants: dict[str, Json] = {}
        self._repositories: dict[str, RepositoryView] = {}

    def look(self) -> None:
        """List everything anew."""
        self._revisions = {one.name: one for one in map(Revision.of, self._items(PORCH, "packagerevisions"))}
        self._variants = {one["metadata"]["name"]: one for one in self._items(CONFIG, "packagevariants")}
        self._repositories = {one["metadata"]["name"]: _repository(one) for one in self._items(CONFIG, "repositories")}

    def _items(self, root: str, plural: str) -> list[Json]:
        path = f"{root}/namespaces/{self._porch.namespace}/{plural}"
        found: list[Json] = accepted(self._porch.request("GET", path))["items"]
        return found

    def variant(self, namespace: str, name: str) -> Json | None:
        return self._variants.get(name)

    def revisions_of(self, namespace: str, repository: str, package: str) -> Sequence[Revision]:
        return [one for one in self._revisions.values() if (one.repository, one.package) == (repository, package)]

    def owned(self, namespace: str, uid: str) -> Sequence[Revision]:
        return [one for one in self._revisions.values() if one.owned_by(uid)]

    def locked_at(self, namespace: str, lock: Lock) -> Sequence[Revision]:
        locked = [one for one in self._revisions.values() if one.self_lock]
        return [one for one in locked if one.self_lock and one.self_lock.place == lock.place]

    def revision(self, namespace: str, name: str) -> Revision | None:
        return self._revisions.get(name)

    def repository(self, namespace: str, name: str) -> RepositoryView | None:
        return self._repositories.get(name)

    def is_alive(self, owner: Owner, namespace: str) -> bool:
        alive = {one["metadata"]["uid"] for one in self._variants.values()}
        return owner.kind != "PackageVariant" or owner.uid in alive

    async def injectables(self, key: Key, namespace: str, types: set[ObjectType]) -> Mapping[ObjectType, Listing]:
        return {one: self._listing(*one) for one in types}

    def _listing(self, api_version: str, kind: str) -> Listing:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = self._porch.request("GET", root)
        served = answer.object["resources"] if answer.code == OK else []
        plurals = [one["name"] for one in served if one["kind"] == kind and "/" not in one["name"]]
        if not plurals:
            return Listing(error=f"no matches for kind {kind!r} in version {api_version!r}")
        return Listing({one["metadata"]["name"]: one for one in self._items(root, plurals[0])})

    def wrote(self, body: Json) -> None:
        self._revisions[body["metadata"]["name"]] = Revision.of(body)

    def wrote_variant(self, body: Json) -> None:
        self._variants[body["metadata"]["name"]] = body

    def forget(self, namespace: str, name: str) -> None:
        self._revisions.pop(name, None)


def _repository(body: Json) -> RepositoryView:
    spec = body["spec"]
    git = spec.get("git") or {}
    return RepositoryView(
        name=body["metadata"]["name"],
        branch=git.get("branch") or "main",
        deployment=bool(spec.get("deployment")),
        secret=(git.get("secretRef") or {}).get("name") or "",
    )


@dataclass
class Events:
    """A recorder of Events that keeps them."""

    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Type, reason, message."""

    def event(self, body: Json, kind: str, reason: str, message: str) -> None:
        """Keep one."""
        self.seen.append((kind, reason, message))


@dataclass(frozen=True)
class Pass:
    """What one reconcile did."""

    writes: list[Write]
    accepted: list[Write]
    error: StatusError | NoAnswer | None
    requeue_after: float | None

    @property
    def packages(self) -> list[str]:
        """The writes of package revisions and their files."""
        return [write.line for write in self.writes if write.of_packages]

    @property
    def lines(self) -> list[str]:
        """All writes."""
        return [write.line for write in self.writes]

    @property
    def wants_retry(self) -> bool:
        """Whether it asked to be called again."""
        return self.error is not None or self.requeue_after is not None


@dataclass
class Rig(Place):
    """A place with a controller in it."""

    client: RecordingClient | None = None
    views: ListedViews | None = None
    events: Events = field(default_factory=Events)
    _reconciler: PackageVariantReconciler | None = None

    @property
    def recording(self) -> Recording:
        """What the controller sent."""
        assert self.client is not None
        return self.client.recording

    @property
    def reconciler(self) -> PackageVariantReconciler:
        """The controller."""
        assert self._reconciler is not None
        return self._reconciler

    def writes_of(self, verb: str, plural: str) -> list[Write]:
        """Return the recorded writes of one verb and resource."""
        return [write for write in self.recording.writes if (write.verb, write.plural) == (verb, plural)]

    def restart_controller(self) -> None:
        """Forget all that the controller remembers."""
        assert self.client is not None
        self.views = ListedViews(self.porch)
        self._reconciler = PackageVariantReconciler(self.client, self.views, self.events, drift=report_drift)

    async def reconcile(self, name: str = "my-pv") -> Pass:
        """Run one pass over what is there now; return what it did."""
        assert self.views is not None
        self.views.look()
        first, first_accepted = len(self.recording.writes), len(self.recording.accepted)
        error: StatusError | NoAnswer | None = None
        after = None
        try:
            after = (await self.reconciler.reconcile((self.namespace, name))).requeue_after
        except (StatusError, NoAnswer) as failed:  # what the queue tries again; the case says whether it may fail
            error = failed
        return Pass(self.recording.writes[first:], self.recording.accepted[first_accepted:], error, after)

    async def settle(self, name: str = "my-pv") -> list[str]:
        """Run passes until one writes nothing; return the writes of packages, in order."""
        lines: list[str] = []
        for _ in range(PASSES):
            done = await self.reconcile(name)
            lines += done.packages
            if not done.accepted:
                assert done.error is None, done.error
                return lines
        raise AssertionError(f"still writing after {PASSES} passes: {lines}")

    async def settle_all(self, name: str = "my-pv") -> list[str]:
        """Run passes until one writes nothing and asks for no other, as the queue would; return the writes of packages."""
        lines: list[str] = []
        for _ in range(PASSES):
            done = await self.reconcile(name)
            lines += done.packages
            if not done.accepted and not done.wants_retry:
                return lines
            await asyncio.sleep(PAUSE_SECONDS)
        raise AssertionError(f"not done after {PASSES} passes: {lines}, {done.error!r}")

    async def quiet(self, name: str = "my-pv") -> None:
        """Check that two further passes write nothing, the second of a controller that starts anew (I1, G-F09)."""
        for pass_ in ("warm", "cold"):
            if pass_ == "cold":
                self.restart_controller()
            done = await self.reconcile(name)
            assert done.lines == [], pass_
            assert done.error is None, pass_


@asynccontextmanager
async def variant_rig(server: PorchProcess, git: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """Make a place without repositories and a controller for it."""
    place = new_place(server, git, namespace)
    async with recording_client(server.kubeconfig) as client:
        rig = Rig(server, git, place.porch, client=client)
        rig.restart_controller()
        yield rig
    place.porch.close()

"""What the mutations make of a package revision now, and whether that has to be written. Source: ``variants.md`` 2.9, 2.10."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from controllers.packagevariant.passes import Contents, Pass
from krm.client.resources import PACKAGE_REVISION_RESOURCES
from krm.meta.errors import NotFound
from krm.variants.change import differs, fingerprint
from krm.variants.mutation import Listing, Mutation, check_upstream, injection_points, mutate
from krm.variants.revisions import Revision
from krm.variants.vocabulary import APPLIED_INPUTS

Json = dict[str, Any]
Resources = Mapping[str, str]
T = TypeVar("T")

LARGE: Final = 256 * 1024
"""Characters of files from which a mutation takes longer than the event loop should wait."""
KEPT_CHARACTERS: Final = 8 * 1024 * 1024
"""Of the files of upstream packages that are kept, since many variants are made of the same ones."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A package revision's files as they are, and as the variant wants them."""

    files: Json
    """Its PackageRevisionResources as they were read."""
    mutation: Mutation
    mark: str
    """Fingerprint of what the mutation was computed from."""
    applied: bool
    """Whether that was applied before: then what differs was changed afterwards, by a function or a person."""
    differs: bool

    @property
    def needs_write(self) -> bool:
        """Whether the files have to be written."""
        return self.differs and not self.applied

    @property
    def before(self) -> Resources:
        """The files as they are."""
        found: Resources = self.files["spec"]["resources"]
        return found

    @property
    def drifted(self) -> tuple[str, ...]:
        """Paths of files that do not say any more what the variant made of them; notes in a Kptfile's status do not count."""
        if not (self.differs and self.applied):
            return ()
        before, after = self.before, self.mutation.resources
        changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
        return tuple(
            sorted(path for path in changed if differs(_only(before, path), _only(after, path), published=True))
        )


def is_known_applied(current: Pass, revision: Revision) -> bool:
    """Whether a published revision is what the variant wants, told without its files.

    That is so if nothing can be injected into it, the rest was applied to it, and its contents are those that were looked
    at last. After a start nothing was looked at: published contents are taken for what they were. What had drifted is
    looked at again.
    """
    if not revision.is_published or revision.injections or (current.status.get("drift") or {}).get("files"):
        return False
    if current.evaluated.get(current.key, _contents(revision)) != _contents(revision):
        return False
    return revision.annotations.get(APPLIED_INPUTS) == fingerprint(current.variant, revision.upstream_lock, ())


async def evaluate(current: Pass, revision: Revision) -> Evaluation:
    """Read a revision's files and compute what the variant makes of them.

    Raises:
        MutationError: The package cannot be changed as the variant says.
        Overtaken: The revision is gone.
    """
    files = await current.writer.files(revision)
    before: Resources | None = (files.get("spec") or {}).get("resources")
    listings = await _listings(current, before)
    named = f"{revision.namespace}/{revision.name}"
    mutation = await off_loop(before, lambda: mutate(current.variant, named, before, listings))
    mark = fingerprint(current.variant, revision.upstream_lock, mutation.sources)
    current.evaluated[current.key] = _contents(revision)
    return Evaluation(
        files=files,
        mutation=mutation,
        mark=mark,
        applied=revision.annotations.get(APPLIED_INPUTS) == mark,
        differs=await off_loop(
            before, lambda: differs(before or {}, mutation.resources, published=revision.is_published)
        ),
    )


def _only(resources: Resources, path: str) -> Resources:
    return {path: resources[path]} if path in resources else {}


def _contents(revision: Revision) -> Contents:
    return revision.name, revision.self_lock


async def _listings(current: Pass, resources: Resources | None) -> Mapping[tuple[str, str], Listing]:
    """Return what can be injected into the package, and have the variant woken when it changes."""
    types: set[tuple[str, str]] = set()
    if current.variant.injectors and resources is not None:
        points = await off_loop(resources, lambda: injection_points(resources))
        types = {(point.api_version, point.kind) for point in points}
    return await current.injectables(types)


async def off_loop(resources: Resources | None, work: Callable[[], T]) -> T:
    """Compute in a thread where the package is large."""
    large = resources is not None and sum(map(len, resources.values())) > LARGE
    return await asyncio.to_thread(work) if large else work()


class UpstreamFiles:
    """The files of published upstream packages, the most recently used first to stay: they do not change."""

    def __init__(self, most: int = KEPT_CHARACTERS) -> None:
        self._most = most
        self._size = 0
        self._kept: OrderedDict[tuple[str, ...], Resources] = OrderedDict()

    async def check(self, current: Pass, upstream: Revision) -> None:
        """Find out what of an upstream would keep a draft that is made of it from being mutated (2.8, pre-flight).

        Raises:
            MutationError: as ``mutate``.
            NotFound: The upstream is gone.
        """
        resources = await self._resources(current, upstream)
        named = f"{upstream.namespace}/{upstream.name}"
        await off_loop(resources, lambda: check_upstream(current.variant, named, resources))

    async def _resources(self, current: Pass, upstream: Revision) -> Resources | None:
        commit = upstream.self_lock.commit if upstream.self_lock else ""
        key = upstream.namespace, upstream.name, upstream.uid, commit or upstream.resource_version
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        body = await current.api.get(PACKAGE_REVISION_RESOURCES, upstream.namespace, upstream.name)
        resources: Resources | None = (body.get("spec") or {}).get("resources")
        if resources is not None:
            self._keep(key, resources)
        return resources

    def _keep(self, key: tuple[str, ...], resources: Resources) -> None:
        if key in self._kept:  # read by another variant meanwhile
            return
        self._kept[key] = resources
        self._size += _size(resources)
        while self._size > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._size -= _size(dropped)


def _size(resources: Resources) -> int:
    return sum(len(path) + len(text) for path, text in resources.items())


async def files_of(current: Pass, name: str) -> Resources:
    """Return the files of a revision to compare with; none where there is no such revision."""
    if not name:
        return {}
    try:
        body = await current.api.get(PACKAGE_REVISION_RESOURCES, current.variant.namespace, name)
    except NotFound:
        return {}
    return (body.get("spec") or {}).get("resources") or {}

"""One pass over one PackageVariant: what it works on and with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.packagevariant.api import Api
from controllers.packagevariant.revision_writer import RevisionWriter
from controllers.packagevariant.views import DraftGuard, Key, ObjectType, RepositoryView, Views
from controllers.runtime.status import EventRecorder
from krm.variants.mutation import Listing
from krm.variants.revisions import Lock, Owner, Revision
from krm.variants.variant import Variant

Json = dict[str, Any]
Contents = tuple[str, Lock | None]
"""Name of a package revision, and where its contents are."""

NORMAL = "Normal"
WARNING = "Warning"
DEFAULT_BRANCH = "main"
"""Assumed of a Repository that cannot be read (``variants.md`` 2.3)."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A variant as it was when the pass began, and the means to work on it."""

    key: Key
    body: Json
    variant: Variant
    api: Api
    views: Views
    writer: RevisionWriter
    recorder: EventRecorder
    guard: DraftGuard
    evaluated: dict[Key, Contents]
    """Of each variant the contents whose files were looked at last; shared by all passes."""
    types: set[ObjectType] = field(default_factory=set)
    """What can be injected into the targets that this pass has looked at."""

    @property
    def status(self) -> Json:
        """The variant's status when the pass began."""
        found: Json = self.body.get("status") or {}
        return found

    @property
    def known_targets(self) -> Mapping[str, Json]:
        """The ``downstreamTargets`` of the status, by name."""
        listed = self.status.get("downstreamTargets") or ()
        return {target["name"]: target for target in listed if target.get("name")}

    def repository(self, name: str) -> RepositoryView | None:
        """Return a Repository of the variant's namespace, if it exists."""
        found = self.views.repository(self.variant.namespace, name)
        return found if found is not None and found.exists else None

    def branch(self, repository: str) -> str:
        """Return the branch of a repository whose head placeholders follow."""
        found = self.repository(repository)
        return found.branch if found is not None else DEFAULT_BRANCH

    def is_placeholder(self, revision: Revision) -> bool:
        """Whether a revision follows its repository's branch."""
        return revision.is_placeholder(self.branch(revision.repository))

    def is_alive(self, owner: Owner) -> bool:
        """Whether an owner of a revision in the variant's namespace still exists."""
        return owner.uid == self.variant.uid or self.views.is_alive(owner, self.variant.namespace)

    async def injectables(self, types: Iterable[ObjectType] = ()) -> Mapping[ObjectType, Listing]:
        """Return what can be injected, and have the variant woken by changes of it and of what earlier targets asked for."""
        self.types.update(types)
        return await self.views.injectables(self.key, self.variant.namespace, set(self.types))

    def tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an Event on the variant."""
        self.recorder.event(self.body, WARNING if warning else NORMAL, reason, message)

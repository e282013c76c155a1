"""What the informers keep of each object: of ten thousand variants a digest of the spec, and nothing that no decision reads.

Source: ``variants.md`` 3, 6.9.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from krm.meta.conditions import find_condition
from krm.variants.sets.plan import Existing
from krm.variants.sets.progress import VariantState
from krm.variants.sets.targets import Kind, SelectedObject
from krm.variants.sets.vocabulary import ALLOW_DELETIONS, APPROVE_WAVE, REPOSITORY, SET_LABEL
from krm.variants.vocabulary import PAUSED

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

DEFAULT_BRANCH: Final = "main"
_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class CachedSet:
    """A PackageVariantSet, whole: there are few."""

    namespace: str
    name: str
    resource_version: str
    uid: str
    generation: int
    deleting: bool
    orders: tuple[str, ...]
    """What people say by annotations: paused, deletions allowed, waves approved."""
    body: Json
    """As on the wire, without managedFields; nobody changes it."""

    @classmethod
    def of(cls, body: Json) -> "CachedSet":
        """Read a PackageVariantSet as it is on the wire, valid or not."""
        meta = body["metadata"]
        annotations = meta.get("annotations") or {}
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            resource_version=meta.get("resourceVersion", ""),
            uid=meta.get("uid", ""),
            generation=meta.get("generation") or 0,
            deleting=bool(meta.get("deletionTimestamp")),
            orders=tuple(str(annotations.get(one) or "") for one in (PAUSED, ALLOW_DELETIONS, APPROVE_WAVE)),
            body={**body, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}},
        )

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Member:
    """A PackageVariant, of a set or not."""

    namespace: str
    set_uid: str
    """UID of the set that made it; empty for one that a person made."""
    ready: str
    """Status of its condition Ready: True, False or empty."""
    reason: str
    """Reason of that condition."""
    existing: Existing
    """What plans read of it; ``ours`` is true for every one that a set made."""

    @classmethod
    def of(cls, body: Json) -> "Member":
        """Read a PackageVariant as it is on the wire."""
        meta = body["metadata"]
        set_uid = str((meta.get("labels") or {}).get(SET_LABEL) or "")
        ready = find_condition((body.get("status") or {}).get("conditions"), "Ready") or {}
        existing = Existing.of(body, set_uid)
        paused = existing.annotations.get(PAUSED)
        return cls(
            namespace=meta.get("namespace", ""),
            set_uid=set_uid,
            ready=str(ready.get("status") or ""),
            reason=str(ready.get("reason") or ""),
            existing=replace(existing, labels=_NOTHING, annotations={PAUSED: paused} if paused else _NOTHING),
        )

    @property
    def name(self) -> str:
        """Name of the variant."""
        return self.existing.name

    @property
    def resource_version(self) -> str:
        """Version of the object."""
        return self.existing.resource_version

    @property
    def paused(self) -> bool:
        """Whether a person has taken it out of what its set does."""
        return self.existing.annotations.get(PAUSED) == "true"

    @property
    def is_ready(self) -> bool:
        """Whether it is Ready with the spec that it has."""
        return self.existing.ready and self.existing.observed_generation >= self.existing.generation

    def state(self, *, published: bool) -> VariantState:
        """Return what rollouts read of it."""
        one = self.existing
        return VariantState(
            generation=one.generation,
            observed_generation=one.observed_generation,
            ready=self.ready,
            reason=self.reason,
            stalled=one.stalled,
            published=published,
            paused=self.paused,
        )

    @property
    def wants(self) -> object:
        """What of it decides which writes its set makes: a change of it is looked at soon."""
        one = self.existing
        return self.set_uid, one.uid, one.pair, one.digest, one.terminating, self.paused

    @property
    def told(self) -> object:
        """What of it the status of its set tells."""
        one = self.existing
        is_seen = one.observed_generation >= one.generation  # a variant that fails as before has failed again
        return self.ready, self.reason, is_seen, one.stalled, one.message


@dataclass(frozen=True, slots=True)
class CachedRepository:
    """A Repository: its metadata, and where it publishes to."""

    namespace: str
    name: str
    resource_version: str
    branch: str
    metadata: SelectedObject

    @classmethod
    def of(cls, body: Json) -> "CachedRepository":
        """Read a Repository as it is on the wire."""
        meta, git = body["metadata"], (body.get("spec") or {}).get("git") or {}
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            resource_version=meta.get("resourceVersion", ""),
            branch=git.get("branch") or DEFAULT_BRANCH,
            metadata=SelectedObject.of(body, REPOSITORY),
        )


@dataclass(frozen=True, slots=True)
class Selectable:
    """An object of a kind that targets select: its metadata."""

    namespace: str
    """Empty for an object of the cluster as a whole."""
    name: str
    resource_version: str
    metadata: SelectedObject

    @classmethod
    def of(cls, body: Json, kind: Kind) -> "Selectable":
        """Read an object, or its metadata alone."""
        meta = body["metadata"]
        one = SelectedObject.of(body, kind)
        return cls(one.namespace, one.name, meta.get("resourceVersion", ""), one)

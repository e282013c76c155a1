"""What the informers keep of each object: little, so that ten thousand of them fit, and all that decides whom an event wakes."""

from dataclasses import dataclass
from typing import Any, Final

import orjson

from krm.meta.conditions import find_condition
from krm.variants.variant import InjectionSelector, UpstreamSpec, Variant
from krm.variants.vocabulary import FINALIZER

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""

DEFAULT_BRANCH: Final = "main"


@dataclass(frozen=True, slots=True)
class ConditionState:
    """A condition of a variant as metrics and guards read it."""

    type: str
    status: str
    reason: str
    generation: int
    """``observedGeneration``, 0 where it is not set."""


@dataclass(frozen=True, slots=True)
class CachedVariant:
    """A PackageVariant: whom it concerns as values, the rest as text."""

    namespace: str
    name: str
    resource_version: str
    uid: str
    generation: int
    deleting: bool
    finalized: bool
    """Whether it carries our finalizer."""
    paused: bool
    upstream: UpstreamSpec
    downstream_repo: str
    downstream_package: str
    adopts: bool
    injectors: tuple[InjectionSelector, ...]
    conditions: tuple[ConditionState, ...]
    observed_generation: int
    text: bytes
    """The whole object as JSON, without managedFields."""

    @classmethod
    def of(cls, body: Json) -> "CachedVariant":
        """Read a PackageVariant as it is on the wire, valid or not."""
        meta, status, variant = body["metadata"], body.get("status") or {}, Variant.of(body)
        return cls(
            namespace=variant.namespace,
            name=variant.name,
            resource_version=meta.get("resourceVersion", ""),
            uid=variant.uid,
            generation=variant.generation,
            deleting=bool(meta.get("deletionTimestamp")),
            finalized=FINALIZER in (meta.get("finalizers") or ()),
            paused=variant.paused,
            upstream=variant.upstream,
            downstream_repo=variant.downstream_repo,
            downstream_package=variant.downstream_package,
            adopts=variant.adopts,
            injectors=tuple(variant.injectors),
            conditions=tuple(map(_condition, status.get("conditions") or ())),
            observed_generation=status.get("observedGeneration") or 0,
            text=orjson.dumps({**body, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}),
        )

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def source_package(self) -> tuple[str, str, str]:
        """Namespace, repository and package of the source."""
        return self.namespace, self.upstream.repo, self.upstream.package

    @property
    def target_package(self) -> tuple[str, str, str]:
        """Namespace, repository and package of the target."""
        return self.namespace, self.downstream_repo, self.downstream_package

    @property
    def injected_names(self) -> frozenset[str]:
        """Names of the objects that its selectors ask for, of whatever kind."""
        return frozenset(str(one.name) for one in self.injectors if one.name)

    def condition(self, type_: str) -> ConditionState | None:
        """Return the condition of a type."""
        return next((one for one in self.conditions if one.type == type_), None)

    def body(self) -> Json:
        """Return the object as it is on the wire, a new copy at each call."""
        found: Json = orjson.loads(self.text)
        return found


def _condition(written: Json) -> ConditionState:
    return ConditionState(
        type=written.get("type") or "",
        status=written.get("status") or "",
        reason=written.get("reason") or "",
        generation=written.get("observedGeneration") or 0,
    )


@dataclass(frozen=True, slots=True)
class CachedRepository:
    """A Repository as far as variants are concerned."""

    namespace: str
    name: str
    resource_version: str
    branch: str
    deployment: bool
    secret: str
    """Name of the Secret with its credentials; empty where there is none."""
    ready: bool

    @classmethod
    def of(cls, body: Json) -> "CachedRepository":
        """Read a Repository as it is on the wire."""
        meta, spec = body["metadata"], body.get("spec") or {}
        git = spec.get("git") or {}
        ready = find_condition((body.get("status") or {}).get("conditions"), "Ready")
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            resource_version=meta.get("resourceVersion", ""),
            branch=git.get("branch") or DEFAULT_BRANCH,
            deployment=bool(spec.get("deployment")),
            secret=(git.get("secretRef") or {}).get("name") or "",
            ready=ready is not None and ready.get("status") == "True",
        )

    @property
    def settings(self) -> tuple[str, bool, str]:
        """What of it decides what a variant does."""
        return self.branch, self.deployment, self.secret

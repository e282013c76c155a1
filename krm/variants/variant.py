"""A PackageVariant as the rules read it: one shape for every spelling, defaults applied.

What is written on the wire stays as the user wrote it. Source: ``variants.md`` 1.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from krm.variants.vocabulary import PAUSED

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Which package revision is the source; all as the user wrote it."""

    repo: str
    package: str
    revision: int | str | None
    workspace: str
    tag: str
    allow_downgrade: bool


@dataclass(frozen=True, slots=True)
class InjectionSelector:
    """Chooses an object of the cluster; a part that is None matches any, an empty group is the core group."""

    name: str
    group: str | None
    version: str | None
    kind: str | None


@dataclass(frozen=True, slots=True)
class Variant:
    """A valid PackageVariant. Its upstream and its injectors can be hashed, whatever was written."""

    namespace: str
    name: str
    uid: str
    generation: int
    upstream: UpstreamSpec
    downstream_repo: str
    downstream_package: str
    adopts: bool
    orphans: bool
    """Whether package revisions are kept when the variant goes; an unknown policy keeps them, too."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    context_data: Mapping[str, str]
    context_remove: Sequence[str]
    mutators: Sequence[Json]
    """Functions as on the wire."""
    validators: Sequence[Json]
    injectors: Sequence[InjectionSelector]
    paused: bool
    known_targets: tuple[str, ...] = ()
    """Names of package revisions in ``status.downstreamTargets``: what was kept when the variant was last worked on."""

    @classmethod
    def of(cls, body: Json) -> "Variant":
        """Read a PackageVariant as it is on the wire; one that is invalid gives a value of no meaning, but no error.

        Ask ``validation.problems`` first, except for a variant that is being deleted.
        """
        meta, spec = body["metadata"], _object(body.get("spec"))
        upstream, downstream = _object(spec.get("upstream")), _object(spec.get("downstream"))
        context, pipeline = _object(spec.get("packageContext")), _object(spec.get("pipeline"))
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            generation=meta.get("generation") or 0,
            upstream=UpstreamSpec(
                repo=_text(upstream.get("repo")),
                package=_text(upstream.get("package")),
                revision=_revision(upstream.get("revision")),
                workspace=_text(upstream.get("workspaceName")),
                tag=_text(upstream.get("tag")),
                allow_downgrade=bool(upstream.get("allowDowngrade")),
            ),
            downstream_repo=_text(downstream.get("repo")),
            downstream_package=_text(downstream.get("package")),
            adopts=spec.get("adoptionPolicy") == "adoptExisting",
            orphans=spec.get("deletionPolicy") not in (None, "", "delete"),
            labels=_object(spec.get("labels")),
            annotations=_object(spec.get("annotations")),
            context_data=_object(context.get("data")),
            context_remove=_list(context.get("removeKeys")),
            mutators=_objects(pipeline.get("mutators")),
            validators=_objects(pipeline.get("validators")),
            injectors=tuple(map(_selector, _injectors(spec))),
            paused=bool(spec.get("suspend")) or (meta.get("annotations") or {}).get(PAUSED) == "true",
            known_targets=_targets(body),
        )


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _revision(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Json]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _targets(body: Json) -> tuple[str, ...]:
    listed = _objects(_object(body.get("status")).get("downstreamTargets"))
    return tuple(str(one["name"]) for one in listed if one.get("name"))


def _injectors(spec: Json) -> list[Json]:
    """Return the selectors; one alone may stand for a list of one (C-27)."""
    written = spec.get("injectors") or []
    return _objects([written] if isinstance(written, dict) else written)


def _selector(written: Json) -> InjectionSelector:
    return InjectionSelector(
        name=_text(written.get("name")),
        group=_text_or_none(written.get("group")),
        version=_text_or_none(written.get("version")),
        kind=_text_or_none(written.get("kind")),
    )

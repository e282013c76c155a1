"""Checks of what every object carries: names, labels, annotations, finalizers, owners.

Each function returns one cause per problem. Source: ``kube-api.md`` 2.2.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from apiserver.machinery.definition import Definition, Json
from krm.meta.errors import Cause, forbidden_value, invalid_value, required_value
from krm.meta.names import (
    dns_label_problem,
    label_value_problem,
    path_segment_problem,
    qualified_name_problem,
    subdomain_problem,
)

MAX_ANNOTATIONS = 262_144
"""Bytes of all annotation keys and values together."""
GC_FINALIZERS = ("orphan", "foregroundDeletion")
"""Finalizers that belong to the garbage collector."""
IMMUTABLE = ("name", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that an update cannot change; left out means unchanged."""
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")


def metadata_causes(definition: Definition, metadata: Json) -> list[Cause]:
    """Check an object's metadata."""
    return list(
        chain(
            _name_causes(definition, metadata),
            _label_causes(metadata.get("labels") or {}),
            _annotation_causes(metadata.get("annotations") or {}),
            _finalizer_causes(metadata.get("finalizers") or []),
            _owner_causes(metadata.get("ownerReferences") or []),
        )
    )


def update_causes(old: Json, new: Json) -> list[Cause]:
    """Check a change of metadata: what cannot change, and no new finalizers once deletion has begun."""
    causes = [
        invalid_value(f"metadata.{key}", new.get(key), "field is immutable")
        for key in IMMUTABLE
        if new.get(key) != old.get(key)
    ]
    added = [f for f in new.get("finalizers") or () if f not in (old.get("finalizers") or ())]
    if old.get("deletionTimestamp") and added:
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
        causes.append(forbidden_value("metadata.finalizers", detail))
    return causes


def finalizer_warnings(definition: Definition, finalizers: Sequence[str]) -> list[str]:
    """Return a warning per finalizer that names no domain, for kinds outside the core group."""
    if not definition.group:
        return []
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts'
        for name in finalizers
        if "/" not in name and name not in GC_FINALIZERS
    ]


def _name_causes(definition: Definition, metadata: Json) -> Iterator[Cause]:
    name = metadata.get("name") or ""
    if not name:
        yield required_value("metadata.name", "name or generateName is required")
    elif problem := path_segment_problem(name) or _name_problem(definition, name):
        yield invalid_value("metadata.name", name[:512], problem)


def _name_problem(definition: Definition, name: str) -> str:
    return dns_label_problem(name) if definition.label_name else subdomain_problem(name)


def _label_causes(labels: Json) -> Iterator[Cause]:
    for key, value in labels.items():
        if problem := qualified_name_problem(key):
            yield invalid_value("metadata.labels", key[:512], problem)
        if problem := label_value_problem(value):
            yield invalid_value("metadata.labels", value[:512], problem)


def _annotation_causes(annotations: Json) -> Iterator[Cause]:
    total = 0
    for key, value in annotations.items():
        total += len(key.encode()) + len(value.encode())
        if problem := qualified_name_problem(key.lower()):
            yield invalid_value("metadata.annotations", key[:512], problem)
    if total > MAX_ANNOTATIONS:
        yield Cause(
            "FieldValueTooLong", f"Too long: may not be more than {MAX_ANNOTATIONS} bytes", "metadata.annotations"
        )


def _finalizer_causes(finalizers: Sequence[str]) -> Iterator[Cause]:
    for name in finalizers:
        if problem := qualified_name_problem(name):
            yield invalid_value("metadata.finalizers", name[:512], problem)
    if all(name in finalizers for name in GC_FINALIZERS):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", list(finalizers), detail)


def _owner_causes(owners: Sequence[Json]) -> Iterator[Cause]:
    for index, owner in enumerate(owners):
        field = f"metadata.ownerReferences[{index}]"
        for key in _OWNER_FIELDS:
            if not owner.get(key):
                yield required_value(f"{field}.{key}", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid_value(field, owner, "v1, Kind=Event is disallowed from being an owner")
    controllers = [owner.get("name", "") for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        detail = f"only one reference can have controller set to true, found {len(controllers)}"
        yield invalid_value("metadata.ownerReferences", controllers, detail)

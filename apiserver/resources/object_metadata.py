"""Checks of what every object carries: names, labels, annotations, finalizers, owners.

Each function returns one cause per problem. Source: ``kube-api.md`` 2.2.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

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
MAX_SHOWN = 100
"""Problems, or owners in one problem, that an error shows."""
GC_FINALIZERS = ("orphan", "foregroundDeletion")
"""Finalizers that belong to the garbage collector."""
IMMUTABLE = ("name", "namespace", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that an update cannot change; left out means unchanged."""
KEPT = ("resourceVersion", "generation", "creationTimestamp")
"""Metadata that is the server's alone: whatever an update says of it is passed over."""


def metadata_causes(definition: Definition, metadata: Json) -> list[Cause]:
    """Check an object's metadata; at most ``MAX_SHOWN`` problems are told, since a body can hold a million of them."""
    return list(islice(chain(_name_causes(definition, metadata), _client_causes(definition, metadata)), MAX_SHOWN))


def client_metadata_causes(definition: Definition, metadata: Json) -> list[Cause]:
    """Check what of an object's metadata is its clients', where the name is given by the server."""
    return list(islice(_client_causes(definition, metadata), MAX_SHOWN))


def _client_causes(definition: Definition, metadata: Json) -> Iterator[Cause]:
    yield from _label_causes(metadata.get("labels") or {})
    yield from _annotation_causes(metadata.get("annotations") or {})
    yield from _finalizer_causes(definition, metadata.get("finalizers") or [])
    yield from _owner_causes(metadata.get("ownerReferences") or [])


def update_causes(old: Json, new: Json) -> list[Cause]:
    """Check a change of metadata: what cannot change, and no new finalizers once deletion has begun."""
    causes = [
        invalid_value(f"metadata.{key}", new.get(key), "field is immutable")
        for key in IMMUTABLE
        if new.get(key) != old.get(key)
    ]
    present = frozenset(old.get("finalizers") or ())
    added = [name for name in new.get("finalizers") or () if name not in present]
    if old.get("deletionTimestamp") and added:
        shown = ", ".join(f'"{name}"' for name in added)
        detail = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
        )
        causes.append(forbidden_value("metadata.finalizers", detail))
    return causes


def finalizer_warnings(definition: Definition, finalizers: Sequence[str]) -> list[str]:
    """Return a warning per finalizer that names no domain; Kubernetes' own kinds refuse such names instead."""
    if _is_built_in(definition):
        return []
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental conflicts '
        "with other finalizer writers"
        for name in finalizers
        if "/" not in name and name not in GC_FINALIZERS
    ]


def _name_causes(definition: Definition, metadata: Json) -> Iterator[Cause]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    if prefix and (problem := _name_problem(definition, _completed(prefix))):
        yield invalid_value("metadata.generateName", prefix[:512], problem)
    if not name:
        yield required_value("metadata.name", "name or generateName is required")
    elif problem := _name_problem(definition, name):
        yield invalid_value("metadata.name", name[:512], problem)


def _completed(prefix: str) -> str:
    """Let a generateName end as the name made from it may: with something after the dash."""
    return f"{prefix[:-1]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix


def _name_problem(definition: Definition, name: str) -> str:
    if definition.free_name:
        return path_segment_problem(name)
    return dns_label_problem(name) if definition.label_name else subdomain_problem(name)


def finalizer_name_problem(name: str) -> str:
    """Check a finalizer of one of Kubernetes' own kinds: a standard one, or one that names its domain."""
    if "/" in name:
        return qualified_name_problem(name)
    if name in (*GC_FINALIZERS, "kubernetes"):
        return ""
    return "name is neither a standard finalizer name nor is it fully qualified"


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


def _finalizer_causes(definition: Definition, finalizers: Sequence[str]) -> Iterator[Cause]:
    for name in finalizers:
        if problem := qualified_name_problem(name):
            yield invalid_value("metadata.finalizers", name[:512], problem)
    if all(name in finalizers for name in GC_FINALIZERS):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", list(finalizers), detail)
    if _is_built_in(definition):
        for index, name in enumerate(finalizers):
            if "/" not in name and (problem := finalizer_name_problem(name)):
                yield invalid_value(f"metadata.finalizers[{index}]", name[:512], problem)


def _is_built_in(definition: Definition) -> bool:
    """Tell whether it is one of kube-apiserver's own kinds: those that take strategic merge patches.

    CustomResourceDefinitions do, too, but are served by an extension that has looser rules.
    """
    return definition.strategic and definition.group != "apiextensions.k8s.io"


def _owner_causes(owners: Sequence[Json]) -> Iterator[Cause]:
    field = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        if not owner.get("apiVersion"):
            yield invalid_value(f"{field}.apiVersion", "", "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid_value(f"{field}.{key}", "", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid_value(field, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            named = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {named}'
                )
                yield invalid_value(field, list(owners[:MAX_SHOWN]), detail)
                if len(owners) > MAX_SHOWN:
                    return
            controller = controller or named

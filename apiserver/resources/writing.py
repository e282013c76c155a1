"""The steps of a write, the same for every kind: what the server sets, keeps, refuses and counts.

All of them are functions of objects; storing the result is the caller's. Objects are changed only where it
is said. Source: ``kube-api.md`` 2.1 to 2.3, 2.8 and 2.11.
"""

import copy
import operator
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import DeleteOptions, WriteOptions
from apiserver.machinery.schema import CompiledSchema
from apiserver.resources.object_metadata import (
    GC_FINALIZERS,
    IMMUTABLE,
    KEPT,
    finalizer_warnings,
    metadata_causes,
    update_causes,
)
from krm.meta.conditions import timestamp
from krm.meta.errors import BadRequest, Conflict, Invalid, ResourceName, invalid_value

NAME_ATTEMPTS = 8
"""Names tried for one generateName."""
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_PREFIX_LENGTH = 58
_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation")
_OMIT_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "selfLink")


def generated_name(prefix: str) -> str:
    """Return a name from a generateName, with five random characters."""
    return prefix[:_PREFIX_LENGTH] + "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH))


def stamp_new(definition: Definition, obj: Json, namespace: str | None) -> None:
    """Set, in place, what the server sets on a new object, in place of what the client sent for it.

    Raises:
        BadRequest: the client sent a resourceVersion.
    """
    metadata = obj["metadata"]
    if metadata.pop("resourceVersion", ""):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    for key in _SERVER_SET:
        metadata.pop(key, None)
    if definition.namespaced and namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"])
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp()
    if definition.generation:
        metadata["generation"] = 1
    _tidy(metadata)


def prepare_create(
    definition: Definition, schema: CompiledSchema, wanted: Json, namespace: str | None, options: WriteOptions
) -> Json:
    """Return the object to store for a create.

    Raises:
        BadRequest: the client sent a resourceVersion.
        Invalid: metadata, schema or the kind's own rules are broken.
    """
    obj = copy.deepcopy(wanted)
    stamp_new(definition, obj, namespace)
    if definition.status:
        obj.pop("status", None)
    schema.default(obj)
    drop_repeated_owners(obj["metadata"], options)
    if definition.prepare:
        definition.prepare(obj, None)
    check_valid(definition, schema, obj, None)
    options.warnings.extend(finalizer_warnings(definition, obj["metadata"].get("finalizers") or []))
    return obj


def check_revision(definition: Definition, current: Json, wanted: Json) -> None:
    """Compare revision and uid that a writer saw with those in force.

    Raises:
        Conflict: another writer was first, or the object is another one of the same name.
        Invalid: the revision is missing and the kind requires it.
    """
    seen, now = wanted["metadata"], current["metadata"]
    name = now["name"]
    if (uid := seen.get("uid")) and uid != now.get("uid"):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {now.get('uid')}"
        raise Conflict.of(definition.resource, name, why)
    revision = seen.get("resourceVersion") or ""
    if revision and revision != now.get("resourceVersion"):
        raise Conflict.of(definition.resource, name)
    if not revision and not definition.unconditional_update:
        # As Kubernetes words it: the resource, not the kind, and the revision as a number.
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise Invalid.of(definition.plural, definition.group, name, [cause])


def prepare_update(
    definition: Definition,
    schema: CompiledSchema,
    current: Json,
    wanted: Json,
    options: WriteOptions,
    subresource: str = "",
    changed: Callable[[Json, Json], bool] = operator.ne,
) -> Json | None:
    """Return the object to store for an update, or None if it would change nothing.

    ``current`` carries its resourceVersion. The main resource keeps status, ``status`` keeps all else. ``changed``
    tells whether two objects differ, and may record in the second who made it of the first.

    Raises:
        Conflict: see :func:`check_revision`.
        Invalid: metadata, schema or the kind's own rules are broken.
    """
    check_revision(definition, current, wanted)
    obj = _status_update(current, wanted) if subresource == "status" else _main_update(definition, current, wanted)
    schema.default(obj)
    if not subresource:
        drop_repeated_owners(obj["metadata"], options)
    if definition.prepare:
        definition.prepare(obj, current)
    if not changed(current, obj):
        return None
    bump_generation(definition, current, obj)
    check_valid(definition, schema, obj, current)
    return obj


def _main_update(definition: Definition, current: Json, wanted: Json) -> Json:
    obj = copy.deepcopy(wanted)
    metadata, kept = obj["metadata"], current["metadata"]
    for key in (*IMMUTABLE, "uid"):
        if not metadata.get(key) and kept.get(key) is not None:
            metadata[key] = kept[key]
    for key in KEPT:
        _copy_or_drop(metadata, kept, key)
    if definition.status:
        _copy_or_drop(obj, current, "status")
    _tidy(metadata)
    return obj


def _status_update(current: Json, wanted: Json) -> Json:
    obj = copy.deepcopy(current)
    _copy_or_drop(obj, copy.deepcopy(wanted), "status")
    # An apply says in it who manages what; of others it is ignored.
    _copy_or_drop(obj["metadata"], wanted["metadata"], "managedFields")
    return obj


def bump_generation(definition: Definition, current: Json, obj: Json) -> None:
    """Count, in place, a change of anything but metadata (and status, where that is a subresource)."""
    if definition.generation and _counted(definition, current) != _counted(definition, obj):
        obj["metadata"]["generation"] = current["metadata"].get("generation", 0) + 1


def _counted(definition: Definition, obj: Json) -> Json:
    uncounted = ("metadata", "status") if definition.status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in uncounted}


def check_valid(definition: Definition, schema: CompiledSchema, new: Json, old: Json | None) -> None:
    """Check metadata, schema and the kind's own rules.

    Raises:
        Invalid: with every problem found.
    """
    causes = metadata_causes(definition, new["metadata"])
    if old is not None:
        causes += update_causes(old["metadata"], new["metadata"])
    broken = schema.validate(new, old)
    causes += broken
    if definition.validate and not broken:
        causes += definition.validate(new, old)
    if causes:
        name = new["metadata"].get("name") or new["metadata"].get("generateName") or ""
        # The rules of a kind that is stored as another are those of the other.
        group = (definition.stored_as or definition.resource).group
        raise Invalid.of(definition.kind, group, name, causes)


def drop_repeated_owners(metadata: Json, options: WriteOptions) -> None:
    """Remove identical owner references, in place, with a warning."""
    owners: list[Any] = metadata.get("ownerReferences") or []
    if not owners:
        return
    counted = Counter(orjson.dumps(owner, option=orjson.OPT_SORT_KEYS) for owner in owners)
    if len(counted) < len(owners):
        metadata["ownerReferences"] = [orjson.loads(owner) for owner in counted]
        repeated = sorted({str(orjson.loads(owner).get("uid")) for owner, times in counted.items() if times > 1})
        options.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
            "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(repeated)}"
        )


def check_preconditions(definition: Definition, current: Json, options: DeleteOptions) -> None:
    """Compare a delete's preconditions with the object.

    Raises:
        Conflict: one does not hold.
    """
    metadata = current["metadata"]
    for label, expected, actual, guess in (
        ("UID", options.uid, metadata.get("uid"), "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata.get("resourceVersion"), "modified"),
    ):
        if expected and expected != actual:
            why = f"the {label} in the precondition ({expected}) does not match the {label} in record ({actual})"
            # Kubernetes names the kind here, where other conflicts name the resource.
            kind = ResourceName(definition.kind, definition.group)
            raise Conflict.of(kind, metadata["name"], f"{why}. The object might have been {guess}")


def has_finalizers(obj: Json) -> bool:
    """Tell whether finalizers hold an object."""
    return bool(obj["metadata"].get("finalizers"))


def is_terminating(obj: Json) -> bool:
    """Tell whether deletion has begun."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def collector_finalizers(present: Sequence[str], propagation: str) -> list[str]:
    """Return an object's finalizers as a delete with this policy ("": none was given) leaves them.

    A policy decides anew which of the garbage collector's finalizers apply; without one, those that are there do.
    """
    orphan = propagation == "Orphan" or (not propagation and "orphan" in present)
    foreground = propagation == "Foreground" or (not propagation and "foregroundDeletion" in present)
    wanted = [name for name in present if name not in GC_FINALIZERS]
    wanted += [name for name, applies in zip(GC_FINALIZERS, (orphan, foreground), strict=True) if applies]
    return list(present) if set(wanted) == set(present) else wanted


def with_collector_finalizers(current: Json, propagation: str) -> Json:
    """Return a copy with the finalizers that a delete with this policy leaves; see :func:`collector_finalizers`."""
    obj = copy.deepcopy(current)
    metadata = obj["metadata"]
    metadata["finalizers"] = collector_finalizers(metadata.get("finalizers") or (), propagation)
    _tidy(metadata)
    return obj


def mark_terminating(definition: Definition, obj: Json) -> None:
    """Begin deletion, in place; once begun, nothing changes."""
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp"):
        return
    metadata["deletionTimestamp"] = timestamp()
    metadata["deletionGracePeriodSeconds"] = 0
    if definition.generation:
        metadata["generation"] = metadata.get("generation", 0) + 1


def _copy_or_drop(target: Json, source: Json, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _tidy(metadata: Json) -> None:
    """Drop empty maps, lists and texts, so that "none" has one form."""
    for key in _OMIT_EMPTY:
        if key in metadata and not metadata[key]:
            del metadata[key]

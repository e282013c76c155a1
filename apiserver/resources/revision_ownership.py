"""Who manages the fields of package revisions and of their files: what a write really changes, recorded.

A client sends whole objects, of which the engine takes some parts and ignores the rest; only what it takes counts.
Who manages the files of a revision is kept with the revision, as of a subresource: files have no object of their own.
Source: ``kube-api.md`` 2.10 and 2.13; ``porch-api.md`` 4 and 5.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiserver.engine.revision_body import lifecycle_of, pipeline_condition
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.managers import same_but_times
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.rest import Change, WriteOptions
from apiserver.rules.gate_bypass import BYPASS
from apiserver.rules.gate_fields import replaced_conditions
from apiserver.rules.lifecycle import Door, Lifecycle
from apiserver.rules.pipeline_gate import with_condition, with_gate
from apiserver.rules.revision_changes import taken_metadata

Json = dict[str, Any]

FILES: Final = "resources"
"""The subresource under which a revision keeps who manages its files."""
MAX_TRACKED_FILES: Final = 500
"""Files of a package that are managed one by one; those of a larger one are managed together."""


def recorded(change: Change, ownership: Ownership, options: WriteOptions, door: Door) -> Change:
    """Return a change that also says, in managedFields, who made it."""

    def record(current: Json) -> Json:
        wanted = change(copy.deepcopy(current))
        taken = _taken(current, wanted, door)
        ownership.changed(current, taken, options)
        _set_managers(wanted, without_bypass(taken["metadata"].get("managedFields")))
        return wanted

    return record


def without_bypass(entries: list[Json] | None) -> list[Json] | None:
    """Return managedFields in which nobody manages the annotation that is never stored; an apply says that it does."""
    key = f"f:{BYPASS}"
    kept = []
    for entry in entries or ():
        metadata = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        annotations = metadata.get("f:annotations") or {}
        if key not in annotations:
            kept.append(entry)
            continue
        rest = {name: fields for name, fields in annotations.items() if name != key}
        others = {name: fields for name, fields in metadata.items() if name != "f:annotations"}
        metadata = {"f:annotations": rest, **others} if rest else others
        fields = {name: value for name, value in entry["fieldsV1"].items() if name != "f:metadata"}
        kept.append({**entry, "fieldsV1": {"f:metadata": metadata, **fields} if metadata else fields})
    return None if entries is None else kept


def _taken(current: Json, wanted: Json, door: Door) -> Json:
    """Return the current object with what the engine takes of a wanted one."""
    given, spec = wanted.get("spec") or {}, dict(current["spec"])
    spec["lifecycle"] = given.get("lifecycle") or spec.get("lifecycle") or str(Lifecycle.DRAFT)
    metadata, status = dict(current["metadata"]), dict(current["status"])
    if door is Door.MAIN:
        metadata = _taken_metadata(current["metadata"], wanted.get("metadata") or {})
        if lifecycle_of(current) is Lifecycle.DRAFT:
            package = {key: part for key, part in (given.get("packageMetadata") or {}).items() if part is not None}
            spec["packageMetadata"] = {**(spec.get("packageMetadata") or {}), **package}
            if given.get("readinessGates") is not None:
                spec["readinessGates"] = with_gate(given["readinessGates"])
            if (conditions := replaced_conditions(current, wanted)) is not None:
                status["conditions"] = with_condition(conditions, pipeline_condition(current))
    elif "managedFields" in (wanted.get("metadata") or {}):
        metadata["managedFields"] = wanted["metadata"]["managedFields"]
    return {**current, "metadata": metadata, "spec": spec, "status": status}


def _taken_metadata(current: Json, given: Json) -> Json:
    metadata = taken_metadata(current, given)
    if "managedFields" in given:
        metadata["managedFields"] = given["managedFields"]
    return metadata


@dataclass(frozen=True, slots=True)
class FileManagers:
    """The managedFields of a revision after its files were written: what the write changed decides between the two."""

    if_changed: list[Json]
    if_same: list[Json]


def recorded_files(
    revision: Json, current: Json, wanted: Json, ownership: Ownership, options: WriteOptions
) -> FileManagers:
    """Return a revision's managedFields after somebody wanted other files than the current ones."""
    taken = {**current, "metadata": dict(current["metadata"]), "spec": dict(current["spec"])}
    files = taken["spec"]["resources"] = (wanted.get("spec") or {}).get("resources") or {}
    _set_managers(taken, (wanted.get("metadata") or {}).get("managedFields"))
    ownership.changed(current, taken, options)
    found = taken["metadata"].get("managedFields") or []
    if len(files) > MAX_TRACKED_FILES:
        found = [{**entry, "fieldsV1": _together(entry["fieldsV1"])} for entry in found]
    present = revision["metadata"].get("managedFields") or []
    others = [entry for entry in present if entry.get("subresource") != FILES]
    changed = [*others, *({**entry, "subresource": FILES} for entry in found)]
    return FileManagers(changed, present if same_but_times(changed, present) else changed)


def _together(fields: Fields) -> Fields:
    """Return a set of fields with all files as one."""
    spec = fields.get("f:spec") or {}
    return {**fields, "f:spec": {**spec, "f:resources": {}}} if "f:resources" in spec else fields


def file_managers(entries: Sequence[Json] | None) -> list[Json]:
    """Return those entries of a revision's managedFields that are about its files, as the files' object shows them."""
    found = [entry for entry in entries or () if entry.get("subresource") == FILES]
    return [{key: value for key, value in entry.items() if key != "subresource"} for entry in found]


def _set_managers(obj: Json, entries: list[Json] | None) -> None:
    if entries is None:
        obj["metadata"].pop("managedFields", None)
    else:
        obj["metadata"]["managedFields"] = entries

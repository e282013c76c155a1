"""What a client may change in a package revision, and what a change means for its package.

Pure functions over decoded objects. Source: ``porch-api.md`` 3.1, 4.1 to 4.3; ``decisions.md`` 14, 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.rules.lifecycle import GROUP, KIND, Lifecycle
from apiserver.rules.managed_labels import check_create, check_update
from krm.api.revision_name import label_problem, package_path_problem
from krm.meta.errors import (
    STALE,
    BadRequest,
    Cause,
    Conflict,
    Invalid,
    ResourceName,
    invalid_value,
    required_value,
)

Json = dict[str, Any]

CLIENT_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "managedFields")
"""The parts of ObjectMeta that clients own."""

INTERNAL = "Internal error occurred: "
"""Upstream wraps its refusals so, and its client's tests compare the text (``decisions.md`` 15)."""


def check_new(wanted: Json) -> None:
    """Refuse a create whose fields break a rule.

    Raises:
        BadRequest: no repository is named.
        Invalid: one cause per problem.
    """
    spec = wanted.get("spec") or {}
    if not spec.get("repository"):
        raise BadRequest("spec.repositoryName is required")
    causes = check_create(wanted)
    package, workspace = spec.get("packageName") or "", spec.get("workspaceName") or ""
    if problem := package_path_problem(package):
        missing = required_value("spec.packageName", problem)
        causes.append(invalid_value("spec.packageName", package, problem) if package else missing)
    if problem := label_problem(workspace):
        missing = required_value("spec.workspaceName", "a workspace name is required")
        causes.append(invalid_value("spec.workspaceName", workspace, problem) if workspace else missing)
    lifecycle = spec.get("lifecycle") or "Draft"
    if lifecycle != "Draft":
        causes.append(invalid_value("spec.lifecycle", lifecycle, "value can be only created as Draft"))
    if causes:
        raise Invalid.of(KIND, GROUP, f"{spec['repository']}.{package}.{workspace}", causes)


def check_version(resource: ResourceName, kind: str, name: str, wanted: Json, current_rv: int, uid: str) -> None:
    """Compare the version that a writer saw with the current one.

    Raises:
        Invalid: the writer names no version.
        Conflict: it names another one, or another object's uid.
    """
    metadata = wanted.get("metadata") or {}
    version = str(metadata.get("resourceVersion") or "")
    if not version:
        why = "resourceVersion must be specified for an update"
        cause = Cause("FieldValueInvalid", why, "metadata.resourceVersion")
        raise Invalid(INTERNAL + why, name=name, group=resource.group, kind=kind, causes=[cause])
    conflict = Conflict.of(resource, name, STALE)
    if version != str(current_rv):
        raise Conflict(INTERNAL + conflict.message, name=name, group=resource.group, kind=resource.resource)
    sent = metadata.get("uid")
    if sent and sent != uid:
        why = f"Precondition failed: UID in precondition: {sent}, UID in object meta: {uid}"
        raise Conflict.of(resource, name, why)


@dataclass(frozen=True, slots=True)
class ContentChange:
    """What an update wants changed in the root Kptfile; None leaves a part as it is."""

    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    gates: list[str] | None = None
    conditions: list[Json] | None = None

    @property
    def changes_kptfile(self) -> bool:
        """Whether the Kptfile has to be written anew."""
        return any(part is not None for part in (self.labels, self.annotations, self.gates, self.conditions))

    @property
    def renders(self) -> bool:
        """Only package metadata is an input of the pipeline (``decisions.md`` 14)."""
        return self.labels is not None or self.annotations is not None


def content_change(stored: Json, wanted: Json) -> ContentChange:
    """Find what an update of a draft changes in its Kptfile: replace semantics, absent means keep (4.3)."""
    old_spec, new_spec = stored["spec"], wanted.get("spec") or {}
    old_status, new_status = stored["status"], wanted.get("status") or {}
    old_metadata = old_spec.get("packageMetadata") or {}
    new_metadata = new_spec.get("packageMetadata")
    labels = annotations = None
    if new_metadata is not None:
        labels = _if_changed(old_metadata.get("labels") or {}, new_metadata.get("labels"))
        annotations = _if_changed(old_metadata.get("annotations") or {}, new_metadata.get("annotations"))
    gates = _if_changed(_gates(old_spec) or [], _gates(new_spec))
    conditions = _if_changed(old_status.get("conditions") or [], new_status.get("conditions"))
    return ContentChange(labels, annotations, gates, conditions)


def _gates(spec: Json) -> list[str] | None:
    gates = spec.get("readinessGates")
    return None if gates is None else [str(gate.get("conditionType", "")) for gate in gates]


def _if_changed(old: Any, new: Any) -> Any:
    return new if new is not None and new != old else None


def check_published_spec(stored: Json, wanted: Json, name: str) -> None:
    """Refuse a change of a published revision's spec other than its lifecycle.

    Raises:
        Invalid: with upstream's sentence, on spec.
    """
    if _comparable(stored["spec"]) == _comparable(wanted.get("spec") or {}):
        return
    why = "spec can only update package with lifecycle value one of Draft,Proposed"
    raise Invalid.of(KIND, GROUP, name, [invalid_value("spec", wanted.get("spec") or {}, why)])


def _comparable(value: Any) -> Any:
    """Drop what upstream takes for equal: nil and empty collections, and the lifecycle itself."""
    if isinstance(value, dict):
        parts = {key: _comparable(part) for key, part in value.items() if key != "lifecycle"}
        return {key: part for key, part in parts.items() if part not in ({}, [], None, "", 0)}
    if isinstance(value, list):
        return [_comparable(part) for part in value]
    return value


def with_client_metadata(stored: Json, wanted: Json, name: str) -> Json:
    """Return the stored object with the client's labels, annotations, finalizers and owners.

    Raises:
        Invalid: the managed label is changed, or a finalizer is added to an object that is being deleted.
    """
    causes = check_update(wanted, stored)
    old, new = stored["metadata"], wanted.get("metadata") or {}
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or []) - set(old.get("finalizers") or []))
        if added:
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {added}"
            causes.append(Cause("FieldValueForbidden", f"Forbidden: {detail}", "metadata.finalizers"))
    if causes:
        raise Invalid.of(KIND, GROUP, name, causes)
    metadata = {key: value for key, value in old.items() if key not in CLIENT_METADATA}
    for key in CLIENT_METADATA:
        if value := new.get(key):
            metadata[key] = value
    return {**stored, "metadata": metadata}


def forbid_publishing_directly(stored: Json) -> bool:
    """Tell whether a delete has to be proposed first (4.7)."""
    return Lifecycle(stored["spec"].get("lifecycle") or "Draft") is Lifecycle.PUBLISHED

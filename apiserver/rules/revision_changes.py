"""What a client may change in a package revision, and what a change means for its package.

Pure functions over decoded objects. Source: ``porch-api.md`` 3.1, 4.1 to 4.3; ``decisions.md`` 14, 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.rules.gate_bypass import BYPASS
from apiserver.rules.gate_fields import check_gate_fields, conditions_in, own_gates, replaced_conditions
from apiserver.rules.lifecycle import GROUP, KIND
from apiserver.rules.managed_labels import (
    LATEST,
    check_create,
    check_update,
    with_latest,
    with_managed,
)
from apiserver.rules.pipeline_gate import PIPELINE_GATE, without_condition
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


_MOST_NAME = 320
"""Characters of a name that a refusal repeats; no valid one is longer."""


def repository_of(wanted: Json) -> str:
    """Return the repository that a create names.

    Raises:
        BadRequest: it names none.
    """
    name = str((wanted.get("spec") or {}).get("repository") or "")
    if not name:
        raise BadRequest("spec.repositoryName is required")
    return name


def check_new(wanted: Json) -> None:
    """Refuse a create whose fields break a rule.

    Raises:
        Invalid: one cause per problem.
    """
    spec = wanted.get("spec") or {}
    causes = check_create(wanted) + check_gate_fields(wanted, {})
    package, workspace = spec.get("packageName") or "", spec.get("workspaceName") or ""
    if problem := package_path_problem(package):
        missing = required_value("spec.packageName", problem)
        causes.append(invalid_value("spec.packageName", package[:_MOST_NAME], problem) if package else missing)
    if problem := label_problem(workspace):
        missing = required_value("spec.workspaceName", "a workspace name is required")
        causes.append(invalid_value("spec.workspaceName", workspace[:_MOST_NAME], problem) if workspace else missing)
    lifecycle = spec.get("lifecycle") or "Draft"
    if lifecycle != "Draft":
        causes.append(invalid_value("spec.lifecycle", lifecycle[:_MOST_NAME], "value can be only created as Draft"))
    if causes:
        composed = f"{repository_of(wanted)}.{package}.{workspace}"
        raise Invalid.of(KIND, GROUP, composed[:_MOST_NAME], causes)


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
    """Find what an update of a draft changes in its Kptfile: replace semantics, absent means keep (4.3).

    Raises:
        Invalid: gates or conditions that no revision may have.
    """
    if causes := check_gate_fields(wanted, stored):
        raise Invalid.of(KIND, GROUP, stored["metadata"]["name"], causes)
    old_metadata = stored["spec"].get("packageMetadata") or {}
    new_metadata = (wanted.get("spec") or {}).get("packageMetadata")
    labels = annotations = None
    if new_metadata is not None:
        labels = _if_changed(old_metadata.get("labels") or {}, new_metadata.get("labels"))
        annotations = _if_changed(old_metadata.get("annotations") or {}, new_metadata.get("annotations"))
    gates = _if_changed(own_gates(stored) or [], own_gates(wanted))
    present = without_condition(conditions_in(stored) or ())
    conditions = _if_changed(present, replaced_conditions(stored, wanted))
    return ContentChange(labels, annotations, gates, conditions)


def asks_for_content(stored: Json, wanted: Json) -> bool:
    """Tell whether an update wants gates, conditions or package metadata other than they are; of a draft it may."""
    spec, metadata = wanted.get("spec") or {}, stored["spec"].get("packageMetadata") or {}
    gates = own_gates(wanted)
    return (
        (gates is not None and gates != (own_gates(stored) or []))
        or replaced_conditions(stored, wanted) not in (None, without_condition(conditions_in(stored) or ()))
        or _comparable(spec.get("packageMetadata", metadata)) != _comparable(metadata)
    )


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
    """Drop what upstream takes for equal (nil and empty collections, the lifecycle itself), and the server's own gate."""
    if isinstance(value, dict):
        parts = {key: _comparable(part) for key, part in value.items() if key != "lifecycle"}
        return {key: part for key, part in parts.items() if part not in ({}, [], None, "", 0)}
    if isinstance(value, list):
        return [_comparable(part) for part in value if part != {"conditionType": PIPELINE_GATE}]
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
    return {**stored, "metadata": taken_metadata(old, new)}


def taken_metadata(old: Json, new: Json) -> Json:
    """Return stored metadata with what clients own taken from ``new``; what the server says in it stays."""
    metadata = {key: value for key, value in old.items() if key not in CLIENT_METADATA}
    given = {key: new.get(key) for key in CLIENT_METADATA}
    given["labels"] = with_latest(given["labels"], latest=(old.get("labels") or {}).get(LATEST) == "true")
    kept = {key: value for key, value in (given["annotations"] or {}).items() if key != BYPASS}
    given["annotations"] = with_managed(kept, old.get("annotations"))
    return metadata | {key: value for key, value in given.items() if value}

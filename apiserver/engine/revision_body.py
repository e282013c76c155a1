"""The PackageRevision object as it is stored: built from what Git holds and what clients ask for.

Plain functions over decoded JSON. Source: ``porch-api.md`` 1.4, 6.7.
"""

import time
from typing import Any

import orjson

from apiserver.rules.lifecycle import Lifecycle
from krm.api.revision_name import RevisionName, revision_uid
from krm.package.kptfile import Kptfile

Json = dict[str, Any]

API_VERSION = "porch.kpt.dev/v1alpha1"
KIND = "PackageRevision"

BINARY_FILES = "porch.kpt.dev/binary-files"
"""Annotation that names the files left out of a revision's text resources (``decisions.md`` 10)."""


def timestamp(seconds: float | None = None) -> str:
    """Return RFC 3339 UTC seconds for a time since the epoch, or for now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def new_revision(
    namespace: str, name: RevisionName, lifecycle: Lifecycle, tasks: list[Json], *, deployment: bool
) -> Json:
    """Build the object of a revision that has no metadata of its own yet."""
    object_name = name.object_name
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": object_name,
            "namespace": namespace,
            "uid": revision_uid(namespace, object_name),
            "creationTimestamp": timestamp(),
        },
        "spec": {
            "packageName": name.package,
            "repository": name.repository,
            "workspaceName": name.workspace,
            "lifecycle": str(lifecycle),
            "tasks": tasks,
            "packageMetadata": {},
        },
        "status": {
            "upstreamLock": {},
            "selfLock": {},
            "publishTimestamp": None,
            "deployment": deployment,
        },
    }


def project_kptfile(body: Json, kptfile: Kptfile | None) -> None:
    """Show in the object what the root Kptfile says: gates, package metadata, locks, conditions.

    None (a Kptfile that cannot be read) shows none of them.
    """
    spec, status = body["spec"], body["status"]
    metadata: Json = {}
    if kptfile is not None:
        if kptfile.labels:
            metadata["labels"] = dict(kptfile.labels)
        if kptfile.annotations:
            metadata["annotations"] = dict(kptfile.annotations)
    spec["packageMetadata"] = metadata
    gates = list(kptfile.readiness_gates) if kptfile is not None else []
    _set_or_drop(spec, "readinessGates", [{"conditionType": gate} for gate in gates])
    status["upstreamLock"] = (kptfile.upstream_lock or {}) if kptfile is not None else {}
    _set_or_drop(status, "conditions", [dict(c) for c in kptfile.conditions] if kptfile is not None else [])


def _set_or_drop(parent: Json, key: str, value: list[Json]) -> None:
    if value:
        parent[key] = value
    else:
        parent.pop(key, None)


def set_self_lock(body: Json, *, url: str, directory: str, ref: str, commit: str) -> None:
    """Record where the revision's content is in its own repository; ``ref`` is the short remote ref."""
    body["status"]["selfLock"] = {
        "type": "git",
        "git": {"repo": url, "directory": directory, "ref": ref, "commit": commit},
    }


def self_commit(body: Json) -> str:
    """Return the commit that holds the revision's content."""
    return str(body["status"].get("selfLock", {}).get("git", {}).get("commit", ""))


def set_published(body: Json, revision: int, *, by: str, at: float) -> None:
    """Make the object a published revision; ``at`` is seconds since the epoch."""
    body["spec"]["lifecycle"] = str(Lifecycle.PUBLISHED)
    body["spec"]["revision"] = revision
    body["status"]["publishTimestamp"] = timestamp(at)
    if by:
        body["status"]["publishedBy"] = by
    else:
        body["status"].pop("publishedBy", None)


def lifecycle_of(body: Json) -> Lifecycle:
    """Return the lifecycle; empty means Draft."""
    return Lifecycle(body["spec"].get("lifecycle") or "Draft")


def revision_name_of(body: Json) -> RevisionName:
    """Return the parts of the object's name from its spec."""
    spec = body["spec"]
    return RevisionName(spec["repository"], spec["packageName"], spec["workspaceName"])


def set_managers(body: Json, entries: list[Json] | None) -> None:
    """Say in the object who manages which of its fields."""
    if entries:
        body["metadata"]["managedFields"] = entries
    else:
        body["metadata"].pop("managedFields", None)


def name_binary_files(body: Json, paths: list[str]) -> None:
    """Say in the object which files are not text."""
    annotations = {
        key: value for key, value in (body["metadata"].get("annotations") or {}).items() if key != BINARY_FILES
    }
    if paths:
        annotations[BINARY_FILES] = orjson.dumps(paths).decode()
    if annotations:
        body["metadata"]["annotations"] = annotations
    else:
        body["metadata"].pop("annotations", None)

"""The PackageRevision object as it is stored: built from what Git holds and what clients ask for.

Plain functions over decoded JSON. Source: ``porch-api.md`` 1.4, 6.7.
"""

import time
from typing import Any

import orjson

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import BINARY_FILES
from apiserver.rules.pipeline_gate import condition_in, follow_rendered, waiting, with_condition, with_gate
from krm.api.revision_name import RevisionName, revision_uid
from krm.package.kptfile import Kptfile

Json = dict[str, Any]

API_VERSION = "porch.kpt.dev/v1alpha1"
KIND = "PackageRevision"


def timestamp(seconds: float | None = None) -> str:
    """Return RFC 3339 UTC seconds for a time since the epoch, or for now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def new_revision(
    namespace: str, name: RevisionName, lifecycle: Lifecycle, tasks: list[Json], *, deployment: bool
) -> Json:
    """Build the object of a revision that has no metadata of its own yet."""
    object_name = name.object_name
    body: Json = {
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
            "packageMetadata": {},
        },
        "status": {"upstreamLock": {}, "selfLock": {}, "publishTimestamp": None},
    }
    if tasks:
        body["spec"]["tasks"] = tasks
    if deployment:
        body["status"]["deployment"] = True
    return body


def project_kptfile(body: Json, kptfile: Kptfile | None, pipeline: Json) -> None:
    """Show in the object what the root Kptfile says: gates, package metadata, locks, conditions.

    None (a Kptfile that cannot be read) shows none of them. ``pipeline`` is the server's own condition where the Kptfile
    does not tell how its last render ended (``decisions.md`` 14).
    """
    spec, status = body["spec"], body["status"]
    metadata: Json = {}
    if kptfile is not None:
        if kptfile.labels:
            metadata["labels"] = dict(kptfile.labels)
        if kptfile.annotations:
            metadata["annotations"] = dict(kptfile.annotations)
    spec["packageMetadata"] = metadata
    gates = kptfile.readiness_gates if kptfile is not None else ()
    spec["readinessGates"] = with_gate({"conditionType": gate} for gate in gates)
    status["upstreamLock"] = (kptfile.upstream_lock or {}) if kptfile is not None else {}
    conditions = kptfile.conditions if kptfile is not None else ()
    status["conditions"] = with_condition(conditions, follow_rendered(conditions, pipeline))


def pipeline_condition(body: Json) -> Json:
    """Return the server's own condition of a revision; one that has none yet waits."""
    return condition_in(body["status"].get("conditions")) or waiting()


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
    annotations = dict(body["metadata"].get("annotations") or {})
    annotations.pop(BINARY_FILES, None)
    if paths:
        annotations[BINARY_FILES] = orjson.dumps(paths).decode()
    if annotations:
        body["metadata"]["annotations"] = annotations
    else:
        body["metadata"].pop("annotations", None)

"""What upstream's server makes of a Git repository, from its refs and commit messages alone.

Written from the specification, with the ``git`` program and none of the project's own code: what it finds is what an old installation
finds that gets its repositories back. ``test_cluster_adoption.py`` compares it with what a live upstream found.
Source: ``porch-api.md`` 2.1, 2.3, 6.1, 6.3, 6.7.
"""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remotes import git, refs

Json = dict[str, Any]
BRANCH = "main"
UIDS = uuid.UUID("aac71d91-5c67-456f-8fd2-902ef6da820e")
CREATING = {"init", "clone", "edit", "upgrade"}
LIFECYCLES = {"refs/heads/drafts/": "Draft", "refs/heads/proposed/": "Proposed", "refs/tags/": "Published"}
DOOMED = "refs/heads/deletionProposed/"


def found_in_git(remote: Path, repository: str, namespace: str) -> list[Json]:
    """Return the package revisions of a remote as upstream lists them, without the metadata that it keeps in records."""
    at = refs(remote)
    doomed = {ref.removeprefix(DOOMED) for ref in at if ref.startswith(DOOMED)}
    found = []
    for ref, commit in at.items():
        prefix = next((one for one in LIFECYCLES if ref.startswith(one)), "")
        package, _, version = ref.removeprefix(prefix).rpartition("/")
        if not prefix or not package or package not in _packages(remote, commit):
            continue
        spec: Json = {"packageName": package, "workspaceName": version, "lifecycle": LIFECYCLES[prefix]}
        if prefix == "refs/tags/":
            tasks = _annotations(remote, commit, package)
            spec["workspaceName"] = next(tasks, {}).get("workspaceName", version)
            spec["revision"] = int(version.removeprefix("v")) if re.fullmatch(r"v?\d+", version) else -1
            spec["lifecycle"] = "DeletionProposed" if f"{package}/{version}" in doomed else "Published"
        found.append(_revision(namespace, {"repository": repository, **spec, **_made_by(remote, commit, spec)}, commit))
    head = at[f"refs/heads/{BRANCH}"]
    for package in _packages(remote, head):
        lifecycle = "DeletionProposed" if f"{package}/{BRANCH}" in doomed else "Published"
        spec = {"packageName": package, "workspaceName": BRANCH, "lifecycle": lifecycle, "revision": -1}
        found.append(_revision(namespace, {"repository": repository, **spec}, head))
    return found


def with_records(found: list[Json], records: list[Json]) -> list[Json]:
    """Add what upstream keeps in its PackageRevs, without what it adds there for itself; who has no record has no metadata."""
    kept = {record["metadata"]["name"]: record["metadata"] for record in records}
    for one in found:
        metadata = kept.get(one["metadata"]["name"], {})
        for name in ("labels", "annotations"):
            own = {key: value for key, value in metadata.get(name, {}).items() if not key.startswith("internal.")}
            one["metadata"].update({name: own} if own else {})
        owners = [owner for owner in metadata.get("ownerReferences", []) if owner["kind"] != "PackageRevision"]
        one["metadata"].update({"ownerReferences": owners} if owners else {})
    return found


def _revision(namespace: str, spec: Json, commit: str) -> Json:
    name = ".".join([spec["repository"], spec["packageName"].replace("/", "."), spec["workspaceName"]])
    named = f"packagerevision:porch.kpt.dev/v1alpha1/{namespace}/{name}".lower()
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": name, "namespace": namespace, "uid": str(uuid.uuid5(UIDS, named))},
        "spec": spec,
        "status": {"selfLock": {"git": {"commit": commit}}},
    }


def _made_by(remote: Path, commit: str, spec: Json) -> Json:
    """Return the task that made a package revision: the newest that says it did."""
    for one in _annotations(remote, commit, spec["packageName"]):
        task = one.get("task", {})
        if one.get("workspaceName") == spec["workspaceName"] and task.get("type") in CREATING:
            return {"tasks": [task]}
    return {}


def _annotations(remote: Path, commit: str, package: str) -> Iterator[Json]:
    """Return what the commits say of a package, the newest first."""
    for line in git("log", "--date-order", "--format=%B", commit, cwd=remote).splitlines():
        if line.strip().startswith("kpt:"):
            said = json.loads(line.strip().removeprefix("kpt:"))
            if said["package"] == package:
                yield said


def _packages(remote: Path, commit: str) -> list[str]:
    """Return the directories with a Kptfile in a commit, those inside of others left out."""
    paths = git("ls-tree", "-r", "--name-only", commit, cwd=remote).splitlines()
    packages: list[str] = []
    for path in sorted(path.removesuffix("/Kptfile") for path in paths if path.endswith("/Kptfile")):
        if not any(path.startswith(f"{outer}/") for outer in packages):
            packages.append(path)
    return packages

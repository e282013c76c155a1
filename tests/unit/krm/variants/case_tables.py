"""Reads the tables of ``tests/data/variants``, and makes the values that their cases speak of."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from krm.variants.revisions import Revision
from krm.variants.variant import Variant

Json = dict[str, Any]
FOLDER = Path(__file__).parents[3] / "data/variants"

ME, DEAD, OTHER, FRIEND = "uid-me", "uid-dead", "uid-other", "uid-friend"
OWNERS = {
    "me": ("PackageVariant", "my-pv", ME, True),
    "dead": ("PackageVariant", "my-pv", DEAD, True),
    "other": ("PackageVariant", "other-pv", OTHER, True),
    "friend": ("PackageVariant", "friend-pv", FRIEND, False),
}


def cases(table: str, section: str = "cases") -> list[Any]:
    """Return the cases of a table as parameters, each under its id."""
    listed = yaml.safe_load((FOLDER / f"{table}.yaml").read_text("utf-8"))[section]
    return [pytest.param(case, id=case["id"]) for case in listed]


def owner(name: str) -> Json:
    kind, of, uid, controller = OWNERS[name]
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": kind,
        "name": of,
        "uid": uid,
        "controller": controller,
    }


def lock(written: str | None) -> Json:
    """Read ``repo|directory|ref|commit``."""
    if written in (None, "none"):
        return {}
    if written == "no git":
        return {"type": "git"}
    parts = zip(("repo", "directory", "ref", "commit"), str(written).split("|"), strict=True)
    return {"type": "git", "git": dict(parts)}


def revision(case: Any, *, repository: str = "deployments", package: str = "bar") -> Revision:
    """Make a revision of ``[workspace, revision, lifecycle, owners]``, or of a mapping that names more."""
    names = ("workspace", "revision", "lifecycle", "owners")
    said: Json = dict(zip(names, case, strict=False)) if isinstance(case, list) else dict(case)
    repository, package = said.get("repository", repository), said.get("package", package)
    number, workspace = said.get("revision", 0), said.get("workspace", "v1")
    self_lock = lock(
        said.get("lock") or (f"https://x/{repository}|{package}|x|{said['commit']}" if "commit" in said else None)
    )
    metadata: Json = {
        "namespace": "default",
        "name": f"{repository}.{package.replace('/', '.')}.{workspace}",
        "labels": said.get("labels") or {},
        "ownerReferences": [owner(name) for name in said.get("owners") or ()],
    }
    if said.get("deleting"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {
        "repository": repository,
        "packageName": package,
        "workspaceName": workspace,
        "revision": number,
        "lifecycle": said.get("lifecycle", "Published" if number else "Draft"),
    }
    status = {"selfLock": self_lock, "upstreamLock": lock(said.get("upstreamLock"))}
    return Revision.of({"metadata": metadata, "spec": spec, "status": status})


def variant(**spec: Any) -> Variant:
    """Make the variant my-pv of blueprints/foo in deployments/bar; ``targets`` goes into its status."""
    known = spec.pop("targets", ())
    metadata = {"namespace": "default", "name": "my-pv", "uid": ME, "generation": 1}
    both = {
        "upstream": {"repo": "blueprints", "package": "foo"},
        "downstream": {"repo": "deployments", "package": "bar"},
    }
    status = {"downstreamTargets": [{"name": name} for name in known]}
    return Variant.of({"metadata": metadata, "spec": {**both, **spec}, "status": status})

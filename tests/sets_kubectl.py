"""PackageVariantSets with kubectl: cheap fleets of repositories, and waiting for what the controllers make of a set."""

import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import credentials, repository
from remotes import Remote, empty_remote
from variants_kubectl import condition

Object = dict[str, Any]
FLEET_WAIT = 240.0
"""Seconds until the controllers must have brought a whole fleet to where it is asked to be; alone they need a tenth."""
STEADY_SECONDS = 2.5
_VARIANTS, _REVISIONS = "packagevariants.config.porch.kpt.dev", "packagerevisions.porch.kpt.dev"


def fleet_remotes(server: GitServer, prefix: str, names: Iterable[str]) -> dict[str, Remote]:
    """Make a remote with one commit for each name: one by git, the others as copies of it."""
    made: dict[str, Remote] = {}
    for name in names:
        path = server.root / f"{prefix}-{name}.git"
        if made:
            shutil.copytree(next(iter(made.values())).path, path)
        else:
            empty_remote(path)
        made[name] = Remote(path, f"{server.url}/{path.name}")
    return made


def register_fleet(
    kubectl: Kubectl,
    remotes: Mapping[str, Remote],
    labels: Mapping[str, Mapping[str, str]],
    *,
    catalogs: Iterable[str] = (),
) -> None:
    """Register remotes with one request of kubectl and wait until all are Ready; all but ``catalogs`` are for deployment."""
    objects = [credentials()]
    for name, remote in remotes.items():
        body = repository(name, remote.url, deployment=name not in catalogs)
        body["metadata"]["labels"] = dict(labels.get(name) or {})
        objects.append(body)
    kubectl.apply(*objects)
    kubectl.ok("wait", "repositories", "--all", "--for=condition=Ready", "--timeout=120s", timeout=130)


def set_condition_is(kubectl: Kubectl, name: str, kind: str, status: str, reason: str = "") -> Object:
    """Wait until a set's condition says this of its newest generation; return the set."""

    def look() -> Object:
        body: Object = kubectl.json("get", "packagevariantset", name)
        found = condition(body, kind)
        assert found.get("status") == status, body.get("status")
        assert not reason or found["reason"] == reason, body.get("status")
        assert body["status"]["observedGeneration"] == body["metadata"]["generation"], body["status"]
        return body

    return eventually(look, timeout=FLEET_WAIT)


def fleet_is_ready(kubectl: Kubectl, name: str, total: int) -> Object:
    """Wait until a set has so many targets, all of them Ready with the spec that they have; return the set."""

    def look() -> Object:
        body: Object = kubectl.json("get", "packagevariantset", name)
        status = body.get("status") or {}
        counts = status.get("targets") or {}
        assert status.get("observedGeneration") == body["metadata"]["generation"], status
        assert (counts.get("total"), counts.get("ready")) == (total, total), status
        assert condition(body, "Ready").get("status") == "True", status
        assert condition(body, "ReadyTargets").get("status") == "True", status
        variants = variants_of(kubectl, name).values()
        assert len(variants) == total, sorted(one["metadata"]["name"] for one in variants)
        for one in variants:
            ready = condition(one, "Ready")
            assert ready.get("status") == "True", one
            assert ready["observedGeneration"] == one["metadata"]["generation"], one
        return body

    return eventually(look, timeout=FLEET_WAIT)


def variants_of(kubectl: Kubectl, name: str) -> dict[str, Object]:
    """Return the variants that the set ``name`` controls, by their names."""
    return {
        one["metadata"]["name"]: one
        for one in kubectl.json("get", _VARIANTS)["items"]
        if any(
            (owner["kind"], owner["name"]) == ("PackageVariantSet", name)
            for owner in one["metadata"].get("ownerReferences") or ()
        )
    }


def pairs_of(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Return repository and package of a set's variants by their names."""
    specs = {variant: body["spec"]["downstream"] for variant, body in variants_of(kubectl, name).items()}
    return {variant: f"{one['repo']}/{one['package']}" for variant, one in specs.items()}


def all_files(kubectl: Kubectl) -> dict[str, dict[str, str]]:
    """Return the files of every package revision of the namespace, by its name: one request."""
    items = kubectl.json("get", "packagerevisionresources")["items"]
    return {one["metadata"]["name"]: one["spec"]["resources"] for one in items}


def versions(kubectl: Kubectl) -> dict[str, str]:
    """Return the resourceVersion of each variant and each package revision; the first letter says which it is."""
    found = {}
    for letter, kind in (("v", _VARIANTS), ("r", _REVISIONS)):
        for one in kubectl.json("get", kind)["items"]:
            if one.get("spec", {}).get("revision") != -1:  # follows the branch, which everybody's publications move
                found[f"{letter}/{one['metadata']['name']}"] = one["metadata"]["resourceVersion"]
    return found


def steady(kubectl: Kubectl) -> dict[str, str]:
    """Wait until nothing is written any more; return the versions then."""
    seen, since = versions(kubectl), time.monotonic()
    deadline = since + FLEET_WAIT
    while time.monotonic() - since < STEADY_SECONDS:
        assert time.monotonic() < deadline, "there is no end of writes"
        time.sleep(0.2)
        if (now := versions(kubectl)) != seen:
            seen, since = now, time.monotonic()
    return seen


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return what became of each object that is not as it was: added, removed or written."""
    told = dict.fromkeys(before.keys() - after.keys(), "removed")
    told |= dict.fromkeys(after.keys() - before.keys(), "added")
    told |= {key: "written" for key in before.keys() & after.keys() if before[key] != after[key]}
    return told

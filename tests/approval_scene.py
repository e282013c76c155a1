"""A draft of a variant that is ready in every respect, told in a few words, for tests of what approves it."""

import copy
import datetime as dt
from typing import Any

from krm.variants.approval import ApprovingVariant, Candidate, Decision, Surroundings, decide, policy_of
from krm.variants.revisions import Revision

Json = dict[str, Any]
CREATED = "2026-01-01T12:00:00Z"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
GATES = ("PackagePipelinePassed", "PVOperationsComplete")
BOTH = {"propose": "WhenReady", "publish": "Always"}


def package_revision(lifecycle: str = "Draft", **more: Any) -> Json:
    """Return a draft of deployments/bar that variant ``v`` made of revision 2 of blueprints/foo; ready to be approved."""
    git = {"repo": "https://git/blueprints.git", "directory": "foo", "ref": "foo/v2", "commit": "c2"}
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {
            "namespace": "ns",
            "name": "deployments.bar.packagevariant-1",
            "uid": "uid-draft",
            "resourceVersion": "5",
            "creationTimestamp": CREATED,
            "ownerReferences": [owner_reference()],
            "labels": {"config.porch.kpt.dev/packagevariant-uid": "uid-v"},
            "annotations": {},
        },
        "spec": {
            "repository": "deployments",
            "packageName": "bar",
            "workspaceName": "packagevariant-1",
            "revision": 0,
            "lifecycle": lifecycle,
            "readinessGates": [{"conditionType": gate} for gate in GATES],
            "tasks": [{"type": "clone"}],
        },
        "status": {
            "conditions": [{"type": gate, "status": "True"} for gate in GATES],
            "upstreamLock": {"git": git},
            **more,
        },
    }


def owner_reference(name: str = "v") -> Json:
    """Return a reference to a variant."""
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def package_variant(approval: Json | None = None, **spec: Any) -> Json:
    """Return variant ``v``, which is Ready and follows the latest revision of blueprints/foo."""
    body: Json = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"namespace": "ns", "name": "v", "uid": "uid-v", "resourceVersion": "3", "generation": 2},
        "spec": {
            "upstream": {"repo": "blueprints", "package": "foo", "revision": "latest"},
            "downstream": {"repo": "deployments", "package": "bar"},
            **spec,
        },
        "status": {
            "observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True", "reason": "NoErrors"}],
            "upstream": {"name": "blueprints.foo.v2", "revision": 2, "workspaceName": "v2", "commit": "c2"},
        },
    }
    if approval is not None:
        body["spec"]["approval"] = approval
    return body


def published(package: str = "foo", number: int = 2, *, repository: str = "blueprints", **spec: Any) -> Json:
    """Return a published revision, whose commit is ``c<number>``."""
    git = {
        "repo": f"https://git/{repository}",
        "directory": package,
        "ref": f"{package}/v{number}",
        "commit": f"c{number}",
    }
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {
            "namespace": "ns",
            "name": f"{repository}.{package}.v{number}",
            "uid": f"uid-{package}-{number}",
            "resourceVersion": "1",
            "creationTimestamp": CREATED,
        },
        "spec": {
            "repository": repository,
            "packageName": package,
            "workspaceName": f"v{number}",
            "revision": number,
            "lifecycle": "Published",
            **spec,
        },
        "status": {"selfLock": {"git": git}},
    }


UPSTREAM = (published(number=1), published(number=2))


def edited(body: Json, path: str, value: Any) -> Json:
    """Return a copy with the value at ``a/b/0/c`` set, or (None) taken out."""
    copied = copy.deepcopy(body)
    *parents, last = path.split("/")
    place: Any = copied
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
    if value is None:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return copied


def decided(
    draft: Json,
    variant: Json | None,
    *,
    siblings: tuple[Json, ...] = (),
    upstream: tuple[Json, ...] = UPSTREAM,
    now: dt.datetime = NOON,
) -> Decision:
    """Decide about a draft; ``siblings`` are the other revisions of its package."""
    candidate = Candidate.of(draft)
    owner = ApprovingVariant.of(variant) if variant else None
    policy = policy_of(candidate, owner)
    assert policy is not None
    of_package = [candidate.revision, *map(Revision.of, siblings)]
    return decide(candidate, policy, owner, Surroundings(of_package, [*map(Revision.of, upstream)], "main", now))

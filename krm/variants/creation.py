"""The package revisions that a variant creates, and the upgrade of one in place, as they go over the wire.

Each is created with its owner, its gate and the gate's condition at once: at no moment can it be proposed before the variant
has finished. Source: ``variants.md`` 2.6, 2.11, R4 and R5.
"""

from typing import Any, Final

from krm.api.revision_name import RevisionName
from krm.variants.operations import pending, with_operations
from krm.variants.ownership import new_metadata
from krm.variants.revisions import DRAFT, Lock, Revision
from krm.variants.upstream import git_address
from krm.variants.variant import Variant
from krm.variants.vocabulary import UPGRADE_STRATEGY

Json = dict[str, Any]

_API_VERSION: Final = "porch.kpt.dev/v1alpha1"
_KIND: Final = "PackageRevision"
_PIPELINE_GATE: Final = "PackagePipelinePassed"
"""The server's gate, which it adds itself."""


def reference(place: Revision | Lock | Json, secret: str = "") -> Json:
    """Return what an upgrade names its upstreams by: a package revision by name, anything else by its Git address.

    ``place`` may be a Git address already (``upstream.pinned``). ``secret`` names the Secret for the address of a lock.
    """
    if isinstance(place, Revision):
        return {"name": place.name}
    return {"git": git_address(place, secret) if isinstance(place, Lock) else place}


def clone_body(variant: Variant, upstream: Revision, workspace: str, pinned: Json | None = None) -> Json:
    """Return the first package revision of the target package: a clone of ``upstream``, or of a ``pinned`` Git address."""
    source: Json = {"upstreamRef": {"name": upstream.name}} if pinned is None else {"type": "git", "git": pinned}
    task = {"type": "clone", "clone": {"upstreamRef": source}}
    name = RevisionName(variant.downstream_repo, variant.downstream_package, workspace)
    return _body(variant, name, task, {})


def edit_body(variant: Variant, source: Json, workspace: str) -> Json:
    """Return the next package revision of a package: a copy of the published ``source``, a body as on the wire."""
    task = {"type": "edit", "edit": {"sourceRef": {"name": source["metadata"]["name"]}}}
    return _body(variant, _next_to(source, workspace), task, source)


def upgrade_body(variant: Variant, source: Json, old: Json, new: Json, workspace: str) -> Json:
    """Return the next package revision of a package: the published ``source`` with what changed from ``old`` to ``new``.

    ``old`` and ``new`` are as :func:`reference` gives them.
    """
    task = _upgrade(source["metadata"]["name"], old, new)
    return _body(variant, _next_to(source, workspace), task, source)


def in_place_upgrade(body: Json, old: Json, new: Json, variant: str) -> Json:
    """Return a draft as the update that upgrades it in place sends it: one task more, and the gate closed.

    ``body`` is the draft as it was read, with its resourceVersion; ``variant`` is the variant's name.
    """
    closed = with_operations(body, pending(variant))
    tasks = [*(closed["spec"].get("tasks") or ()), _upgrade(body["metadata"]["name"], old, new)]
    return {**closed, "spec": {**closed["spec"], "tasks": tasks}}


def _upgrade(local: str, old: Json, new: Json) -> Json:
    upgrade = {
        "oldUpstreamRef": old,
        "newUpstreamRef": new,
        "localPackageRevisionRef": {"name": local},
        "strategy": UPGRADE_STRATEGY,
    }
    return {"type": "upgrade", "upgrade": upgrade}


def _next_to(source: Json, workspace: str) -> RevisionName:
    return RevisionName(source["spec"]["repository"], source["spec"]["packageName"], workspace)


def _body(variant: Variant, name: RevisionName, task: Json, source: Json) -> Json:
    copied = source.get("spec") or {}
    spec = {
        "repository": name.repository,
        "packageName": name.package,
        "workspaceName": name.workspace,
        "lifecycle": DRAFT,
        "tasks": [task],
        "readinessGates": [
            one for one in copied.get("readinessGates") or () if one.get("conditionType") != _PIPELINE_GATE
        ],
    }
    if copied.get("packageMetadata"):
        spec["packageMetadata"] = copied["packageMetadata"]
    body = {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "metadata": new_metadata(variant, name.object_name),
        "spec": spec,
    }
    return with_operations(body, pending(variant.name))

"""At each start the default roles and bindings get back what they lack; what was added to them stays.

An object whose annotation ``rbac.authorization.kubernetes.io/autoupdate`` is not "true" is left alone. Repeating this
changes nothing. Source: ``kube-api.md`` 3.6; the behaviour is kube-apiserver's.
"""

import copy
from collections.abc import Sequence

import orjson

from apiserver.auth.identity import MASTERS
from apiserver.auth.rules import Rule, missing_rights
from apiserver.machinery.definition import Json
from apiserver.machinery.rest import DeleteOptions, GetOptions, Scope, User, WriteOptions
from apiserver.resources.objects import StoredObjects
from apiserver.resources.rbac.defaults import AUTO_UPDATE, default_cluster_role_bindings, default_cluster_roles
from krm.meta.errors import AlreadyExists, NotFound

SYSTEM = Scope(None, User("system:apiserver", (MASTERS,)))
"""On whose behalf the server itself writes roles."""
_MANAGER = "kube-apiserver"


async def reconcile_defaults(cluster_roles: StoredObjects, cluster_role_bindings: StoredObjects) -> None:
    """Create the default roles and bindings that are missing, and complete those that are there.

    Raises:
        ServiceUnavailable: the store cannot be written.
    """
    for role in default_cluster_roles():
        await _ensure(cluster_roles, role)
    for binding in default_cluster_role_bindings():
        await _ensure(cluster_role_bindings, binding)


async def _ensure(kind: StoredObjects, wanted: Json) -> None:
    name = wanted["metadata"]["name"]
    try:
        entry = await kind.get(SYSTEM, name, GetOptions())
    except NotFound:
        await _create(kind, wanted)
        return
    current: Json = orjson.loads(entry.body)
    if completed(current, wanted) == current:
        return
    if "roleRef" in wanted and current.get("roleRef") != wanted["roleRef"]:
        # A binding's role cannot be changed, so the binding is made anew.
        if _is_ours(current):
            await kind.delete(SYSTEM, name, DeleteOptions())
            await _create(kind, wanted)
        return
    try:
        await kind.update(
            SYSTEM, name, lambda present: completed(present, wanted), WriteOptions(field_manager=_MANAGER)
        )
    except NotFound:
        # Somebody deleted it in between; the next start makes it again.
        return


async def _create(kind: StoredObjects, wanted: Json) -> None:
    try:
        await kind.create(SYSTEM, copy.deepcopy(wanted), WriteOptions(field_manager=_MANAGER))
    except AlreadyExists:
        # Another replica was first.
        return


def completed(current: Json, wanted: Json) -> Json:
    """Return an object with everything that ``wanted`` has and it lacks; one that is not ours stays as it is."""
    if not _is_ours(current):
        return current
    metadata = current["metadata"]
    for key in ("labels", "annotations"):
        metadata = {**metadata, key: {**(metadata.get(key) or {}), **wanted["metadata"][key]}}
    result = {**current, "metadata": metadata}
    if "subjects" in wanted:
        present = current.get("subjects") or []
        result["subjects"] = [*present, *(one for one in wanted["subjects"] if one not in present)]
    elif wanted.get("aggregationRule"):
        present = (current.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        more = [one for one in wanted["aggregationRule"]["clusterRoleSelectors"] if one not in present]
        result["aggregationRule"] = {"clusterRoleSelectors": [*present, *more]}
    else:
        result["rules"] = [*(current.get("rules") or []), *_lacking(current.get("rules") or [], wanted["rules"])]
    return result


def _lacking(present: Sequence[Json], wanted: Sequence[Json]) -> list[Json]:
    held = [Rule.of(rule) for rule in present]
    return [rule for rule in wanted if missing_rights(held, [rule])]


def _is_ours(obj: Json) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "true"

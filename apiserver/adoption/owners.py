"""The owners that references of taken over objects name: they have to be there, or the garbage collector ends the objects.

Owners of the kinds that are stored as they are come along, with their own owners. Source: ``kube-api.md`` 2.11; ADR 0018.
"""

from collections.abc import Mapping
from typing import Any, Final

from apiserver.adoption.objects import DEFINITIONS, Unfit, creation, stored_form
from apiserver.adoption.plan import Plan
from apiserver.adoption.source import MAX_OBJECTS, BadSource, Source
from apiserver.machinery.definition import Definition
from apiserver.resources.reading import object_key
from storage.bodies import decode
from storage.interfaces import ObjectStore

Json = dict[str, Any]

_OURS: Final = frozenset(
    (
        "",
        "apiextensions.k8s.io",
        "config.porch.kpt.dev",
        "coordination.k8s.io",
        "events.k8s.io",
        "porch.kpt.dev",
        "rbac.authorization.k8s.io",
    )
)
"""Groups that a standalone server serves itself. Owners of kinds that it does not serve are left alone by its garbage collector."""

MAX_PLANNED: Final = 2 * MAX_OBJECTS
"""Objects of one run, owners included."""


class Owners:
    """Takes owners over; ``planned`` are the UIDs that the plan brings along already, and grows."""

    def __init__(
        self,
        kinds: Mapping[tuple[str, str], Definition],
        target: ObjectStore,
        source: Source,
        plan: Plan,
        planned: set[str],
    ) -> None:
        self._kinds = kinds
        self._target = target
        self._source = source
        self._plan = plan
        self._planned = planned
        definitions = [decode(entry)["spec"] for entry in target.snapshot(DEFINITIONS)]
        self._custom = {(spec["group"], spec["names"]["kind"]) for spec in definitions}

    async def bring(self, about: str, body: Json) -> list[Json]:
        """Have every owner of an object be there, and theirs; return those of the object that are nowhere.

        Raises:
            BadSource: the old server cannot be read, or there are too many owners.
        """
        missing, taken = await self._bring(about, body)
        while taken:
            owner = taken.pop()
            named = f"{owner['kind']} {owner['metadata']['namespace']}/{owner['metadata']['name']}"
            nowhere, more = await self._bring(named, owner)
            self._plan.refuse(named, [missing_owner(one) for one in nowhere])
            taken += more
        return missing

    async def _bring(self, about: str, body: Json) -> tuple[list[Json], list[Json]]:
        """Return which owners of an object are nowhere, and which come with the plan because of it."""
        namespace = body["metadata"].get("namespace") or ""
        missing, taken = [], []
        for owner in body["metadata"].get("ownerReferences") or ():
            if owner["uid"] in self._planned or self._is_there(namespace, owner):
                continue
            if not self._is_served(owner):
                named = f"{owner['kind']} {owner['name']} of {owner['apiVersion']}"
                self._plan.note(about, f"its owner {named} is of a kind that is not served here; the reference is kept")
            elif (found := await self._take(namespace, owner)) is not None:
                taken.append(found)
            else:
                missing.append(owner)
        return missing, taken

    def _is_served(self, owner: Json) -> bool:
        group = str(owner["apiVersion"]).rpartition("/")[0]
        return group in _OURS or (group, owner["kind"]) in self._custom

    def _is_there(self, namespace: str, owner: Json) -> bool:
        definition = self._kinds.get((owner["apiVersion"], owner["kind"]))
        if definition is None:
            return False
        entry = self._target.get(object_key(definition, namespace, owner["name"]))
        return entry is not None and entry.uid == owner["uid"]

    async def _take(self, namespace: str, owner: Json) -> Json | None:
        """Bring an owner; None where it cannot come."""
        definition = self._kinds.get((owner["apiVersion"], owner["kind"]))
        if definition is None or self._target.get(object_key(definition, namespace, owner["name"])) is not None:
            return None
        found = await self._source.find(owner["apiVersion"], owner["kind"], namespace, owner["name"])
        if found is None or found["metadata"].get("uid") != owner["uid"]:
            return None
        if len(self._planned) > MAX_PLANNED:
            raise BadSource(f"more than {MAX_PLANNED} objects; take the installation over by namespaces")
        try:
            body = stored_form(definition, found)
        except Unfit as error:
            self._plan.refuse(f"{owner['kind']} {namespace}/{owner['name']}", str(error))
            return None
        self._plan.outer.append(creation(definition, body))
        self._planned.add(owner["uid"])
        return body


def missing_owner(owner: Json) -> str:
    """Return what is said of an owner that is nowhere."""
    named = f"{owner['kind']} {owner['name']} (UID {owner['uid']})"
    return (
        f"its owner {named} is neither here nor to be had from the old server, so the garbage collector would delete it; give "
        "the owner, remove the reference there, or type --drop-missing-owners"
    )

"""The owners that references of taken over objects name: they have to be there, or the garbage collector ends the objects.

Owners of the kinds that are stored as they are come along, with their own owners; what has an owner that cannot come does not
come either, or loses the reference. Source: ``kube-api.md`` 2.11; ADR 0018.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from apiserver.adoption.company import Company
from apiserver.adoption.objects import DEFINITIONS, Unfit, stored_form
from apiserver.adoption.plan import Plan
from apiserver.adoption.source import MAX_OBJECTS, BadSource, Source
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
MAX_TAKEN: Final = 2 * MAX_OBJECTS
"""Objects of one run, owners included."""


class Owners:
    """Completes ``company``, the objects that come along, by the owners of everything that comes."""

    def __init__(self, target: ObjectStore, source: Source, plan: Plan, company: Company) -> None:
        self._target = target
        self._source = source
        self._plan = plan
        self._company = company
        definitions = [decode(entry)["spec"] for entry in target.snapshot(DEFINITIONS)]
        self._custom = {(spec["group"], spec["names"]["kind"]) for spec in definitions}

    async def take(self, bodies: Iterable[Json]) -> None:
        """Have every owner of these objects come that can, and theirs.

        Raises:
            BadSource: the old server cannot be read, or there are too many owners.
        """
        left = [*bodies, *self._company.bodies()]
        while left:
            body = left.pop()
            namespace = body["metadata"].get("namespace") or ""
            found = [await self._taken(namespace, owner) for owner in self.missing(body)]
            left += [one for one in found if one is not None]

    def settle(self, *, drop: bool) -> None:
        """Take out what comes along and has an owner that does not, or the reference to that owner if ``drop``.

        What is taken out may be an owner itself, so this goes on until nothing changes.
        """
        while unsound := [body for body in self._company.bodies() if self.missing(body)]:
            for body in unsound:
                about = f"{body['kind']} {body['metadata']['namespace']}/{body['metadata']['name']}"
                missing = self.missing(body)
                if drop:
                    self._plan.note(about, without_owners(body, missing))
                else:
                    self._plan.refuse(about, [missing_owner(owner) for owner in missing])
                    self._company.leave(body)

    def missing(self, body: Json) -> list[Json]:
        """Return the owners of an object that neither are there nor come, so that it would be deleted."""
        namespace = body["metadata"].get("namespace") or ""
        owners = body["metadata"].get("ownerReferences") or ()
        return [
            owner
            for owner in owners
            if owner["uid"] not in self._company.uids and not self._is_there(namespace, owner) and self.is_served(owner)
        ]

    def is_served(self, owner: Json) -> bool:
        """Tell whether the new server knows an owner's kind, and so finds out whether it exists."""
        group = str(owner["apiVersion"]).rpartition("/")[0]
        return group in _OURS or (group, owner["kind"]) in self._custom

    def _is_there(self, namespace: str, owner: Json) -> bool:
        definition = self._company.kinds.get((owner["apiVersion"], owner["kind"]))
        if definition is None:
            return False
        entry = self._target.get(object_key(definition, namespace, owner["name"]))
        return entry is not None and entry.uid == owner["uid"]

    async def _taken(self, namespace: str, owner: Json) -> Json | None:
        """Have an owner come along; None where it cannot."""
        definition = self._company.kinds.get((owner["apiVersion"], owner["kind"]))
        if definition is None or self._target.get(object_key(definition, namespace, owner["name"])) is not None:
            return None
        found = await self._source.find(owner["apiVersion"], owner["kind"], namespace, owner["name"])
        if found is None or found["metadata"].get("uid") != owner["uid"]:
            return None
        if len(self._company.uids) > MAX_TAKEN:
            raise BadSource(f"more than {MAX_TAKEN} objects; take the installation over by namespaces")
        try:
            body = stored_form(definition, found)
        except Unfit as error:
            self._plan.refuse(f"{owner['kind']} {namespace}/{owner['name']}", str(error))
            return None
        self._company.join(definition, body)
        return body


def missing_owner(owner: Json) -> str:
    """Return what is said of an owner that is nowhere."""
    named = f"{owner['kind']} {owner['name']} (UID {owner['uid']})"
    return (
        f"its owner {named} is neither here nor to be had from the old server, so the garbage collector would delete it; give "
        "the owner, remove the reference there, or type --drop-missing-owners"
    )


def without_owners(body: Json, missing: Sequence[Json]) -> str:
    """Take references off an object, in place; return what is said of that."""
    metadata = body["metadata"]
    metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one not in missing]
    if not metadata["ownerReferences"]:
        del metadata["ownerReferences"]
    dropped = ", ".join(f"{owner['kind']} {owner['name']}" for owner in missing)
    return f"loses the reference to its owner {dropped}, which is nowhere"

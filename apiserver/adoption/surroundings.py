"""What lies around package revisions and comes with them: Namespaces, variants, and the Secrets that open remotes."""

from collections.abc import Iterable
from typing import Any

from apiserver.adoption.company import Company
from apiserver.adoption.objects import NAMESPACE, SECRET, Unfit, creation, stored_form
from apiserver.adoption.plan import Plan
from apiserver.adoption.source import Source, name_of
from apiserver.machinery.definition import Definition
from apiserver.resources.namespaces import new_namespace
from apiserver.resources.reading import object_key
from apiserver.resources.writing import is_terminating
from krm.meta.names import dns_label_problem
from storage.bodies import decode
from storage.interfaces import ObjectStore

Json = dict[str, Any]


class Surroundings:
    """Has such objects come along in ``company``; ``secrets`` is a scratch store for what opens remotes meanwhile."""

    def __init__(self, source: Source, target: ObjectStore, secrets: ObjectStore, plan: Plan, company: Company) -> None:
        self._source = source
        self._target = target
        self._secrets = secrets
        self._plan = plan
        self._company = company

    def make_namespaces(self, names: Iterable[str]) -> None:
        """Have the namespaces be there."""
        for name in sorted(names):
            entry = self._target.get(object_key(NAMESPACE, None, name))
            if problem := dns_label_problem(name):
                self._plan.refuse(f"Namespace {name[:63]}", problem)
            elif entry is None:
                self._company.join(NAMESPACE, new_namespace(name))
            elif is_terminating(decode(entry)):
                self._plan.refuse(f"Namespace {name}", "is being deleted at the new server; wait until it is gone")

    def take(self, item: Json) -> None:
        """Take an object over as it is, unless the new server has it."""
        kind, (namespace, name) = str(item.get("kind")), name_of(item)
        about = f"{kind} {namespace}/{name}"
        definition = self._company.kinds.get((str(item.get("apiVersion")), kind))
        if definition is None:
            self._plan.refuse(about, f"is of version {item.get('apiVersion')!s:.60}, which is not stored here")
            return
        if (body := self.fit(definition, item, about)) is None:
            return
        entry = self._target.get(object_key(definition, namespace, name))
        if entry is None:
            self._company.join(definition, body)
        elif entry.uid != body["metadata"]["uid"]:
            self._plan.refuse(about, f"the new server holds another object of this name (UID {entry.uid})")
        else:
            self._company.uids.add(entry.uid)

    def fit(self, definition: Definition, item: Json, about: str) -> Json | None:
        """Return an object as it is stored; None, and a problem in the plan, where it cannot be."""
        try:
            body = stored_form(definition, item)
        except Unfit as error:
            self._plan.refuse(about, str(error))
            return None
        if is_terminating(body):
            self._plan.refuse(about, "is being deleted at the old server; wait until it is gone, or keep it there")
            return None
        return body

    async def bring_secrets(self, namespace: str, names: Iterable[str], *, keep: bool) -> None:
        """Have Secrets in the scratch store, from the new server where they are there, else from the old one.

        ``keep`` takes those of the old server over, too. Raises BadSource.
        """
        for name in names:
            key, about = object_key(SECRET, namespace, name), f"Secret {namespace}/{name}"
            if self._secrets.get(key) is not None:
                continue
            if (entry := self._target.get(key)) is not None:
                await self._secrets.write([creation(SECRET, decode(entry))])
                continue
            found = await self._source.find("v1", "Secret", namespace, name)
            if found is None or (body := self.fit(SECRET, found, about)) is None:
                continue
            await self._secrets.write([creation(SECRET, body)])
            if keep:
                self._company.join(SECRET, body)

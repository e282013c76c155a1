"""Service accounts: their definition, and the controller that gives every namespace one named ``default``.

Tokens are issued elsewhere. Source: ``kube-api.md`` 1.1 and 2.16; ``decisions.md`` 4.
"""

import asyncio
import uuid
from typing import Final

import structlog

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import BUILT_IN_AGE, count_of
from apiserver.resources.writing import is_terminating
from krm.api.core import ServiceAccount
from krm.meta.conditions import timestamp
from storage.bodies import decode, encode_body
from storage.interfaces import Event, EventType, Mutation, ObjectKey, ObjectStore, Op, StaleWrite, StoreUnavailable

log = structlog.get_logger()

RESOURCE: Final = "serviceaccounts"
NAMESPACES: Final = "namespaces"
DEFAULT: Final = "default"
"""The account that every namespace has."""
ACTOR: Final = "system:serviceaccount:kube-system:service-account-controller"
RETRY_SECONDS: Final = 1.0
"""Seconds until the database is asked again after it refused."""


def service_account_definition() -> Definition:
    """Define ServiceAccount."""
    return Definition(
        group="",
        version="v1",
        kind="ServiceAccount",
        plural="serviceaccounts",
        singular="serviceaccount",
        short_names=("sa",),
        schema=structural_schema(ServiceAccount),
        columns=(Column("Secrets", "string", count_of("secrets"), "Number of Secrets it names."), BUILT_IN_AGE),
        strategic=True,
        merge_keys={"secrets": "name"},
        unconditional_update=True,
        generation=False,
        prepare=_prepare,
    )


def _prepare(new: Json, _old: Json | None) -> None:
    """Keep the names of secrets alone, and write "none" in one form, as Kubernetes does."""
    new["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in new.get("secrets") or ()]
    for name in ("secrets", "imagePullSecrets"):
        if not new.get(name):
            new.pop(name, None)


class DefaultServiceAccounts:
    """Creates the account in every namespace that is not being deleted, and again when somebody deletes it.

    To be made after the store knows both kinds and before it starts.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._missing: asyncio.Queue[str] = asyncio.Queue()
        store.observe(NAMESPACES, self._observe_namespace)
        store.observe(RESOURCE, self._observe_account)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            namespace = await self._missing.get()
            try:
                await self._create(namespace)
            except StoreUnavailable as error:
                log.warning("service account cannot be created now", namespace=namespace, error=str(error))
                self._missing.put_nowait(namespace)
                await asyncio.sleep(RETRY_SECONDS)

    def _observe_namespace(self, event: Event) -> None:
        name = event.entry.name
        if event.type is EventType.ADDED and self._store.get(ObjectKey(RESOURCE, name, DEFAULT)) is None:
            self._missing.put_nowait(name)

    def _observe_account(self, event: Event) -> None:
        if event.type is EventType.DELETED and event.entry.name == DEFAULT:
            self._missing.put_nowait(event.entry.namespace)

    async def _create(self, namespace: str) -> None:
        key = ObjectKey(RESOURCE, namespace, DEFAULT)
        place = self._store.get(ObjectKey(NAMESPACES, "", namespace))
        if self._store.get(key) is not None or place is None or is_terminating(decode(place)):
            return
        account = new_service_account(namespace, DEFAULT)
        uid = account["metadata"]["uid"]
        try:
            await self._store.write([Mutation(key, Op.CREATE, 0, uid, encode_body(account), actor=ACTOR)])
        except StaleWrite:
            # Somebody else was first.
            return


def new_service_account(namespace: str, name: str) -> Json:
    """Return a fresh service account."""
    metadata = {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": timestamp()}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}

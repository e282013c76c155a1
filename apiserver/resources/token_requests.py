"""The ``token`` subresource of ServiceAccount: creating a TokenRequest there answers with a signed token.

Source: ``kube-api.md`` 2.13 and 3.6 (c); checks and wording are those of ``authentication.k8s.io/v1``.
"""

import datetime as dt
from collections.abc import Sequence

import orjson

from apiserver.auth.service_account_tokens import Account, BoundObject, ServiceAccountTokens
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import Scope, WriteOptions
from apiserver.machinery.schema import structural_schema
from apiserver.resources.identity_reviews import GROUP
from apiserver.resources.unstored import unstored
from krm.api.authentication import TokenRequest
from krm.meta.conditions import timestamp
from krm.meta.errors import BadRequest, Cause, Conflict, Invalid, NotFound, ResourceName, invalid_value
from storage.interfaces import Entry, ObjectKey, ObjectStore

DEFAULT_SECONDS = 3600
MIN_SECONDS = 600
MAX_SECONDS = 365 * 24 * 3600
"""Whoever asks for more gets this."""
_LIMIT = 1 << 32

_ACCOUNTS, _SECRETS = ResourceName("serviceaccounts"), ResourceName("secrets")


class TokenRequests:
    """Issues tokens of the service accounts in ``store``, by default for ``audiences``."""

    def __init__(self, store: ObjectStore, tokens: ServiceAccountTokens, audiences: Sequence[str]) -> None:
        self.definition = Definition(
            group=GROUP,
            version="v1",
            kind="TokenRequest",
            plural="tokenrequests",
            singular="tokenrequest",
            schema=structural_schema(TokenRequest),
            generation=False,
            initial={"spec": {}},
        )
        self._ownership = Ownership(self.definition, "token")
        self._store = store
        self._tokens = tokens
        self._audiences = tuple(audiences)

    async def create_for(self, scope: Scope, name: str, wanted: Json, options: WriteOptions) -> Entry:
        """Issue a token for service account ``name``. Repeating it issues another; neither is kept.

        Raises:
            NotFound: there is no such account, or no such object to bind the token to.
            Invalid: it would end too soon, or later than numbers reach, or the body names another account.
            Conflict: the account, or the object to bind it to, is another one of the same name.
            BadRequest: tokens cannot be bound to objects of the kind.
        """
        namespace, metadata, spec = scope.namespace or "", wanted["metadata"], wanted.get("spec") or {}
        if (metadata.get("name") or name) != name:
            cause = invalid_value("metadata.name", metadata["name"], "must match the service account name if specified")
            raise Invalid.of(self.definition.kind, self.definition.group, name, [cause])
        seconds = self._seconds(spec)
        account = await self._account(namespace, name, metadata.get("uid") or "")
        bound = await self._bound(namespace, spec.get("boundObjectRef"))
        audiences = spec.get("audiences") or list(self._audiences)
        token, end = self._tokens.issue(account, audiences, seconds, bound)
        asked = {**wanted, "metadata": _metadata(account), "spec": {**spec, "expirationSeconds": seconds}}
        self._ownership.created(asked, options)
        answered = {
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": timestamp(dt.datetime.fromtimestamp(end, dt.UTC))},
        }
        return unstored({**asked, **answered})

    async def _account(self, namespace: str, name: str, uid: str) -> Account:
        entry = await self._store.get_fresh(ObjectKey(str(_ACCOUNTS), namespace, name))
        if entry is None:
            raise NotFound.of(_ACCOUNTS, name)
        if uid not in ("", entry.uid):
            why = f"the UID in the token request ({uid:.64}) does not match the UID of the service account"
            raise Conflict.of(_ACCOUNTS, name, why)
        return Account(namespace, name, entry.uid)

    def _seconds(self, spec: Json) -> int:
        wanted = spec.get("expirationSeconds")
        if wanted is None:
            return DEFAULT_SECONDS
        problem = ""
        if wanted < MIN_SECONDS:
            problem = "may not specify a duration less than 10 minutes"
        elif wanted > _LIMIT:
            problem = "may not specify a duration larger than 2^32 seconds"
        if problem:
            causes: list[Cause] = [invalid_value("spec.expirationSeconds", wanted, problem)]
            raise Invalid.of(self.definition.kind, GROUP, "", causes)
        return min(int(wanted), MAX_SECONDS)

    async def _bound(self, namespace: str, reference: Json | None) -> BoundObject | None:
        if reference is None:
            return None
        version, kind, name = (reference.get(key) or "" for key in ("apiVersion", "kind", "name"))
        if (version, kind) != ("v1", "Secret"):
            group_version = version if "/" in version else f"/{version}"
            raise BadRequest(f"cannot bind token to object of type {group_version:.64}, Kind={kind:.64}")
        entry = await self._store.get_fresh(ObjectKey(str(_SECRETS), namespace, name))
        if entry is None:
            raise NotFound.of(_SECRETS, name)
        uid = reference.get("uid") or ""
        if uid not in ("", entry.uid):
            why = (
                f"the UID in the bound object reference ({uid:.64}) does not match the UID in record. The object might "
                "have been deleted and then recreated"
            )
            raise Conflict.of(_SECRETS, name, why)
        return BoundObject(kind, name, entry.uid)


def _metadata(account: Account) -> Json:
    return {
        "name": account.name,
        "namespace": account.namespace,
        "uid": account.uid,
        "creationTimestamp": timestamp(),
    }


def live_uid(store: ObjectStore, resource: str, namespace: str, name: str) -> str | None:
    """Return the uid of an object that is not being deleted, or None; for ``ServiceAccountTokens``."""
    entry = store.get(ObjectKey(resource, namespace, name)) if resource in (str(_ACCOUNTS), str(_SECRETS)) else None
    if entry is None or (b'"deletionTimestamp":' in entry.body and _is_terminating(entry)):
        return None
    return entry.uid


def _is_terminating(entry: Entry) -> bool:
    return "deletionTimestamp" in orjson.loads(entry.body)["metadata"]

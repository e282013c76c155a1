"""Writes the rules of ClusterRoles that gather those of others, as these come, change and go.

Source: ``kube-api.md`` 3.6; the rules are gathered as kube-apiserver's controller gathers them: selectors in turn, roles
by name, each rule once.
"""

import asyncio
from collections.abc import Iterator, Mapping

import orjson
import structlog

from apiserver.auth.rbac import CLUSTER_ROLES
from apiserver.machinery.definition import Json
from apiserver.machinery.rest import WriteOptions
from apiserver.resources.objects import StoredObjects
from apiserver.resources.rbac.reconciliation import SYSTEM
from krm.meta.errors import NotFound, StatusError
from storage.interfaces import Entry, Event, ObjectStore

SETTLE_SECONDS = 0.05
"""How long changes are collected, so that a hundred roles applied at once are gathered once."""
RETRY_SECONDS = 5.0
"""Pause after a write that failed."""
MAX_ROUNDS = 10
"""Times that gathering is repeated because a gathered role is itself gathered from; ours need three."""
_MANAGER = "clusterrole-aggregation-controller"

log = structlog.get_logger()


class RoleAggregation:
    """Keeps the gathered rules of all ClusterRoles up to date."""

    def __init__(self, store: ObjectStore, cluster_roles: StoredObjects) -> None:
        self._store = store
        self._cluster_roles = cluster_roles
        self._changed = asyncio.Event()

    def follow(self) -> None:
        """Notice changes from now on; to be called once ClusterRole is registered."""
        self._store.observe(CLUSTER_ROLES, self._observe)

    def _observe(self, _event: Event) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Follow the changes until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._changed.clear()
            try:
                await self.settle()
            except StatusError as error:
                log.warning("cluster roles not aggregated; trying again", error=error.message)
                self._changed.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def settle(self) -> None:
        """Gather until nothing changes any more.

        Raises:
            StatusError: a role could not be written.
        """
        for _ in range(MAX_ROUNDS):
            if not await self._gather():
                return
        log.warning("cluster roles gather from each other in a circle that does not settle", rounds=MAX_ROUNDS)

    async def _gather(self) -> bool:
        """Write what is due, once; tell whether anything was."""
        roles = [_Candidate(entry) for entry in self._store.snapshot(CLUSTER_ROLES)]
        written = False
        for role in roles:
            selectors = (role.obj.get("aggregationRule") or {}).get("clusterRoleSelectors") if role.gathers else None
            if not selectors:
                continue
            rules = list(_gathered(role, selectors, roles))
            if rules != (role.obj.get("rules") or []):
                written = await self._write(role.name, rules) or written
        return written

    async def _write(self, name: str, rules: list[Json]) -> bool:
        def change(current: Json) -> Json:
            return {**current, "rules": rules}

        try:
            await self._cluster_roles.update(SYSTEM, name, change, WriteOptions(field_manager=_MANAGER))
        except NotFound:
            return False
        return True


class _Candidate:
    """A ClusterRole; decoded only if it is needed."""

    def __init__(self, entry: Entry) -> None:
        self.name = entry.name
        self.labels = entry.labels
        self.gathers = b'"aggregationRule":' in entry.body
        self._entry = entry
        self._obj: Json | None = None

    @property
    def obj(self) -> Json:
        if self._obj is None:
            self._obj = orjson.loads(self._entry.body)
        return self._obj


def _gathered(own: _Candidate, selectors: list[Json], roles: list[_Candidate]) -> Iterator[Json]:
    seen: set[bytes] = set()
    for selector in selectors:
        for role in roles:
            if role is own or not _selects(selector, role.labels):
                continue
            for rule in role.obj.get("rules") or ():
                key = orjson.dumps(rule, option=orjson.OPT_SORT_KEYS)
                if key not in seen:
                    seen.add(key)
                    yield rule


def _selects(selector: Json, labels: Mapping[str, str]) -> bool:
    wanted, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(expression, labels) for expression in expressions)


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False

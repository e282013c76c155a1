"""Asks a cluster how it is told of Porch: the APIService, the definitions, and what the server's account may do.

As the caller, who needs an administrator's rights for it; what may not be asked is told as a note. Nothing is changed: a
SubjectAccessReview is a question. Source: issue 9, part 6.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final

from krm.cli.doctor import registration
from krm.cli.doctor.finding import MOST, Diagnosis, Finding, Severity
from krm.cli.doctor.registration import API_SERVICE, GUIDE, NEEDS, Need
from krm.cli.doctor.server import of_clock, time_of
from krm.client.client import KubeClient
from krm.client.connection import Connection
from krm.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS, PACKAGE_REVISIONS, Resource
from krm.meta.errors import Forbidden, NotFound

Json = dict[str, Any]
Definitions = Callable[[], Iterable[Json]]
"""Returns the CustomResourceDefinitions that this version of Porch works with; may take a second."""

PROBE_SECONDS: Final = 15.0
SERVED_PATH: Final = f"/apis/{PACKAGE_REVISIONS.api_version}"
_GROUP_PATH: Final = f"/apis/{API_SERVICES.group}/{API_SERVICES.version}"
_SERVICES: Final = Resource("", "v1", "services", "Service")
_PODS: Final = Resource("", "v1", "pods", "Pod")
_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
_AUTHENTICATED: Final = "system:authenticated"
_ACCOUNT: Final = "system:serviceaccount:"


class ClusterExamination:
    """One look at a cluster; ``account`` is the user whom the server is there, empty: that of the Pods behind the Service."""

    def __init__(
        self, client: KubeClient, diagnosis: Diagnosis, now: dt.datetime, definitions: Definitions, account: str
    ) -> None:
        self._client = client
        self._found = diagnosis
        self._now = now
        self._definitions = definitions
        self._account = account

    async def registration(self, connection: Connection, address: str) -> None:
        """Look at the APIService, at the definitions, at the account's rights, and at who answers behind it all.

        Raises:
            NoAnswer: the cluster does not answer.
        """
        service = await self._api_service()
        await self._ask_porch(connection, address, service)
        await self._compare_definitions()
        if not self._account and service is not None:
            self._account = await self._account_behind(service)
        if self._account:
            await self._review(NEEDS)

    async def secrets(self, named: Iterable[tuple[str, str]]) -> None:
        """Look whether the account may read Secrets that Repositories name, as (namespace, name); of many the first."""
        if self._account:
            await self._review([registration.secret_need(*one) for one in sorted(named)[:MOST]])

    async def _api_service(self) -> Json | None:
        try:
            service = await self._client.get(API_SERVICES, None, API_SERVICE)
        except NotFound:
            fix = f"install the chart, or apply the APIService that {GUIDE} describes"
            told = Finding(
                Severity.ERROR, f"APIService {API_SERVICE}", "is missing: the cluster knows of no packages", fix
            )
            self._found.add("APIService", [told])
            return None
        except Forbidden:
            self._note("see how the cluster is told of Porch (apiservices)")
            return None
        self._found.add("APIService", registration.of_api_service(service, self._now))
        return service

    async def _ask_porch(self, connection: Connection, address: str, service: Json | None) -> None:
        """Ask the server behind the cluster's own for what anybody may know, and look at its clock."""
        before = dt.datetime.now(dt.UTC)
        answer = await connection.probe(SERVED_PATH, seconds=PROBE_SECONDS)
        if answer.code == HTTPStatus.OK:
            ours = before + (dt.datetime.now(dt.UTC) - before) / 2
            self._found.add("clock", of_clock(f"Porch behind {address}", time_of(answer), ours))
        elif answer.code == HTTPStatus.SERVICE_UNAVAILABLE and service is not None:
            told = answer.body.decode(errors="replace").strip()
            self._found.add("APIService", registration.of_refusal(service, told))

    async def _compare_definitions(self) -> None:
        for ours in await asyncio.to_thread(lambda: [*self._definitions()]):
            try:
                installed = await self._client.get(CUSTOM_RESOURCE_DEFINITIONS, None, ours["metadata"]["name"])
            except NotFound:
                installed = None
            except Forbidden:
                self._note("see whether its definitions are those of this version (customresourcedefinitions)")
                return
            self._found.add("definitions", registration.of_definition(ours, installed))

    async def _account_behind(self, api_service: Json) -> str:
        """Return the user that the Pods behind an APIService are, empty where there are none or they may not be seen."""
        named = (api_service.get("spec") or {}).get("service") or {}
        namespace, name = str(named.get("namespace") or ""), str(named.get("name") or "")
        try:
            service = await self._client.get(_SERVICES, namespace, name)
            selector = (service.get("spec") or {}).get("selector") or {}
            labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
            if labels:
                async for page in self._client.list(_PODS, namespace, label_selector=labels, page=1):
                    for pod in page.items:
                        account = (pod.get("spec") or {}).get("serviceAccountName") or "default"
                        return f"{_ACCOUNT}{namespace}:{account}"
        except NotFound:  # which the APIService's own condition tells
            return ""
        except Forbidden:
            self._note("see as whom the server runs (services, pods)")
            return ""
        problem = "no Pods are behind it, so as whom the server runs is not known"
        fix = "name its user with --server-account, and its rights are looked at"
        self._found.add("rights", [Finding(Severity.NOTE, f"Service {namespace}/{name}", problem, fix)])
        return ""

    async def _review(self, needs: Sequence[Need]) -> None:
        """Ask what the account may do."""
        groups = _groups_of(self._account)
        reviews = (registration.access_review(need, self._account, groups) for need in needs)
        try:
            answers = await asyncio.gather(*(self._client.create(_REVIEWS, None, one) for one in reviews))
        except Forbidden:
            self._account = ""
            self._note("ask what the server may do (subjectaccessreviews)")
            return
        missing = [
            need for need, one in zip(needs, answers, strict=True) if not (one.get("status") or {}).get("allowed")
        ]
        self._found.add("rights of the server", registration.of_account(self._account, missing))

    def _note(self, what: str) -> None:
        fix = "ask somebody who administers the cluster to run porch doctor"
        self._found.add("rights", [Finding(Severity.NOTE, "You", f"may not {what}", fix)])


async def is_cluster(connection: Connection) -> bool:
    """Tell whether a server is one that other servers register at, and not a standalone Porch.

    Raises:
        NoAnswer: it does not say.
    """
    answer = await connection.probe(_GROUP_PATH, seconds=PROBE_SECONDS)
    return answer.code == HTTPStatus.OK


def _groups_of(account: str) -> list[str]:
    if not account.startswith(_ACCOUNT):
        return [_AUTHENTICATED]
    namespace = account.removeprefix(_ACCOUNT).partition(":")[0]
    accounts = _ACCOUNT.replace("account:", "accounts")
    return [accounts, f"{accounts}:{namespace}", _AUTHENTICATED]

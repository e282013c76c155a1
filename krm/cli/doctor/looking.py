"""Asks a server all that the checks read, as the caller; what cannot be asked is told, and keeps nothing else back.

Source: ``users.md`` 2; issue 9, part 6.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from krm.cli.cluster import namespace_of
from krm.cli.doctor import objects, registration, rights, server
from krm.cli.doctor.cluster_looking import ClusterExamination, Definitions, is_cluster
from krm.cli.doctor.finding import Diagnosis, Finding, Severity, reference
from krm.client.client import KubeClient
from krm.client.connection import Answer, Connection, open_connection
from krm.client.errors import NoAnswer
from krm.client.kubeconfig import BadKubeconfig, read_access
from krm.client.resources import (
    LEASES,
    PACKAGE_REVISIONS,
    PACKAGE_VARIANT_SETS,
    PACKAGE_VARIANTS,
    REPOSITORIES,
    Resource,
)
from krm.meta.errors import Forbidden, StatusError, Unauthorized

Json = dict[str, Any]
Check = Callable[[Json, dt.datetime], Iterable[Finding]]

LEASE_NAMES: Final = ("porch-controllers", "porch-approval")
OF_VARIANTS: Final = LEASE_NAMES[0]
UNFINISHED: Final = ("Draft", "Proposed", "DeletionProposed")
"""Lifecycles of package revisions that are looked at: published ones are the many, and wait for nothing."""
SHOWN: Final = 3
"""Variants and sets that are named as what controllers would have to do."""
PROBE_SECONDS: Final = 15.0
RENEW: Final = "get a new kubeconfig: porch issue USER, or of a cluster as its administrator says"


class ServerExamination:
    """One look at a server; ``namespace`` limits it, empty stands for all that the caller may see.

    ``definitions`` and ``account`` are for a cluster: see :class:`ClusterExamination`.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        namespace: str,
        patience: dt.timedelta,
        diagnosis: Diagnosis,
        definitions: Definitions,
        account: str,
    ) -> None:
        self._kubeconfig, self._namespace, self._patience = kubeconfig, namespace, patience
        self._definitions, self._account = definitions, account
        self._found = diagnosis
        self._secrets: set[tuple[str, str]] = set()
        """Namespace and name of those that Repositories name."""
        self._work: list[str] = []
        """Variants and sets that were seen, the first of them."""
        self._now = dt.datetime.now(dt.UTC)
        """By the server's clock, once it is known: the ages of objects are told by that."""
        self._address = ""
        self._may_list_all = True

    async def run(self) -> None:
        """Look at everything; harmless to repeat, for it only reads.

        Raises:
            BadKubeconfig: no server is named in a way that can be understood.
        """
        access = await read_access(self._kubeconfig)
        self._address = f"Server {access.url}"
        mine = await asyncio.to_thread(server.certificate_file, access.configuration.cert_file)
        if mine is not None:
            self._found.add("certificates", server.of_certificate("Your certificate", mine, self._now, RENEW))
        async with open_connection(self._kubeconfig, agent="porch-doctor") as connection:
            try:
                await self._server(connection)
                await self._examine(connection, KubeClient(connection))
            except NoAnswer as error:
                fix = "see that the server runs, and that the kubeconfig has its address and its CA"
                self._found.add("server", [Finding(Severity.ERROR, self._address, f"does not answer: {error}", fix)])
                self._found.cannot_look(f"what is on the server: {error}")
            except Unauthorized as error:
                told = Finding(Severity.ERROR, self._address, f"does not know you: {error.message}", RENEW)
                self._found.add("server", [told])
                self._found.cannot_look(f"what is on the server: {error.message}")

    # --- the server ---------------------------------------------------------------------------------

    async def _server(self, connection: Connection) -> None:
        before = dt.datetime.now(dt.UTC)
        ready = await connection.probe("/readyz", query={"verbose": ""}, seconds=PROBE_SECONDS)
        ours = before + (dt.datetime.now(dt.UTC) - before) / 2
        theirs = server.time_of(ready)
        self._now = theirs or ours
        self._found.add("readiness", server.of_readiness(self._address, ready))
        self._found.add("clock", server.of_clock(self._address, theirs, ours))
        if ready.certificate is not None:
            name, fix = (
                f"The certificate of {self._address.lower()}",
                "restart the server, or have its certificate renewed",
            )
            self._found.add("certificates", server.of_certificate(name, ready.certificate, ours, fix))
        version, kubectl = await asyncio.gather(
            connection.probe("/version", seconds=PROBE_SECONDS), server.kubectl_version()
        )
        served = version.body.decode(errors="replace") if version.code == HTTPStatus.OK else ""
        self._found.add("versions", server.of_versions(self._address, _git_version(served), kubectl))

    async def _figures(self, connection: Connection) -> None:
        """Look at the metrics of a server that is no cluster, whose own are of other things, and many megabytes."""
        figures: Answer = await connection.probe("/metrics", seconds=PROBE_SECONDS)
        if figures.code == HTTPStatus.OK:
            self._found.add("drafts", server.of_figures(self._address, figures.body.decode(errors="replace")))
        elif figures.code != HTTPStatus.UNAUTHORIZED:
            fix = "ask somebody who may read /metrics whether drafts wait to be pushed"
            self._found.add("drafts", [Finding(Severity.NOTE, "You", "may not read the server's metrics", fix)])

    # --- what is on it ------------------------------------------------------------------------------

    async def _examine(self, connection: Connection, client: KubeClient) -> None:
        if not await is_cluster(connection):
            await self._figures(connection)
            await self._objects(client, in_cluster=False)
            return
        cluster = ClusterExamination(client, self._found, self._now, self._definitions, self._account)
        await cluster.registration(connection, self._address)
        await self._objects(client, in_cluster=True)
        await cluster.secrets(self._secrets)

    async def _objects(self, client: KubeClient, *, in_cluster: bool) -> None:
        revision = partial(objects.of_revision, patience=self._patience)
        kinds: tuple[tuple[Resource, Check, str], ...] = (
            (REPOSITORIES, objects.of_repository, ""),
            *((PACKAGE_REVISIONS, revision, f"spec.lifecycle={one}") for one in UNFINISHED),
            (PACKAGE_VARIANTS, objects.of_variant, ""),
            (PACKAGE_VARIANT_SETS, objects.of_variant, ""),
        )
        for resource, check, fields in kinds:
            await self._kind(client, resource, check, fields)
        await self._leases(client, in_cluster=in_cluster)
        await self._rights(client)

    async def _kind(self, client: KubeClient, resource: Resource, check: Check, fields: str) -> None:
        """Look at all objects of a kind where the caller may, a page at a time."""
        namespace = self._namespace or (None if self._may_list_all else namespace_of(self._kubeconfig))
        try:
            async for page in client.list(resource, namespace, field_selector=fields):
                for body in page.items:
                    named = {"kind": resource.kind, **body}
                    self._found.add(resource.plural, check(named, self._now))
                    self._take_down(resource, named)
        except Forbidden as error:
            if namespace is None and self._may_list_all:
                self._narrow()
                await self._kind(client, resource, check, fields)
            else:
                self._found.cannot_look(f"{resource.plural}: {error.message}")
        except Unauthorized:
            raise
        except StatusError as error:
            self._found.cannot_look(f"{resource.plural}: {error.message}")

    def _take_down(self, resource: Resource, body: Json) -> None:
        """Note what other checks ask for."""
        if resource is REPOSITORIES and (name := objects.secret_of(body)):
            self._secrets.add((str(body["metadata"].get("namespace") or ""), name))
        elif resource in (PACKAGE_VARIANTS, PACKAGE_VARIANT_SETS) and len(self._work) < SHOWN:
            self._work.append(reference(body))

    async def _leases(self, client: KubeClient, *, in_cluster: bool) -> None:
        """Look whether controllers work, in whatever namespace their Leases are."""
        seen: list[str] = []
        try:
            for name in LEASE_NAMES:
                pages = client.list(LEASES, None, field_selector=f"metadata.name={name}")
                leases = [{"kind": LEASES.kind, **body} async for page in pages for body in page.items]
                is_wanted = bool(self._work) and name == OF_VARIANTS
                self._found.add("controllers", objects.of_leases(leases, self._now, is_wanted=is_wanted))
                seen += [name] if leases else []
            if in_cluster and OF_VARIANTS not in seen:  # standalone they run without one, too
                self._found.add("controllers", registration.of_absent_leader(self._work))
        except Forbidden:
            fix = "ask somebody who may read Leases whether the controllers run"
            self._found.add("controllers", [Finding(Severity.NOTE, "You", "may not see who runs the controllers", fix)])

    def _narrow(self) -> None:
        """Look at one namespace from now on, since the caller may not look at all."""
        self._may_list_all = False
        mine = namespace_of(self._kubeconfig)
        told = f"may not look at all namespaces: only {mine} is looked at from here on"
        self._found.add("rights", [Finding(Severity.NOTE, "You", told, "name another one with -n NAMESPACE")])

    async def _rights(self, client: KubeClient) -> None:
        namespace = self._namespace or ("" if self._may_list_all else namespace_of(self._kubeconfig))
        answers: dict[rights.Step, bool] = {}
        for step in rights.STEPS:
            try:
                answer = await client.create(rights.REVIEWS, None, rights.review(step, namespace))
            except Unauthorized:
                raise
            except StatusError as error:
                self._found.cannot_look(f"your rights: {error.message}")
                return
            answers[step] = bool((answer.get("status") or {}).get("allowed"))
        self._found.add("rights", rights.of_rights(answers, namespace))


def _git_version(text: str) -> str:
    _, _, rest = text.partition('"gitVersion"')
    return rest.partition('"')[2].partition('"')[0]


async def examine_server(
    kubeconfig: Path | None,
    namespace: str,
    patience: dt.timedelta,
    diagnosis: Diagnosis,
    *,
    definitions: Definitions,
    account: str = "",
) -> None:
    """Look at the server of a kubeconfig; what is found is added to ``diagnosis``.

    A kubeconfig that cannot be used is something that could not be looked at, too.
    """
    try:
        await ServerExamination(kubeconfig, namespace, patience, diagnosis, definitions, account).run()
    except (BadKubeconfig, OSError) as error:
        diagnosis.cannot_look(f"the server: {error}")

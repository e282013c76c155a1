"""What a thousand PackageVariants cost: from nothing to drafts, through an approval and a new upstream revision, at rest, and one of them.

The server and the controllers are processes of their own and share the machine with the Git server. Source: issue 7.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measurements as m
from blueprint import PACKAGE, make_remote, propose_next
from controllers_run import PATIENCE, ControllersRun, is_idle, ok
from measured_controllers import ControllersProcess
from report import Row, at_most
from testbed import (
    CONFIG,
    PorchClient,
    PorchProcess,
    RemoteServer,
    credentials,
    remotes,
    repository,
    resident_megabytes,
)

Json = dict[str, Any]

UPSTREAM = "blueprints"
READY = 'porch_variants{condition="Ready",status="True"}'


@dataclass(frozen=True)
class Load:
    """How many variants over how many repositories, and how often one of them is edited alone."""

    variants: int
    repositories: int
    edits: int


FULL = Load(1000, 10, 20)
SHORT = Load(50, 2, 3)


def rows(start: Callable[[str], PorchProcess], git: RemoteServer, folder: Path, load: Load) -> list[Row]:
    """Measure every stage on one server."""
    server = start("variants")
    controllers = ControllersProcess(server, folder / "controllers.log")
    stages = Stages(server, controllers, git, load)
    try:
        return list(stages.measured())
    finally:
        controllers.stop()
        server.stop()
        stages.close()


class Stages:
    """One run: a server with a blueprint and deployment repositories, and the variants between them."""

    def __init__(self, server: PorchProcess, controllers: ControllersProcess, git: RemoteServer, load: Load) -> None:
        self._server, self._controllers, self._git, self._load = server, controllers, git, load
        self._run = ControllersRun(server, controllers)
        self._porch = self._run.porch
        self._repositories = [f"variants-{number}" for number in range(load.repositories)]
        self._what = f"{load.variants} variants over {load.repositories} repositories"

    def close(self) -> None:
        """Close the connections."""
        self._run.close()

    def measured(self) -> Iterator[Row]:
        """Run the stages in order; yield what each shows."""
        self._prepare()
        yield from self._cold()
        self._approve_all()
        yield from self._new_upstream()
        yield from self._at_rest()
        yield from self._one()
        yield at_most(f"{self._what}: controllers, most memory", "–", 200, self._controllers.most_megabytes(), "MB")
        yield Row(f"{self._what}: server, memory", "–", "", f"{resident_megabytes(self._server.pid):.0f} MB")

    # --- stages -----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the remotes and register them; create the variants while nobody looks after them."""
        make_remote(self._git, f"{UPSTREAM}-of-variants")
        self._register(UPSTREAM, f"{UPSTREAM}-of-variants", deployment=False)
        for name in self._repositories:
            remotes.empty_remote(self._git.path(name))
            self._register(name, name, deployment=True)
        began = time.monotonic()
        self._run.all(
            range(self._load.variants), lambda client, number: ok(_create_variant(client, self._variant(number)))
        )
        print(f"  {self._load.variants} variants created in {time.monotonic() - began:.1f} s", flush=True)

    def _register(self, name: str, remote: str, *, deployment: bool) -> None:
        porch = self._porch
        porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials())
        body = repository(name, self._git.url(remote), deployment=deployment)
        ok(porch.request("POST", f"{CONFIG}/namespaces/{porch.namespace}/repositories", body))
        m.wait_until_ready(porch, name)

    def _variant(self, number: int) -> Json:
        downstream = {"repo": self._repositories[number % len(self._repositories)], "package": f"app-{number}"}
        upstream = {"repo": UPSTREAM, "package": PACKAGE, "revision": "latest"}
        return {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": {"name": f"variant-{number}"},
            "spec": {"upstream": upstream, "downstream": downstream},
        }

    def _cold(self) -> Iterator[Row]:
        """From the start of the controllers' process to variants that are all Ready."""
        began = time.monotonic()
        before = self._run.spent()
        self._controllers.start()
        ready = self._run.until(lambda found: found.get(READY) == self._load.variants) - began
        self._run.say("from nothing to Ready", before, ready, self._load.variants)
        branches = self._until_branches(1) - began
        assert len(self._drafts()) == self._load.variants
        assert self._run.writes().total > self._load.variants  # or none would mean nothing below
        yield at_most(f"{self._what}: from a cold start to all Ready", "–", 60, ready, "s")
        yield at_most(f"{self._what}: to all branches of drafts in the remotes", "–", 120, branches, "s")

    def _approve_all(self) -> None:
        """Approve every draft, as people do, and wait until the controllers have seen it."""
        before, began = self._run.spent(), time.monotonic()
        self._run.all(self._drafts(), _approve)
        took = time.monotonic() - began
        self._run.until_quiet()
        self._run.say("drafts approved", before, took, self._load.variants)

    def _new_upstream(self) -> Iterator[Row]:
        """From the approval of a new revision of the blueprint to a draft of it in every package."""
        name = propose_next(self._porch, UPSTREAM)
        created = 'porch_variant_drafts_created_total{trigger="UpstreamChanged"}'
        before = self._run.spent()
        began = time.monotonic()
        ok(self._porch.approve(name))
        drafts = self._run.until(lambda found: found.get(created) == self._load.variants and is_idle(found)) - began
        self._run.say("upgrades", before, drafts, self._load.variants)
        branches = self._until_branches(2) - began
        names = self._drafts()
        assert len(names) == self._load.variants
        assert all(name.endswith(".packagevariant-2") for name in names)
        yield at_most(f"{self._what}: from an upstream revision to all upgraded drafts", "–", 60, drafts, "s")
        yield at_most(f"{self._what}: to the branches of these drafts in the remotes", "–", 120, branches, "s")

    def _at_rest(self) -> Iterator[Row]:
        """Look at every variant again, in the running process and in a new one."""
        self._run.until_quiet()
        found = self._resync(self._controllers.resync)
        yield at_most(f"resync of {self._load.variants} variants with nothing to do: writes", "–", 0, found.writes, "")
        yield at_most(f"resync of {self._load.variants} variants with nothing to do: CPU", "–", 2, found.cpu, "s")

        def restart() -> None:
            self._controllers.stop()
            self._controllers.start()

        again = self._resync(restart)
        yield at_most(f"restart beside {self._load.variants} variants: writes", "–", 0, again.writes, "")
        yield Row(
            f"restart beside {self._load.variants} variants: CPU, requests",
            "–",
            "",
            f"{again.cpu:.2g} s, {again.requests:.0f}",
        )

    def _resync(self, provoke: Callable[[], None]) -> "_Resync":
        restarts = provoke != self._controllers.resync
        cpu = 0.0 if restarts else self._controllers.cpu_seconds()
        passes = 0.0 if restarts else self._controllers.metrics().get("porch_variant_passes_total", 0.0)
        requests = 0.0 if restarts else self._controllers.metrics().get("rest_client_requests_total", 0.0)
        writes = self._run.writes().total
        provoke()
        self._run.until(
            lambda found: found.get("porch_variant_passes_total", 0) >= passes + self._load.variants and is_idle(found)
        )
        spent = self._controllers.cpu_seconds() - cpu
        asked = self._controllers.metrics()["rest_client_requests_total"] - requests
        self._run.until_quiet()
        return _Resync(self._run.writes().total - writes, spent, asked)

    def _one(self) -> Iterator[Row]:
        """Edit one variant at a time: how long until its draft has the edit, and how many reconciles that took."""
        self._run.until_quiet()
        before = self._controllers.metrics()["controller_runtime_reconcile_total"]
        delays = []
        for number in range(self._load.edits):
            delays.append(self._edit(number))
            self._run.until_quiet()
        done = self._controllers.metrics()["controller_runtime_reconcile_total"] - before
        print(f"  delays of single edits: {[round(delay) for delay in delays]} ms", flush=True)
        yield at_most("one variant edited: until its draft has it, p50", "–", 250, statistics.median(delays))
        yield Row("one variant edited: until its draft has it, longest", "–", "", f"{max(delays):.0f} ms")
        yield Row(
            "one variant edited: reconciles",
            "–",
            "exactly 1",
            f"{done / self._load.edits:.4g}",
            done == self._load.edits,
        )

    def _edit(self, number: int) -> float:
        """Give a variant other context data; return the milliseconds until the draft's files have it."""
        porch, repo = self._porch, self._repositories[number % len(self._repositories)]
        draft = f"{repo}.app-{number}.packagevariant-2"
        path = f"{CONFIG}/namespaces/{porch.namespace}/packagevariants/variant-{number}"
        patch = {"spec": {"packageContext": {"data": {"edit": f"edit-{number}"}}}}
        began = time.monotonic()
        ok(porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))
        while True:
            found = porch.revision(draft).object
            conditions = {one["type"]: one["status"] for one in found["status"].get("conditions") or ()}
            if conditions.get("PVOperationsComplete") == "True" and self._has(draft, f"edit-{number}"):
                return (time.monotonic() - began) * 1000
            if time.monotonic() - began > PATIENCE:
                raise RuntimeError(f"{draft} was not edited: {found['status']}")
            time.sleep(0.005)

    def _has(self, draft: str, text: str) -> bool:
        return text in json.dumps(self._porch.resources(draft).object["spec"]["resources"])

    # --- observing --------------------------------------------------------------------------------

    def _drafts(self) -> list[str]:
        """Return the names of the drafts that variants made, all of whose operations have to be complete."""
        found = self._porch.revisions("spec.lifecycle=Draft")
        drafts = [one for one in found if one["spec"]["workspaceName"].startswith("packagevariant-")]
        for one in drafts:
            conditions = {each["type"]: each["status"] for each in one["status"]["conditions"]}
            assert conditions["PVOperationsComplete"] == "True", one["metadata"]["name"]
            assert conditions["PackagePipelinePassed"] == "True", one["metadata"]["name"]
        return [one["metadata"]["name"] for one in drafts]

    def _until_branches(self, number: int) -> float:
        """Wait until the remotes have a draft's branch of this workspace for each package; return the time."""
        deadline = time.monotonic() + PATIENCE
        while (count := sum(self._branches(name, number) for name in self._repositories)) < self._load.variants:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the remotes have {count} branches of {self._load.variants}")
            time.sleep(0.5)
        self.close()
        return time.monotonic()

    def _branches(self, name: str, number: int) -> int:
        listed = remotes.git("for-each-ref", "--format=%(refname)", "refs/heads/drafts", cwd=self._git.path(name))
        return sum(line.endswith(f"/packagevariant-{number}") for line in listed.splitlines())


@dataclass(frozen=True)
class _Resync:
    writes: float
    cpu: float
    requests: float


def _approve(client: PorchClient, name: str) -> None:
    ok(client.propose(name))
    ok(client.approve(name))


def _create_variant(client: PorchClient, body: Json) -> Any:
    return client.request("POST", f"{CONFIG}/namespaces/{client.namespace}/packagevariants", body)

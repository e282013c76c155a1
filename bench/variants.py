"""What a thousand PackageVariants cost: from nothing to drafts, through an approval and a new upstream revision, at rest, and one of them.

The server and the controllers are processes of their own and share the machine with the Git server. Source: issue 7.
"""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measurements as m
from measured_controllers import ControllersProcess, cpu_seconds, series
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

CLIENTS = 8
UPSTREAM = "blueprints"
PACKAGE = "app"
READY = 'porch_variants{condition="Ready",status="True"}'
PATIENCE = 900.0
"""Seconds that a stage may take before the run is given up."""
QUIET_SECONDS = 2.0
"""So long nothing may be going on until a stage counts as over."""

KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
  - image: gcr.io/kpt-fn/set-labels:v0.2.0
    configMap:
      app: app
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: {replicas}
  template:
    spec:
      containers:
      - name: app
        image: app:v1
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: app\nspec:\n  ports:\n  - port: 80\n"


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
        self._clients = [server.client(timeout=120) for _ in range(CLIENTS)]
        self._porch = self._clients[0]
        self._repositories = [f"variants-{number}" for number in range(load.repositories)]
        self._what = f"{load.variants} variants over {load.repositories} repositories"

    def close(self) -> None:
        """Close the connections; a request opens its own again. The server ends those that nobody used for long."""
        for client in self._clients:
            client.close()

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
        blueprint = remotes.empty_remote(self._git.path(f"{UPSTREAM}-of-variants"))
        files = {"Kptfile": KPTFILE, "deployment.yaml": DEPLOYMENT.format(replicas=1), "service.yaml": SERVICE}
        remotes.commit_files(
            blueprint, {f"{PACKAGE}/{path}": text for path, text in files.items()}, "v1", tag=f"{PACKAGE}/v1"
        )
        self._register(UPSTREAM, f"{UPSTREAM}-of-variants", deployment=False)
        for name in self._repositories:
            remotes.empty_remote(self._git.path(name))
            self._register(name, name, deployment=True)
        began = time.monotonic()
        self._all(
            range(self._load.variants), lambda client, number: _ok(_create_variant(client, self._variant(number)))
        )
        print(f"  {self._load.variants} variants created in {time.monotonic() - began:.1f} s", flush=True)

    def _register(self, name: str, remote: str, *, deployment: bool) -> None:
        porch = self._porch
        porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials())
        body = repository(name, self._git.url(remote), deployment=deployment)
        _ok(porch.request("POST", f"{CONFIG}/namespaces/{porch.namespace}/repositories", body))
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
        before = self._spent()
        self._controllers.start()
        ready = self._until(lambda found: found.get(READY) == self._load.variants) - began
        self._say("from nothing to Ready", before, ready)
        branches = self._until_branches(1) - began
        assert len(self._drafts()) == self._load.variants
        assert self._writes() > self._load.variants  # or none would mean nothing below
        yield at_most(f"{self._what}: from a cold start to all Ready", "–", 60, ready, "s")
        yield at_most(f"{self._what}: to all branches of drafts in the remotes", "–", 120, branches, "s")

    def _approve_all(self) -> None:
        """Approve every draft, as people do, and wait until the controllers have seen it."""
        before, began = self._spent(), time.monotonic()
        self._all(self._drafts(), _approve)
        took = time.monotonic() - began
        self._until_quiet()
        self._say("drafts approved", before, took)

    def _new_upstream(self) -> Iterator[Row]:
        """From the approval of a new revision of the blueprint to a draft of it in every package."""
        source, name = f"{UPSTREAM}.{PACKAGE}.v1", f"{UPSTREAM}.{PACKAGE}.v2"
        task = {"type": "edit", "edit": {"sourceRef": {"name": source}}}
        _ok(self._porch.create_revision(UPSTREAM, PACKAGE, "v2", tasks=[task]))
        _ok(self._porch.save(name, {"deployment.yaml": DEPLOYMENT.format(replicas=3)}))
        _ok(self._porch.propose(name))
        created = 'porch_variant_drafts_created_total{trigger="UpstreamChanged"}'
        before = self._spent()
        began = time.monotonic()
        _ok(self._porch.approve(name))
        drafts = self._until(lambda found: found.get(created) == self._load.variants and _is_idle(found)) - began
        self._say("upgrades", before, drafts)
        branches = self._until_branches(2) - began
        names = self._drafts()
        assert len(names) == self._load.variants
        assert all(name.endswith(".packagevariant-2") for name in names)
        yield at_most(f"{self._what}: from an upstream revision to all upgraded drafts", "–", 60, drafts, "s")
        yield at_most(f"{self._what}: to the branches of these drafts in the remotes", "–", 120, branches, "s")

    def _at_rest(self) -> Iterator[Row]:
        """Look at every variant again, in the running process and in a new one."""
        self._until_quiet()
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
        writes = self._writes()
        provoke()
        self._until(
            lambda found: found.get("porch_variant_passes_total", 0) >= passes + self._load.variants and _is_idle(found)
        )
        spent = self._controllers.cpu_seconds() - cpu
        asked = self._controllers.metrics()["rest_client_requests_total"] - requests
        self._until_quiet()
        return _Resync(self._writes() - writes, spent, asked)

    def _one(self) -> Iterator[Row]:
        """Edit one variant at a time: how long until its draft has the edit, and how many reconciles that took."""
        self._until_quiet()
        before = self._controllers.metrics()["controller_runtime_reconcile_total"]
        delays = []
        for number in range(self._load.edits):
            delays.append(self._edit(number))
            self._until_quiet()
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
        _ok(porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))
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

    def _all(self, items: Any, work: Callable[[PorchClient, Any], object]) -> None:
        """Do one thing for every item over all connections."""
        shares = list(items)

        def some(part: int) -> None:
            for item in shares[part::CLIENTS]:
                work(self._clients[part], item)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(some, range(CLIENTS)))

    def _drafts(self) -> list[str]:
        """Return the names of the drafts that variants made, all of whose operations have to be complete."""
        found = self._porch.revisions("spec.lifecycle=Draft")
        drafts = [one for one in found if one["spec"]["workspaceName"].startswith("packagevariant-")]
        for one in drafts:
            conditions = {each["type"]: each["status"] for each in one["status"]["conditions"]}
            assert conditions["PVOperationsComplete"] == "True", one["metadata"]["name"]
            assert conditions["PackagePipelinePassed"] == "True", one["metadata"]["name"]
        return [one["metadata"]["name"] for one in drafts]

    def _until(self, done: Callable[[dict[str, float]], bool]) -> float:
        """Wait for what the controllers' metrics say; return the time."""
        deadline = time.monotonic() + PATIENCE
        while not done(found := self._controllers.metrics()):
            if time.monotonic() > deadline:
                told = {name: value for name, value in found.items() if name.startswith(("porch_", "workqueue_"))}
                raise RuntimeError(f"not done after {PATIENCE} s: {told}")
            time.sleep(0.2)
        self.close()
        return time.monotonic()

    def _until_quiet(self) -> None:
        """Wait until no variant was looked at for a while."""
        deadline = time.monotonic() + PATIENCE
        quiet, seen = time.monotonic(), -1.0
        while time.monotonic() - quiet < QUIET_SECONDS:
            found = self._controllers.metrics()
            now = found.get("controller_runtime_reconcile_total", 0.0)
            if now != seen or not _is_idle(found):
                quiet, seen = time.monotonic(), now
            if time.monotonic() > deadline:
                raise RuntimeError(f"the controllers find no rest: {found}")
            time.sleep(0.2)
        self.close()

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

    def _writes(self) -> float:
        """Return how many writes the server has answered."""
        text = self._porch.request("GET", "/metrics", accept="text/plain").body.decode()
        return sum(
            value
            for name, value in series(text).items()
            if name.startswith("apiserver_request_total{")
            and not re.search('verb="(GET|LIST|WATCH|HEAD|CONNECT)"', name)
            and not re.search('resource="(leases|events)"', name)
        )

    def _spent(self) -> tuple[float, float, float]:
        """Return processor seconds of the server and the controllers, and the controllers' requests."""
        requests = (
            self._controllers.metrics().get("rest_client_requests_total", 0.0) if self._controllers.running else 0
        )
        return cpu_seconds(self._server.pid), self._controllers.cpu_seconds(), requests

    def _say(self, what: str, before: tuple[float, float, float], seconds: float) -> None:
        server, controllers, requests = (now - then for now, then in zip(self._spent(), before, strict=True))
        print(
            f"  {what}: {seconds:.1f} s; CPU of the server {server:.1f} s, of the controllers {controllers:.1f} s; "
            f"{requests / self._load.variants:.2f} requests a variant",
            flush=True,
        )


@dataclass(frozen=True)
class _Resync:
    writes: float
    cpu: float
    requests: float


def _is_idle(found: dict[str, float]) -> bool:
    return not found.get("workqueue_depth") and not found.get("controller_runtime_active_workers")


def _approve(client: PorchClient, name: str) -> None:
    _ok(client.propose(name))
    _ok(client.approve(name))


def _create_variant(client: PorchClient, body: Json) -> Any:
    return client.request("POST", f"{CONFIG}/namespaces/{client.namespace}/packagevariants", body)


def _ok(answer: Any) -> None:
    if answer.code >= 300:
        raise RuntimeError(f"{answer.code}: {answer.body[:1000]!r}")

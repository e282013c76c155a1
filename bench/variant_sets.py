"""What one PackageVariantSet over a thousand repositories costs: from nothing to drafts, a new upstream in waves, at rest, previewed.

Server, controllers and approvals are processes of their own and share the machine with the Git server, to which drafts are
pushed meanwhile. Of each stage the API writes are counted beside the fewest that would do. Source: issue 8.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blueprint import PACKAGE, make_remote, propose_next
from controllers_run import PATIENCE, ControllersRun, Writes, is_idle, ok
from measured_controllers import ControllersProcess
from report import Row, at_most
from testbed import (
    PorchClient,
    PorchProcess,
    RemoteServer,
    ServerDied,
    credentials,
    remotes,
    repository,
    resident_megabytes,
)

Json = dict[str, Any]

UPSTREAM = "fleet-blueprints"
SETS = "/apis/config.porch.kpt.dev/v1alpha2"
READY = 'porch_variants{condition="Ready",status="True"}'
FLEET, MANY = "fleet", "many"
"""The set that is rolled out, and one with more variants that is only looked at."""
TELLS_SECONDS = 2.0
"""A set says how far it is at most once in so many seconds, four times a second in a rollout."""
ROLLOUT_TELLS_SECONDS = 0.25

PREVIEWS = 3
CREATED = {
    "POST packagevariants": 1,
    "POST packagerevisions": 1,
    "PUT packagerevisions": 1,
    "PUT packagevariants/status": 1,
}
"""The fewest writes with which a variant gets a draft that needs no change: the draft is born with its gate closed, which a
second request opens (``variants.md`` 2.11)."""
UPGRADED = {
    "PUT packagevariants": 1,
    "POST packagerevisions": 1,
    "PUT packagerevisions": 2,
    "PUT packagerevisions/approval": 1,
    "PUT packagevariants/status": 4,
}
"""And with which it gets an upgraded draft that is proposed and published, where each state is told once: that its upstream is newer
(6.4), that there is a draft, without which no policy approves it (6.3), and its lifecycles (1.3). States that follow each
other quickly are told by one write, so that there may be fewer."""


@dataclass(frozen=True)
class Load:
    """How many repositories, how many of them in a wave, and how many packages in each for the set that is only looked at."""

    repositories: int
    wave: int
    packages: int


FULL = Load(1000, 100, 10)
SHORT = Load(10, 5, 3)


def rows(start: Callable[[str], PorchProcess], git: RemoteServer, folder: Path, load: Load) -> list[Row]:
    """Measure every stage on one server."""
    server = start("variant-sets")
    controllers = ControllersProcess(server, folder / "set-controllers.log")
    approvals = ControllersProcess(server, folder / "set-approvals.log", "approval")
    stages = Stages(ControllersRun(server, controllers), approvals, git, load)
    try:
        return list(stages.measured())
    finally:
        stages.close()
        for process in (approvals, controllers, server):
            _stop(process)


def _stop(process: ControllersProcess | PorchProcess) -> None:
    """End a process; one that takes too long is told of, and does not cost the figures of a long run."""
    try:
        process.stop()
    except (ServerDied, subprocess.TimeoutExpired) as error:
        print(f"  {error}", flush=True)


class Stages:
    """One run: a blueprint, repositories that a set selects, and the variants that it makes."""

    def __init__(self, run: ControllersRun, approvals: ControllersProcess, git: RemoteServer, load: Load) -> None:
        self._run, self._approvals, self._git, self._load = run, approvals, git, load
        self._sites = [f"edge-{number:04d}" for number in range(load.repositories)]
        self._what = f"a set over {load.repositories} repositories"

    def close(self) -> None:
        """Close the connections."""
        self._run.close()

    def measured(self) -> Iterator[Row]:
        """Run the stages in order; yield what each shows."""
        self._prepare()
        yield from self._cold()
        self._publish_all()
        yield from self._in_waves()
        yield from self._previewed()
        yield from self._at_rest()
        controllers = self._run.controllers.most_megabytes()
        yield Row(f"{self._what}: controllers, most memory", "–", "", f"{controllers:.0f} MB")
        yield Row(f"{self._what}: server, memory", "–", "", f"{resident_megabytes(self._run.server.pid):.0f} MB")

    # --- before -----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the remotes, register them and wait until they are synced; create the set while nobody looks after it."""
        began = time.monotonic()
        porch = self._run.porch
        ok(porch.request("POST", f"/api/v1/namespaces/{porch.namespace}/secrets", credentials()))
        make_remote(self._git, UPSTREAM)
        first = remotes.empty_remote(self._git.path(self._sites[0]))
        for name in self._sites[1:]:
            shutil.copytree(first, self._git.path(name))
        self._run.create("repositories", repository(UPSTREAM, self._git.url(UPSTREAM)))
        self._run.all(enumerate(self._sites), self._register)
        self._until_synced()
        print(f"  {len(self._sites)} repositories made and synced in {time.monotonic() - began:.1f} s", flush=True)
        self._run.create("packagevariantsets", self._fleet(), SETS)

    def _register(self, client: PorchClient, numbered: tuple[int, str]) -> None:
        number, name = numbered
        body = repository(name, self._git.url(name), deployment=True)
        body["metadata"]["labels"] = {"fleet": "yes", "wave": str(number // self._load.wave)}
        ok(client.request("POST", self._run.path("repositories"), body))

    def _until_synced(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while (synced := sum(map(_is_ready, self._items("repositories")))) <= len(self._sites):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{synced} repositories of {len(self._sites) + 1} are synced")
            time.sleep(0.5)

    def _fleet(self) -> Json:
        """Return the set: all at once at first; what its variants publish is approved as soon as somebody follows policies."""
        template = {"approval": {"propose": "WhenReady", "publish": "Always"}}
        return self._set(FLEET, [PACKAGE], template, rollout={"strategy": "AllAtOnce"})

    def _set(self, name: str, packages: list[str], template: Json, **spec: Any) -> Json:
        selector = {"matchLabels": {"fleet": "yes"}}
        target = {"repositorySelector": selector, "packageNames": packages, "template": template}
        upstream = {"repo": UPSTREAM, "package": PACKAGE, "revision": "latest"}
        return {
            "apiVersion": "config.porch.kpt.dev/v1alpha2",
            "kind": "PackageVariantSet",
            "metadata": {"name": name},
            "spec": {"upstream": upstream, "targets": [target], **spec},
        }

    # --- stages -----------------------------------------------------------------------------------

    def _cold(self) -> Iterator[Row]:
        """From the start of the controllers' process to drafts in all repositories and variants that are all Ready."""
        number, run = len(self._sites), self._run
        writes, spent, began = run.writes(), run.spent(), time.monotonic()
        run.controllers.start()
        ready = run.until(lambda found: found.get(READY) == number) - began
        run.say("from nothing to Ready", spent, ready, number)
        branches = self._until_branches() - began
        run.until_quiet()
        assert len(self._revisions("Draft", "packagevariant-1")) == number
        told = self._told()
        assert told["targets"]["ready"] == told["targets"]["total"] == number, told
        yield at_most(f"{self._what}: from a cold start to all drafts, variants Ready", "–", 60, ready, "s")
        yield Row(f"{self._what}: to all branches of drafts in the remotes", "–", "", f"{branches:.4g} s")
        yield from self._write_rows(self._what, run.writes() - writes, CREATED, branches / TELLS_SECONDS)

    def _publish_all(self) -> None:
        """Have every draft published, by policy, and wait until the controllers have seen it."""
        number, spent, began = len(self._sites), self._run.spent(), time.monotonic()
        self._approvals.start()
        self._until_revisions("Published", "packagevariant-1")
        self._run.until_quiet()
        self._run.say("drafts published by policy", spent, time.monotonic() - began, number)

    def _in_waves(self) -> Iterator[Row]:
        """From the approval of a new revision of the blueprint until all variants have published it, wave after wave."""
        number, run = len(self._sites), self._run
        waves = [
            {"name": f"wave-{place}", "match": f"repository.labels['wave'] == '{place}'", "gate": {"soak": "0s"}}
            for place in range(-(-number // self._load.wave))
        ]
        rollout = {
            "strategy": "Waves", "settleOn": "Published", "maxInFlight": self._load.wave, "waves": waves
        }  # fmt: skip
        self._change(FLEET, {"spec": {"rollout": rollout}})
        run.until_quiet()
        name = propose_next(run.porch, UPSTREAM)
        writes, spent, began = run.writes(), run.spent(), time.monotonic()
        ok(run.porch.approve(name))
        took = self._until_complete(2) - began
        run.say("upgrades in waves", spent, took, number)
        run.until_quiet()
        made = run.writes() - writes
        assert len(self._revisions("Published", "packagevariant-2")) == number
        what = f"{self._what}: v1 → v2 in waves of {self._load.wave}, 16 approvals at a time"
        yield at_most(what, "–", 240, took, "s")
        yield from self._write_rows(
            what, made, UPGRADED, took / ROLLOUT_TELLS_SECONDS, beside={"PUT packagerevisions/approval": 1}
        )

    def _previewed(self) -> Iterator[Row]:
        """Ask what the set would do with another template, which changes every variant."""
        number, run = len(self._sites), self._run
        body = self._fleet()
        body["spec"]["targets"][0]["template"]["labels"] = {"tier": "gold"}
        request = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageVariantSetPreview", "spec": {"set": body}}
        path, delays = run.porch.path("packagevariantsetpreviews"), []
        writes = run.writes()
        for _ in range(PREVIEWS):
            began = time.monotonic()
            answer = run.porch.request("POST", path, request)
            delays.append(time.monotonic() - began)
            ok(answer)
            told = answer.object["status"]["targets"]
            assert len(told) == number
            assert all(one["action"] == "update" and one["diff"] for one in told), told[0]
        made = (run.writes() - writes).total - PREVIEWS
        what = f"preview of {number} targets that all change"
        yield at_most(f"{what}, longest of {PREVIEWS}", "–", 3, max(delays), "s")
        yield Row(f"{what}: API writes", "–", "minimum 0", str(made), made == 0)

    def _at_rest(self) -> Iterator[Row]:
        """Look at every variant again, in the running process and in a new one, beside a second set with more variants."""
        run = self._run
        self._approvals.stop()
        packages = [f"{PACKAGE}-{number}" for number in range(self._load.packages - 1)]
        number = len(self._sites) * self._load.packages
        began, spent = time.monotonic(), run.spent()
        run.create("packagevariantsets", self._set(MANY, packages, {}), SETS)
        took = run.until(lambda found: found.get(READY) == number, often=2.0) - began
        run.say(f"{number} variants", spent, took, number)
        self._until_told(MANY, number - len(self._sites))
        run.until_quiet()
        what = f"resync of {number} variants with nothing to do"
        yield from self._resync(what, run.controllers.resync, running=True)

        def restart() -> None:
            run.controllers.stop()
            run.controllers.start()

        yield from self._resync(f"restart beside {number} variants", restart, running=False)

    def _resync(self, what: str, provoke: Callable[[], None], *, running: bool) -> Iterator[Row]:
        run, number = self._run, len(self._sites) * self._load.packages
        before = run.controllers.metrics() if running else {}
        cpu = run.controllers.cpu_seconds() if running else 0.0
        writes, began = run.writes(), time.monotonic()
        provoke()
        passes = before.get("porch_variant_passes_total", 0.0) + number
        ends = run.until(lambda found: found.get("porch_variant_passes_total", 0.0) >= passes and is_idle(found))
        cpu = run.controllers.cpu_seconds() - cpu
        run.until_quiet()
        made = run.writes() - writes
        yield at_most(what, "–", 60, ends - began, "s")
        print(f"  {what}: writes: {made}", flush=True)
        yield Row(f"{what}: API writes", "–", "minimum 0", str(made.total), made.total == 0)
        yield Row(f"{what}: CPU of the controllers", "–", "", f"{cpu:.2g} s")

    # --- writes -----------------------------------------------------------------------------------

    def _write_rows(
        self, what: str, made: Writes, fewest: dict[str, int], most_told: float, *, beside: dict[str, int] | None = None
    ) -> Iterator[Row]:
        """Compare what was written with the fewest writes a variant, ``beside`` what somebody else wrote."""
        status = "PUT packagevariantsets/status"
        print(f"  writes: {made}", flush=True)
        ours = made.total - made.of(status)
        minimum = sum(fewest.values()) * len(self._sites) + sum((beside or {}).values())
        yield Row(f"{what}: API writes", "–", f"fewest, each state told: {minimum}", str(ours), ours <= minimum)
        tells = made.of(status)
        yield Row(
            f"{what}: writes of the set's status", "–", f"≤ {most_told + 2:.0f}", str(tells), tells <= most_told + 2
        )

    # --- looking ----------------------------------------------------------------------------------

    def _items(self, plural: str) -> list[Json]:
        items: list[Json] = self._run.porch.request("GET", self._run.path(plural)).object["items"]
        return items

    def _told(self, name: str = FLEET) -> Json:
        """Return the status of a set."""
        answer = self._run.porch.request("GET", self._run.path("packagevariantsets", name, version=SETS))
        status: Json = answer.object.get("status") or {}
        return status

    def _until_told(self, name: str, ready: int) -> None:
        """Wait until the status of a set tells of so many ready variants, which it does with a delay."""
        deadline = time.monotonic() + PATIENCE
        while (told := self._told(name).get("targets") or {}).get("ready") != ready:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not tell of {ready} ready variants: {told}")
            time.sleep(0.5)

    def _change(self, name: str, patch: Json) -> None:
        path = self._run.path("packagevariantsets", name, version=SETS)
        ok(self._run.porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))

    def _revisions(self, lifecycle: str, workspace: str) -> list[Json]:
        return self._run.porch.revisions(f"spec.lifecycle={lifecycle},spec.workspaceName={workspace}")

    def _until_revisions(self, lifecycle: str, workspace: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (count := len(self._revisions(lifecycle, workspace))) < len(self._sites):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{count} revisions {workspace} of {len(self._sites)} are {lifecycle}")
            time.sleep(1)

    def _until_complete(self, revision: int) -> float:
        """Wait until the rollout of a revision of the blueprint has nothing left to do; return the time."""
        deadline, wave = time.monotonic() + PATIENCE, ""
        while True:
            status = self._told()
            rollout = status.get("rollout") or {}
            if (status.get("upstream") or {}).get("revision") == revision and rollout.get("phase") == "Complete":
                return time.monotonic()
            if rollout.get("wave", "") != wave:
                wave = rollout.get("wave", "")
                print(f"  {wave} begins", flush=True)
            if time.monotonic() > deadline:
                raise RuntimeError(f"the rollout does not end: {rollout}")
            time.sleep(0.2)

    def _until_branches(self) -> float:
        """Wait until every remote has its draft's branch; return the time."""
        deadline, missing = time.monotonic() + PATIENCE, list(self._sites)
        while missing := [name for name in missing if not self._has_branch(name)]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(missing)} remotes have no branch of a draft")
            time.sleep(0.5)
        return time.monotonic()

    def _has_branch(self, name: str) -> bool:
        return bool(remotes.git("for-each-ref", "--count=1", "refs/heads/drafts", cwd=self._git.path(name)))


def _is_ready(body: Json) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

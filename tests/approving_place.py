"""A place with the two controllers as processes: variants are kept by one, approval policies followed by the other."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controllers_process import ControllersProcess
from drafts import accepted
from eventually import eventually
from variant_place import Place

from apiserver.auth.issuing import user_kubeconfig

Json = dict[str, Any]
LEASE = "porch-approval"
VARIANTS, APPROVAL = "system:porch-controllers", "system:porch-approval"
"""The users that the controllers are."""


@dataclass
class Approvals:
    """The two processes of a place."""

    place: Place
    folder: Path
    approver: ControllersProcess
    variants: ControllersProcess
    others: list[ControllersProcess] = field(default_factory=list)

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return reason and message of the approver's Events about a package revision, oldest first."""
        path = self.place.path("/api/v1", "events")
        found = [
            one
            for one in accepted(self.place.porch.request("GET", path))["items"]
            if one["involvedObject"]["name"] == name and one["reportingComponent"] == "approval-controller"
        ]
        found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["reason"], one["message"]) for one in found]

    def lifecycle(self, name: str) -> str:
        """Return the lifecycle of a package revision."""
        lifecycle: str = self.place.revision(name)["spec"]["lifecycle"]
        return lifecycle

    def becomes(self, name: str, lifecycle: str, timeout: float = 60) -> None:
        """Wait until a package revision has a lifecycle."""

        def has() -> None:
            answer = self.place.porch.revision(name)
            assert answer.code == 200, f"{answer.message}\n{self.variants.tail()}"
            assert answer.object["spec"]["lifecycle"] == lifecycle, self.approver.tail() + self.variants.tail()

        eventually(has, timeout=timeout)

    def switch(self, *, off: bool) -> None:
        """Stop all approvals, or let them go on."""
        patch = {"metadata": {"annotations": {"config.porch.kpt.dev/paused": "true" if off else None}}}
        self.place.patch("/apis/coordination.k8s.io/v1", "leases", LEASE, patch)

    def has_said(self, what: str, times: int = 1) -> None:
        """Wait until the approver has logged something so often."""

        def has() -> None:
            assert self.approver.tail(10**6).count(what) >= times, self.approver.tail()

        eventually(has, timeout=60)


@contextmanager
def approvals(place: Place, folder: Path) -> Iterator[Approvals]:
    """Run both controllers until the block ends, the approver under its Lease."""
    kept = process(place, folder, "variants", VARIANTS, {"PORCH_CONTROLLERS_RUN": "variants"})
    with ExitStack() as stack:
        made = Approvals(place, folder, approver(place, folder), kept)
        for one in (made.approver, made.variants):
            stack.callback(one.kill)
            one.start()
        made.has_said("approval policies are followed")
        yield made


def approver(place: Place, folder: Path) -> ControllersProcess:
    """Return a process that follows approval policies, not started."""
    election = {
        "PORCH_CONTROLLERS_RUN": "approval",
        "PORCH_CONTROLLERS_LEADER_ELECTION": "true",
        "PORCH_CONTROLLERS_LEASE_NAMESPACE": place.namespace,
        "PORCH_CONTROLLERS_LEASE_DURATION": "4",
        "PORCH_CONTROLLERS_LEASE_RENEW": "3",
        "PORCH_CONTROLLERS_LEASE_RETRY": "0.5",
    }
    return process(place, folder, "approver", APPROVAL, election)


def process(place: Place, folder: Path, name: str, user: str, environment: dict[str, str]) -> ControllersProcess:
    """Return a process of controllers with the rights of a user, not started."""
    kubeconfig = folder / f"{name}.kubeconfig"
    kubeconfig.write_bytes(user_kubeconfig(place.server.data, user, []))
    return ControllersProcess(kubeconfig, place.namespace, folder / f"{name}.log", environment)

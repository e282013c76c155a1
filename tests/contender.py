"""Processes of controllers that contend for one Lease, each with a user of its own, and what one expects of their work."""

import json
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path

from controllers_process import ControllersProcess
from eventually import eventually
from logged_lines import logged_lines
from variant_place import GATE, SET_LABELS, Place, condition_of, downstream, variant

from apiserver.auth.issuing import user_kubeconfig

WORKING = "package variants are kept"
"""What a process logs when it leads and has read everything."""
LABELS = {"mutators": [SET_LABELS]}
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
QUICK = {
    "PORCH_CONTROLLERS_LEASE_DURATION": "4",
    "PORCH_CONTROLLERS_LEASE_RENEW": "3",
    "PORCH_CONTROLLERS_LEASE_RETRY": "0.5",
}
"""For tests in which the time itself is not the point."""


class Contender(ControllersProcess):
    """A process of controllers that waits for the Lease of its namespace."""

    def __init__(self, place: Place, name: str, folder: Path, timings: Mapping[str, str] | None = None) -> None:
        kubeconfig = folder / f"{name}.kubeconfig"
        self.user = f"{place.namespace}-{name}"
        kubeconfig.write_bytes(user_kubeconfig(place.server.data, self.user, ["system:masters"]))
        election = {"PORCH_CONTROLLERS_LEADER_ELECTION": "true", "PORCH_CONTROLLERS_LEASE_NAMESPACE": place.namespace}
        super().__init__(kubeconfig, place.namespace, folder / f"{name}.log", {**election, **(timings or {})})

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def said(self, what: str) -> int:
        """Count the lines of its log with this message."""
        lines = logged_lines(self.log)
        return sum(json.loads(line).get("event") == what for line in lines if line.startswith("{"))


def has_said(process: Contender, what: str, times: int = 1) -> None:
    """See that a process has logged a message so often."""
    assert process.said(what) >= times, process.tail()


def add_variants(place: Place, names: Iterable[str]) -> None:
    """Create variants, each with a downstream package of its name."""
    for name in names:
        place.add_variant(variant(name, downstream=downstream(name), pipeline=LABELS))


def is_done(place: Place, name: str) -> None:
    """See that a variant is Ready, with one draft that is complete."""
    assert place.condition("Ready", name) == READY
    assert place.revisions_of(name) == {"packagevariant-1": "Draft"}
    draft = place.revision(f"deployments.{name}.packagevariant-1")
    assert condition_of(draft, GATE)["status"] == "True"
    assert condition_of(draft, "PackagePipelinePassed")["status"] == "True"


def all_are_done(place: Place, names: Iterable[str], seconds: float = 90.0) -> None:
    """Wait until that is so of all of them, and see that nothing else was made."""
    many = list(names)
    for name in many:
        eventually(lambda name=name: is_done(place, name), timeout=seconds)  # type: ignore[misc]
    assert len(place.porch.revisions("spec.repository=deployments")) == len(many)


def context_is(place: Place, name: str, entry: str) -> None:
    """See that a draft's package context has a line of this text."""
    assert entry in place.files(f"deployments.{name}.packagevariant-1")["package-context.yaml"]

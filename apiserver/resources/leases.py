"""Definition of ``coordination.k8s.io/v1`` Lease: the lock by which controllers elect a leader.

Leases change every few seconds; nothing about them is kept longer than for other kinds, and the log compacts them with the
rest. Source: ``kube-api.md`` 2.8 and 2.16.
"""

from collections.abc import Iterator

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import BUILT_IN_AGE, path_text
from apiserver.resources.wire_times import settle_micros
from krm.api.coordination import Lease
from krm.meta.errors import Cause, invalid_value


def lease_definition() -> Definition:
    """Define Lease: a PUT may create it, and one that changes it must name the revision it saw."""
    return Definition(
        group="coordination.k8s.io",
        version="v1",
        kind="Lease",
        plural="leases",
        singular="lease",
        schema=structural_schema(Lease),
        columns=(Column("Holder", "string", path_text("spec", "holderIdentity"), "Who holds it."), BUILT_IN_AGE),
        strategic=True,
        create_on_update=True,
        generation=False,
        initial={"spec": {}},
        prepare=_prepare,
        validate=lambda new, _old: list(_problems(new.get("spec") or {})),
    )


def _prepare(new: Json, _old: Json | None) -> None:
    """Write times in one form; drop what belongs to coordinated leader election, which is off as it is by default."""
    spec = new["spec"] = new.get("spec") or {}
    settle_micros("Lease", spec, "acquireTime", "renewTime")
    for name in ("acquireTime", "renewTime"):
        if spec[name] is None:
            del spec[name]
    for name in ("strategy", "preferredHolder"):
        spec.pop(name, None)


def _problems(spec: Json) -> Iterator[Cause]:
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")

"""A set with a rollout and its variants, told in a few words, for tests of what may change when."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from krm.variants.sets.changes import change_id
from krm.variants.sets.plan import Existing, Plan
from krm.variants.sets.progress import VariantState
from krm.variants.sets.rollout import Admission, admit

Json = dict[str, Any]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)

SETTLED = VariantState(generation=2, observed_generation=2, ready="True", reason="NoErrors")
PUBLISHED = VariantState(generation=2, observed_generation=2, ready="True", reason="NoErrors", published=True)
WORKING = VariantState(generation=2, observed_generation=1, ready="True", reason="NoErrors")
BROKEN = VariantState(generation=2, observed_generation=2, ready="False", reason="RenderFailed")
STALLED = VariantState(generation=2, observed_generation=2, ready="False", reason="Error", stalled=True)
PROPOSED = VariantState(generation=2, observed_generation=2, ready="False", reason="DownstreamProposed")
OFF = VariantState(generation=2, observed_generation=2, ready="True", reason="NoErrors", paused=True)


def set_of(rollout: Json | None, revision: Any = 2, *, approve: str = "") -> Json:
    """Return a set with this ``spec.rollout``, whose source has this revision."""
    spec: Json = {
        "upstream": {"repo": "blueprints", "package": "foo", "revision": revision},
        "targets": [{"repositorySelector": {}}],
    }
    annotations = {"config.porch.kpt.dev/approve-wave": approve} if approve else {}
    body: Json = {"metadata": {"name": "fleet", "namespace": "ns", "annotations": annotations}, "spec": spec}
    if rollout is not None:
        spec["rollout"] = rollout
    return body


def waves(*written: Json, **rollout: Any) -> Json:
    """Return a rollout in waves, one variant at a time unless said otherwise."""
    return {"strategy": "Waves", "waves": list(written), **rollout}


@dataclass
class Scene:
    """What a pass finds. Variants are named like their packages."""

    rollout: Json | None
    outdated: Mapping[str, VariantState] = field(default_factory=dict)
    """Existing ones that do not say yet what they shall."""
    missing: tuple[str, ...] = ()
    current: Mapping[str, VariantState] = field(default_factory=dict)
    """Those that say what they shall."""
    superfluous: tuple[str, ...] = ()
    waves: Mapping[str, int] = field(default_factory=dict)
    status: Json = field(default_factory=dict)
    revision: Any = 2
    approve: str = ""
    now: dt.datetime = NOON

    @property
    def body(self) -> Json:
        """The set."""
        return set_of(self.rollout, self.revision, approve=self.approve)

    @property
    def change(self) -> str:
        """The change's id."""
        return change_id(self.body)

    def began(self, **rollout: Any) -> "Scene":
        """Have this change under way, with this ``status.rollout``."""
        self.status = {"rollout": {"changeId": self.change, "phase": "Progressing", **rollout}}
        return self

    def approved(self, wave: str) -> "Scene":
        """Have somebody open a gate."""
        self.approve = f"{wave}@{self.change}"
        return self

    def admit(self) -> Admission:
        """Ask what may be written."""
        states = {**self.outdated, **self.current}
        plan = Plan(
            deletes=tuple(map(existing, self.superfluous)),
            updates=tuple((existing(name), spec_of(name)) for name in sorted(self.outdated)),
            creates=tuple((name, spec_of(name)) for name in sorted(self.missing)),
            unchanged=tuple(map(existing, self.current)),
            waves={pair_of(name): wave for name, wave in self.waves.items()},
        )
        return admit(self.body, plan, states, self.status, self.now)


def pair_of(name: str) -> tuple[str, str]:
    """Return repository and package of a variant."""
    return "deployments", name


def existing(name: str) -> Existing:
    """Return a variant that is there."""
    return Existing(name=name, uid=f"uid-{name}", resource_version="1", pair=pair_of(name), digest="d")


def spec_of(name: str) -> Json:
    """Return what a variant shall say."""
    return {"downstream": {"repo": "deployments", "package": name}}


def written(admission: Admission) -> str:
    """Return the names of what is written: updated, +created, -deleted."""
    updates = [one.name for one, _ in admission.updates]
    creates = [f"+{name}" for name, _ in admission.creates]
    return " ".join([*updates, *creates, *(f"-{one.name}" for one in admission.deletes)])

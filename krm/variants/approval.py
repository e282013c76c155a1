"""Which step of a package revision's life its approval policy takes next, and why it takes none.

Pure: the caller reads what there is and takes the step. Nothing is approved that is not ready, whatever the policy.
Source: ``variants.md`` 6.3, 2.12 and C-14; https://docs.nephio.org for the annotations.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from krm.meta.conditions import find_condition
from krm.variants.durations import InvalidDuration, read_duration
from krm.variants.locks import same_address, up_to_date
from krm.variants.revisions import DELETION_PROPOSED, DRAFT, PROPOSED, Revision
from krm.variants.upstream import UpstreamError, resolve
from krm.variants.variant import Variant
from krm.variants.vocabulary import MARKER_LABEL, OPERATIONS_GATE

Json = dict[str, Any]

POLICY_ANNOTATION: Final = "approval.nephio.org/policy"
"""On package revisions: initial, or (our extension) always."""
DELAY_ANNOTATION: Final = "approval.nephio.org/delay"
"""On package revisions: a duration, counted from their creation."""

NEVER: Final = "Never"
WHEN_READY: Final = "WhenReady"
INITIAL: Final = "Initial"
ALWAYS: Final = "Always"
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "propose": (NEVER, WHEN_READY),
    "publish": (NEVER, INITIAL, ALWAYS),
    "approveDeletion": (NEVER, ALWAYS),
}
_ANNOTATED: Final[Mapping[str, str]] = {"initial": INITIAL, "always": ALWAYS}
RECHECK_SECONDS: Final = 5.0
"""After so long it is looked again whether a variant follows an upstream that has just moved, which may tell nobody."""
_SHOWN: Final = 64


class InvalidPolicy(ValueError):
    """A policy that cannot be understood approves nothing; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done without a person."""

    proposes: bool = False
    publishes: str = NEVER
    """Never, Initial (while the package has no published revision) or Always."""
    delay: dt.timedelta = dt.timedelta()
    """From the creation of a package revision to the first step."""
    approves_deletion: bool = False
    proposes_to_publish: bool = False
    """Whether only that is proposed which is published then."""


class Step(Enum):
    """What can be done to a package revision; the value is the reason of the Event."""

    PROPOSE = "Proposed"
    PUBLISH = "Published"
    DELETE = "DeletionApproved"


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step, or none."""

    step: Step | None
    why: str
    """Why none is taken, for people; or what asked for the step."""
    recheck: float | None = None
    """Seconds after which time alone may decide otherwise."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A package revision with its readiness gates."""

    revision: Revision
    gates: frozenset[str]
    """Condition types of its readiness gates."""
    unmet: tuple[str, ...]
    """Those that are not True, in the order of their names."""

    @classmethod
    def of(cls, body: Json) -> "Candidate":
        """Read a PackageRevision as it is on the wire."""
        conditions = (body.get("status") or {}).get("conditions") or ()
        wanted = frozenset(
            str(one.get("conditionType")) for one in (body.get("spec") or {}).get("readinessGates") or ()
        )
        refused = {str(one.get("type")) for one in conditions if one.get("status") != "True"}
        met = {str(one.get("type")) for one in conditions} - refused
        return cls(Revision.of(body), wanted, tuple(sorted(wanted - met)))

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.revision.namespace

    @property
    def name(self) -> str:
        """The name."""
        return self.revision.name

    @property
    def resource_version(self) -> str:
        """The version of the object."""
        return self.revision.resource_version


@dataclass(frozen=True, slots=True)
class ApprovingVariant:
    """What of a PackageVariant decides about the approval of its package revisions; never its status alone."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    observed_generation: int
    ready: bool
    deleting: bool
    variant: Variant
    """Its spec; without the parts that say what its package contains."""
    approval: Json | None
    """``spec.approval`` as written; None where there is none."""
    seen: Mapping[str, Any]
    """``status.upstream``: what its upstream stood for when it was last worked on."""

    @classmethod
    def of(cls, body: Json) -> "ApprovingVariant":
        """Read a PackageVariant as it is on the wire."""
        meta, status = body["metadata"], body.get("status") or {}
        spec = body.get("spec") or {}
        ready = find_condition(status.get("conditions"), "Ready") or {}
        kept = {key: spec.get(key) for key in ("upstream", "downstream", "suspend")}
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            resource_version=meta.get("resourceVersion", ""),
            generation=meta.get("generation") or 0,
            observed_generation=status.get("observedGeneration") or 0,
            ready=ready.get("status") == "True",
            deleting=bool(meta.get("deletionTimestamp")),
            variant=Variant.of({"metadata": meta, "spec": kept}),
            approval=spec.get("approval"),
            seen=status.get("upstream") or {},
        )

    @property
    def target(self) -> tuple[str, str]:
        """Repository and package of its target."""
        return self.variant.downstream_repo, self.variant.downstream_package


# --- policies ---------------------------------------------------------------------------------------


def problems(approval: Any, path: str) -> list[str]:
    """Return what is wrong with an ``approval`` object at ``path``, for validations; any JSON."""
    if approval is None:
        return []
    if not isinstance(approval, dict):
        return [f"{path} must be an object"]
    found = []
    for key, allowed in _CHOICES.items():
        written = approval.get(key)
        if written not in (None, "") and not (isinstance(written, str) and written in allowed):
            named = ", ".join(f'"{one}"' for one in allowed[:-1])
            found.append(f'{path}.{key} can only be {named} or "{allowed[-1]}"')
    try:
        read_duration(approval.get("delay") or "0s")
    except InvalidDuration as error:
        found.append(f"{path}.delay {error}")
    return found


def policy_of(candidate: Candidate, owner: ApprovingVariant | None) -> Policy | None:
    """Return the policy for a package revision: that of the variant it belongs to, else that of its annotations, if any.

    Raises:
        InvalidPolicy: there is one, and it cannot be understood.
    """
    if owner is not None and owner.approval is not None:
        return _policy(owner.approval)
    return _annotated(candidate.revision.annotations)


def _policy(approval: Json) -> Policy:
    if found := problems(approval, "spec.approval"):
        raise InvalidPolicy("; ".join(found))
    return Policy(
        proposes=approval.get("propose") == WHEN_READY,
        publishes=approval.get("publish") or NEVER,
        delay=read_duration(approval.get("delay") or "0s"),
        approves_deletion=approval.get("approveDeletion") == ALWAYS,
    )


def _annotated(annotations: Mapping[str, str]) -> Policy | None:
    written = annotations.get(POLICY_ANNOTATION)
    if not written:
        return None
    if written not in _ANNOTATED:
        raise InvalidPolicy(f'annotation {POLICY_ANNOTATION}: "{written[:_SHOWN]}" is neither initial nor always')
    try:
        delay = read_duration(annotations.get(DELAY_ANNOTATION) or "0s")
    except InvalidDuration as error:
        raise InvalidPolicy(f"annotation {DELAY_ANNOTATION}: {error}") from error
    return Policy(proposes=True, publishes=_ANNOTATED[written], delay=delay, proposes_to_publish=True)


# --- the next step -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else decides."""

    of_package: Sequence[Revision]
    """All revisions of the package, also the one that is decided about."""
    of_upstream: Sequence[Revision]
    """All revisions of the package that the variant follows; empty without one."""
    upstream_branch: str
    """The branch that the upstream's Repository publishes to."""
    now: dt.datetime


def decide(
    candidate: Candidate, policy: Policy, owner: ApprovingVariant | None, surroundings: Surroundings
) -> Decision:
    """Return the next step for a package revision with this policy; ``owner`` is the variant that it belongs to, if any."""
    revision = candidate.revision
    if revision.deleting:
        return Decision(None, "it is being deleted")
    if revision.lifecycle == DELETION_PROPOSED:
        return _deletion(candidate, policy, owner)
    step = _wanted(revision, policy, surroundings.of_package)
    if step is None:
        return Decision(None, "its policy asks for nothing")
    if obstacle := _obstacle(candidate, owner, surroundings):
        return obstacle
    wait = (_created(revision) + policy.delay - surroundings.now).total_seconds() if policy.delay else 0.0
    if wait > 0:
        return Decision(None, f"it waits for {policy.delay} from its creation", wait)
    return Decision(step, _asked_by(owner, revision))


def _wanted(revision: Revision, policy: Policy, of_package: Iterable[Revision]) -> Step | None:
    """Return what the policy asks for, ready or not."""
    publishes = policy.publishes == ALWAYS or (policy.publishes == INITIAL and not _has_published(of_package))
    if revision.lifecycle == PROPOSED:
        return Step.PUBLISH if publishes else None
    if revision.lifecycle in ("", DRAFT) and policy.proposes and (publishes or not policy.proposes_to_publish):
        return Step.PROPOSE
    return None


def _has_published(of_package: Iterable[Revision]) -> bool:
    """Tell whether anything of a package is published, also if it is no numbered revision."""
    return any(one.is_published for one in of_package)


def _obstacle(candidate: Candidate, owner: ApprovingVariant | None, around: Surroundings) -> Decision | None:
    """Return why nothing may be done, None if all is ready."""
    if candidate.unmet:
        return Decision(None, f"readiness gates that are not met: {', '.join(candidate.unmet)}")
    if owner is None:
        return None
    why = _variant_obstacle(candidate, owner)
    if why:
        return Decision(None, why)
    return _upstream_obstacle(candidate.revision, owner, around)


def _variant_obstacle(candidate: Candidate, owner: ApprovingVariant) -> str:
    revision, name = candidate.revision, f'package variant "{owner.name}"'
    if owner.deleting:
        return f"{name} is being deleted"
    if owner.variant.paused:
        return f"{name} is paused"
    if owner.observed_generation != owner.generation:
        return f"{name} has not been worked on since it was edited"
    if not owner.ready:
        return f"{name} is not ready"
    if (revision.repository, revision.package) != owner.target:
        return f"{name} has another target"
    return "" if OPERATIONS_GATE in candidate.gates else f"it lacks the readiness gate {OPERATIONS_GATE}"


def _upstream_obstacle(revision: Revision, owner: ApprovingVariant, around: Surroundings) -> Decision | None:
    """The variant must have seen what its upstream stands for now, and the revision must be made of that."""
    try:
        found = resolve(owner.variant.upstream, around.of_upstream, around.upstream_branch, previous=owner.seen)
    except UpstreamError as error:
        return Decision(None, str(error), RECHECK_SECONDS)
    except ValueError:
        return Decision(None, f'package variant "{owner.name}" is invalid')
    if found.seen().get("name") != owner.seen.get("name"):
        return Decision(None, f'package variant "{owner.name}" has not seen its upstream yet', RECHECK_SECONDS)
    upstream = next((one for one in around.of_upstream if one.name == owner.seen.get("name")), None)
    lock = revision.upstream_lock
    if upstream is None or lock is None:
        return Decision(None, "it cannot be told what it is made of")
    made_of_it = up_to_date(revision, upstream, upstream_branch=around.upstream_branch).yes
    if not (
        made_of_it and same_address(revision, upstream)
    ):  # nobody looks: what a lock claims must be true to the letter
        return Decision(None, f'it is not made of "{upstream.name}"', RECHECK_SECONDS)
    return None


def _deletion(candidate: Candidate, policy: Policy, owner: ApprovingVariant | None) -> Decision:
    """A deletion that the variant itself has proposed may be carried out: of a target that it has no longer.

    Of its target as it is, somebody else proposes the deletion (C-14): that is for people to decide.
    """
    revision = candidate.revision
    if not policy.approves_deletion or owner is None:
        return Decision(None, "its policy asks for nothing")
    if owner.variant.paused and not owner.deleting:
        return Decision(None, f'package variant "{owner.name}" is paused')
    if not owner.deleting and (revision.repository, revision.package) == owner.target:
        return Decision(None, "somebody else than its variant proposes its deletion")
    return Decision(Step.DELETE, _asked_by(owner, revision))


def _asked_by(owner: ApprovingVariant | None, revision: Revision) -> str:
    if owner is not None and owner.approval is not None:
        return f'policy of package variant "{owner.name}"'
    return f"annotation {POLICY_ANNOTATION}: {revision.annotations.get(POLICY_ANNOTATION, '')}"


def _created(revision: Revision) -> dt.datetime:
    return dt.datetime.fromisoformat(revision.created)


def belongs_to(revision: Revision, uid: str) -> bool:
    """Tell whether a variant with this UID made or adopted a revision, also if it has let go of it since."""
    return revision.owned_by(uid) or revision.labels.get(MARKER_LABEL) == uid

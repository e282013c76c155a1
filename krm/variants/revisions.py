"""What the rules of variants need to know of a PackageRevision: a small value, made once from each event."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from krm.meta.conditions import find_condition
from krm.variants.vocabulary import INJECTION_CONDITION, OPERATIONS_GATE

Json = dict[str, Any]

PLACEHOLDER_REVISION = -1
DRAFT = "Draft"
PROPOSED = "Proposed"
PUBLISHED = "Published"
DELETION_PROPOSED = "DeletionProposed"


@dataclass(frozen=True, slots=True)
class Lock:
    """A place in Git that a package's contents came from, or are at."""

    repo: str
    directory: str
    ref: str
    commit: str

    @classmethod
    def of(cls, lock: Json | None) -> "Lock | None":
        """Read ``status.upstreamLock`` or ``status.selfLock``; None where there is no Git lock."""
        git = (lock or {}).get("git")
        if not git:
            return None
        return cls(*(str(git.get(part) or "") for part in ("repo", "directory", "ref", "commit")))

    @property
    def place(self) -> tuple[str, str, str]:
        """The repository, directory and commit in the form in which two locks compare (``variants.md`` 0.2)."""
        return self.repo.removesuffix(".git"), self.directory.strip("/"), self.commit


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


@dataclass(frozen=True, slots=True)
class Revision:
    """A package revision as far as variants are concerned."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created: str
    """RFC 3339, UTC."""
    repository: str
    package: str
    workspace: str
    revision: int
    """0 until published, -1 for a branch or a tag that is no number."""
    lifecycle: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owners: tuple[Owner, ...]
    deleting: bool
    task: str
    """Type of the first task: init, clone, edit or upgrade; empty where there is none."""
    upstream_lock: Lock | None
    self_lock: Lock | None
    operations_gate: bool
    """Whether PVOperationsComplete is among its readiness gates."""
    operations_complete: bool
    """Whether that condition is True."""
    injections: tuple[str, ...] = ()
    """Condition types of its injection points, as the last mutation found them, in order."""
    unfulfilled: tuple[str, ...] = ()
    """Those of them that are readiness gates and not True."""

    @classmethod
    def of(cls, body: Json) -> "Revision":
        """Read a PackageRevision as it is on the wire."""
        meta, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
        tasks = spec.get("tasks") or ()
        gates = spec.get("readinessGates") or ()
        gated = {gate.get("conditionType") for gate in gates}
        conditions = status.get("conditions")
        condition = find_condition(conditions, OPERATIONS_GATE)
        injections = [one for one in conditions or () if str(one.get("type")).startswith(f"{INJECTION_CONDITION}.")]
        return cls(
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            resource_version=meta.get("resourceVersion", ""),
            created=meta.get("creationTimestamp") or "",
            repository=spec.get("repository", ""),
            package=spec.get("packageName", ""),
            workspace=spec.get("workspaceName", ""),
            revision=spec.get("revision") or 0,
            lifecycle=spec.get("lifecycle") or DRAFT,
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            owners=tuple(map(_owner, meta.get("ownerReferences") or ())),
            deleting=bool(meta.get("deletionTimestamp")),
            task=tasks[0].get("type", "") if tasks else "",
            upstream_lock=Lock.of(status.get("upstreamLock")),
            self_lock=Lock.of(status.get("selfLock")),
            operations_gate=OPERATIONS_GATE in gated,
            operations_complete=condition is not None and condition.get("status") == "True",
            injections=tuple(one["type"] for one in injections),
            unfulfilled=tuple(
                one["type"] for one in injections if one["type"] in gated and one.get("status") != "True"
            ),
        )

    @property
    def is_published(self) -> bool:
        """Whether it is Published or DeletionProposed."""
        return self.lifecycle in (PUBLISHED, DELETION_PROPOSED)

    def is_placeholder(self, branch: str) -> bool:
        """Whether it mirrors the head of its repository's ``branch`` and is no fixed revision."""
        return self.revision == PLACEHOLDER_REVISION and self.workspace == branch

    def owned_by(self, uid: str) -> bool:
        """Whether an owner reference has this UID; nothing else of the reference is compared."""
        return any(owner.uid == uid for owner in self.owners)


def _owner(reference: Json) -> Owner:
    return Owner(
        api_version=reference.get("apiVersion", ""),
        kind=reference.get("kind", ""),
        name=reference.get("name", ""),
        uid=reference.get("uid", ""),
        controller=bool(reference.get("controller")),
    )

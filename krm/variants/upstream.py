"""Which package revision a variant's upstream stands for now.

Pure: the caller brings the package's revisions. Source: ``variants.md`` 2.3 and 2.4; C-01, C-02, C-10, C-18, C-45.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from krm.api.revision_name import package_object_name
from krm.variants.revision_choice import By, InvalidRevision, RevisionChoice, parse_number, revision_choice
from krm.variants.revisions import DELETION_PROPOSED, PLACEHOLDER_REVISION, PUBLISHED, Lock, Revision
from krm.variants.variant import UpstreamSpec
from krm.variants.vocabulary import TAG_LABEL_PREFIX

Json = dict[str, Any]
Warnings = tuple[tuple[str, str], ...]

LATEST_TAG: Final = "latest"
"""A tag that nobody has to move: the latest revision."""

REVISION_IGNORED: Final = "UpstreamRevisionIgnored"
DELETION_IS_PROPOSED: Final = "UpstreamDeletionProposed"
WENT_BACKWARDS: Final = "UpstreamWentBackwards"


class UpstreamError(Exception):
    """The upstream cannot be used. Its text is the message of ``Stalled``, ``reason`` the reason."""

    reason: str


class UpstreamNotFound(UpstreamError):
    """No package revision is what the variant asks for."""

    reason = "UpstreamNotFound"


class UpstreamNotPublished(UpstreamError):
    """The package revision that the variant asks for is a draft, or proposed (C-45)."""

    reason = "UpstreamNotPublished"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What an upstream stands for."""

    revision: Revision
    warnings: Warnings = ()
    """Reason and message of Warning events."""
    went_backwards: bool = False
    """The latest is lower than it was, and the variant does not allow that: nothing that exists follows."""
    follows_latest: bool = False
    """The variant follows the latest revision, whichever it is, and does not allow downgrades."""
    status: Mapping[str, Any] | None = None
    """What ``status.upstream`` says from now on; None where the revision itself tells."""

    def seen(self, tag: str = "") -> Json:
        """Return ``status.upstream``: what the upstream stands for, or stood for before it went backwards.

        The higher revision stays recorded while it is not followed down, or the next pass would take the lower one for
        what there always was.
        """
        return dict(self.status) if self.status is not None else seen(self.revision, tag)


def resolve(
    spec: UpstreamSpec, candidates: Iterable[Revision], branch: str, *, previous: Mapping[str, Any] | None = None
) -> Resolution:
    """Choose among ``candidates``, of which only those of the upstream's package that are not being deleted count.

    ``branch`` is that of the upstream's Repository (``main`` where it cannot be read), ``previous`` what
    ``status.upstream`` says.

    Raises:
        UpstreamNotFound: nothing is what the variant asks for.
        UpstreamNotPublished: what is, is not published.
    """
    of_package = [
        one for one in candidates if one.repository == spec.repo and one.package == spec.package and not one.deleting
    ]
    if spec.tag and spec.tag != LATEST_TAG:
        return _usable(_tagged(spec, of_package))
    if spec.workspace:
        found = _by_workspace(of_package, spec.workspace)
        return _usable(_required(found, spec), warnings=_ignored_revision(spec, found))
    choice = RevisionChoice(By.LATEST) if spec.tag else revision_choice(spec.revision)
    resolution = _usable(_required(_CHOICES[choice.by](of_package, choice, branch), spec))
    if choice.by in (By.LATEST, By.UNSET) and not spec.allow_downgrade:
        return _kept_up(replace(resolution, follows_latest=True), spec, previous or {})
    return resolution


def falls_below(downstream: Revision, resolution: Resolution) -> bool:
    """Tell whether an upgrade of ``downstream`` would follow the latest revision down.

    The status tells this, too, but it can be lost; the lock of the downstream package cannot.
    """
    lock, own = downstream.upstream_lock, resolution.revision.self_lock
    if not resolution.follows_latest or lock is None or (own is not None and lock.place[:2] != own.place[:2]):
        return False
    return parse_number(lock.ref.rpartition("/")[2]) > resolution.revision.revision


def pinned(revision: Revision, branch: str, secret: str = "") -> Json | None:
    """Return the Git address of what a placeholder shows now; None for a revision that can be named.

    The server refuses to make anything of a revision that moves, and a package should remember what it was made of
    (C-10). ``secret`` is the Secret of the placeholder's Repository, or empty.

    Raises:
        UpstreamNotFound: the placeholder does not say where it is.
    """
    if not revision.is_placeholder(branch):
        return None
    if revision.self_lock is None or not revision.self_lock.commit:
        raise UpstreamNotFound(
            f'could not find upstream package revision "{revision.name}": it names no commit of branch "{branch}"'
        )
    return git_address(revision.self_lock, secret)


def git_address(lock: Lock, secret: str = "") -> Json:
    """Return the Git form of a task's upstream: an exact commit of a package."""
    address: Json = {"repo": lock.repo, "ref": lock.commit or lock.ref, "directory": lock.directory}
    return {**address, "secretRef": {"name": secret}} if secret else address


def seen(revision: Revision, tag: str = "") -> Json:
    """Return ``status.upstream`` of a revision, without empty parts; ``tag`` is the tag that led to it."""
    commit = revision.self_lock.commit if revision.self_lock else ""
    parts = {
        "name": revision.name,
        "revision": revision.revision,
        "workspaceName": revision.workspace,
        "tag": tag,
        "commit": commit,
    }
    return {key: value for key, value in parts.items() if value != ""}


# --- the ways to choose --------------------------------------------------------------------------


def _tagged(spec: UpstreamSpec, candidates: Sequence[Revision]) -> Revision:
    """A label on a published revision first, then a Git tag of that name."""
    labelled = [one for one in candidates if f"{TAG_LABEL_PREFIX}{spec.tag}" in one.labels and one.is_published]
    found = _highest(labelled) or next(
        (one for one in candidates if one.workspace == spec.tag and one.revision == PLACEHOLDER_REVISION), None
    )
    if found is None:
        raise UpstreamNotFound(
            f'could not find upstream package revision for tag "{spec.tag}" of {spec.repo}/{spec.package}'
        )
    return found


def _by_workspace(candidates: Sequence[Revision], workspace: str) -> Revision | None:
    return next((one for one in candidates if one.workspace == workspace), None)


def _workspace(candidates: Sequence[Revision], choice: RevisionChoice, _branch: str) -> Revision | None:
    return _by_workspace(candidates, choice.workspace)


def _number(candidates: Sequence[Revision], choice: RevisionChoice, _branch: str) -> Revision | None:
    return _highest([one for one in candidates if one.is_published and one.revision == choice.number])


def _latest(candidates: Sequence[Revision], _choice: RevisionChoice, _branch: str) -> Revision | None:
    return _highest([one for one in candidates if one.lifecycle == PUBLISHED and one.revision >= 1])


def _placeholder(candidates: Sequence[Revision], _choice: RevisionChoice, branch: str) -> Revision | None:
    return next((one for one in candidates if one.is_placeholder(branch)), None)


def _latest_or_placeholder(candidates: Sequence[Revision], choice: RevisionChoice, branch: str) -> Revision | None:
    return _latest(candidates, choice, branch) or _placeholder(candidates, choice, branch)


_CHOICES: Final[Mapping[By, Callable[[Sequence[Revision], RevisionChoice, str], Revision | None]]] = {
    By.UNSET: _latest_or_placeholder,
    By.LATEST: _latest,
    By.NUMBER: _number,
    By.PLACEHOLDER: _placeholder,
    By.WORKSPACE: _workspace,
}


def _highest(revisions: Sequence[Revision]) -> Revision | None:
    """Return the highest revision; one whose deletion is not proposed wins over one whose deletion is."""
    return max(revisions, key=lambda one: (one.lifecycle == PUBLISHED, one.revision, one.name), default=None)


# --- what is found ---------------------------------------------------------------------------------


def _required(found: Revision | None, spec: UpstreamSpec) -> Revision:
    if found is not None:
        return found
    selector = spec.workspace or (LATEST_TAG if spec.revision in (None, "", 0) else spec.revision)
    raise UpstreamNotFound(f"could not find upstream package revision {spec.repo}/{spec.package}@{selector}")


def _usable(found: Revision, warnings: Warnings = ()) -> Resolution:
    if not found.is_published:
        raise UpstreamNotPublished(f'upstream package revision "{found.name}" is not published')
    if found.lifecycle == DELETION_PROPOSED:
        message = f'the deletion of upstream package revision "{found.name}" is proposed'
        warnings = (*warnings, (DELETION_IS_PROPOSED, message))
    return Resolution(found, warnings)


def _ignored_revision(spec: UpstreamSpec, found: Revision | None) -> Warnings:
    """The workspace wins over the revision, whatever that says (C-02)."""
    try:
        choice = revision_choice(spec.revision)
    except InvalidRevision:
        return ()
    if found is None or choice.by is not By.NUMBER or choice.number == found.revision:
        return ()
    message = f'workspace "{spec.workspace}" is revision {found.revision}; spec.upstream.revision is ignored'
    return ((REVISION_IGNORED, message),)


def _kept_up(resolution: Resolution, spec: UpstreamSpec, previous: Mapping[str, Any]) -> Resolution:
    """Note that the latest revision went backwards since ``previous`` of the same package (2.4)."""
    found, before = resolution.revision, previous.get("revision")
    of_package = str(previous.get("name") or "") == ".".join(
        (package_object_name(spec.repo, spec.package), str(previous.get("workspaceName") or ""))
    )
    if not of_package or not isinstance(before, int) or found.revision >= before:
        return resolution
    message = (
        f"the latest revision of {spec.repo}/{spec.package} was {before} and is {found.revision} now; what was made of "
        "the former is kept (spec.upstream.allowDowngrade)"
    )
    warnings = (*resolution.warnings, (WENT_BACKWARDS, message))
    return replace(resolution, warnings=warnings, went_backwards=True, status=previous)

"""Reports where a target is no longer what its variant makes of it, and nothing is written about that (``variants.md`` 6.4).

Drift is what a pass finds and leaves alone: a pinned source that has newer revisions, files that somebody or some function
changed after the variant's own changes were applied, a newer revision that the variant does not own, and injection points
that got nothing.
"""

from collections.abc import Sequence
from typing import Any, Final

from controllers.packagevariant.views import Findings
from krm.variants.revisions import PUBLISHED, Revision

Json = dict[str, Any]

CONTENT_DRIFT: Final = "ContentDrift"
UNMANAGED_REVISION: Final = "UnmanagedRevision"
INJECTION_UNFULFILLED: Final = "InjectionUnfulfilled"
UPSTREAM_BEHIND: Final = "UpstreamBehind"
MAX_FILES: Final = 20
"""Paths that ``status.drift.files`` names."""
MAX_NAMED: Final = 5
"""Paths and condition types that the condition's message names."""


def newer_published(upstream: Revision, revisions: Sequence[Revision]) -> list[Revision]:
    """Return the published revisions of a package after ``upstream``, the newest first; none where it has no number."""
    if upstream.revision < 1:
        return []
    newer = [one for one in revisions if _is_newer(one, upstream)]
    return sorted(newer, key=lambda one: (-one.revision, one.name))


def _is_newer(one: Revision, upstream: Revision) -> bool:
    return one.lifecycle == PUBLISHED and one.revision > upstream.revision and not one.deleting


def report_drift(findings: Findings, status: Json, now: str) -> tuple[Json | None, tuple[str, str] | None]:
    """Return ``status.drift`` and the reason and message of the condition Drifted; both None where nothing has drifted.

    The reason is the gravest of several; the message tells all of them. ``since`` of ``status``, the status up to now, is
    kept while anything has drifted, so that a repeated report is equal to the one before.
    """
    newer = newer_published(findings.upstream, findings.upstream_revisions)
    told = _told(findings, newer)
    if not told:
        return None, None
    drift: Json = {"since": (status.get("drift") or {}).get("since") or now}
    if newer:
        drift |= {"upstreamBehind": len(newer), "newestUpstream": newer[0].name}
    if findings.files:
        drift["files"] = list(findings.files[:MAX_FILES])
    return drift, (told[0][0], "; ".join(message for _, message in told))


def _told(findings: Findings, newer: list[Revision]) -> list[tuple[str, str]]:
    """Return reason and message of each drift, the gravest first."""
    told: list[tuple[str, str]] = []
    if findings.files:
        told.append((CONTENT_DRIFT, f"changed after the variant's changes were applied: {_some(findings.files)}"))
    if findings.unmanaged is not None:
        message = f'package revision "{findings.unmanaged.name}" is newer and not owned by this variant'
        told.append((UNMANAGED_REVISION, message))
    if findings.unfulfilled:
        told.append((INJECTION_UNFULFILLED, f"nothing was injected for {_some(findings.unfulfilled)}"))
    if newer:
        count = "one newer published revision" if len(newer) == 1 else f"{len(newer)} newer published revisions"
        told.append((UPSTREAM_BEHIND, f'the source has {count}, the newest is "{newer[0].name}"'))
    return told


def _some(names: Sequence[str]) -> str:
    named = ", ".join(names[:MAX_NAMED])
    return f"{named} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else named

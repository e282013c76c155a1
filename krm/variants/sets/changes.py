"""What a set changes: which revision its source stands for while it is rolled out, and the names of changes.

Pure. Source: ``variants.md`` 6.2.
"""

from collections.abc import Mapping
from typing import Any, Final

from krm.variants.revision_choice import By, revision_choice
from krm.variants.sets.specs import spec_digest
from krm.variants.upstream import Resolution

Json = dict[str, Any]

CHANGE_ID_LENGTH: Final = 16
_MOVING: Final = ("revision", "workspaceName", "tag", "allowDowngrade")


def change_id(set_body: Json) -> str:
    """Return the name of the change that a set asks for: of its source and its targets, not of how they are rolled out.

    ``set_body`` has its upstream pinned. What is not in it does not make another change: a repository that appears, or a label that
    an expression reads, is rolled out too, but nobody has to approve the waves anew for it.
    """
    spec = set_body.get("spec") or {}
    return spec_digest({"upstream": spec.get("upstream"), "targets": spec.get("targets")})[:CHANGE_ID_LENGTH]


def with_pinned_upstream(set_body: Json, resolution: Resolution) -> Json:
    """Return a set whose upstream names what ``resolution`` found, so that a tag that moves does not move all variants at once.

    What a user has fixed keeps the spelling (C-21), and so does the upstream of a set without a rollout. A tag of Git and the head
    of a branch have no number: they cannot be pinned, and their variants follow them by themselves. ``set_body`` is not changed.
    """
    spec = set_body.get("spec") or {}
    number = resolution.seen().get("revision")
    if not spec.get("rollout") or not _moves(spec["upstream"]) or not isinstance(number, int) or number < 1:
        return set_body
    kept = {key: value for key, value in spec["upstream"].items() if key not in _MOVING}
    return {**set_body, "spec": {**spec, "upstream": {**kept, "revision": number}}}


def revisions_since(before: Mapping[str, Any], upstream: Json) -> int | None:
    """Return how many revisions a pinned ``upstream`` is after what ``status.upstream`` told before; negative if it went back.

    None where it is another package, or has no number.
    """
    then, now = before.get("revision"), _number(upstream)
    package = f"{upstream.get('repo')}.{str(upstream.get('package')).replace('/', '.')}."
    if not isinstance(then, int) or min(then, now) < 1 or not str(before.get("name") or "").startswith(package):
        return None
    return now - then


def _moves(upstream: Json) -> bool:
    """Tell whether an upstream can stand for something else tomorrow though nobody edits it."""
    if upstream.get("tag"):
        return True
    return not upstream.get("workspaceName") and revision_choice(upstream.get("revision")).by in (By.LATEST, By.UNSET)


def _number(upstream: Json) -> int:
    return 0 if upstream.get("workspaceName") else revision_choice(upstream.get("revision")).number

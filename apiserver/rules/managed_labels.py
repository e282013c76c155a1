"""What the server says in a revision's labels and annotations, and clients cannot.

Source: ``porch-api.md`` 2.4; ``decisions.md`` 10; ``users.md`` 7.3.
"""

from typing import Any

from krm.meta.errors import Cause, forbidden_value

Json = dict[str, Any]

LATEST = "kpt.dev/latest-revision"
BINARY_FILES = "porch.kpt.dev/binary-files"
"""Annotation that names the files left out of a revision's text resources, as a JSON list of paths."""
PUBLISHED_COMMIT = "porch.kpt.dev/published-commit"
"""Annotation of a revision whose tag somebody moved in Git: the commit that was published."""
MANAGED_ANNOTATIONS = (BINARY_FILES, PUBLISHED_COMMIT)
_FIELD = f"metadata.labels.{LATEST}"


def check_create(wanted: Json) -> list[Cause]:
    """Refuse a client that sets the label on a new revision."""
    if LATEST in (wanted.get("metadata", {}).get("labels") or {}):
        return [forbidden_value(_FIELD, f"{LATEST} label is managed by porch and cannot be set by users")]
    return []


def check_update(wanted: Json, stored: Json) -> list[Cause]:
    """Refuse a client that changes the label; sending back what was read is fine."""
    new = (wanted.get("metadata", {}).get("labels") or {}).get(LATEST)
    old = (stored.get("metadata", {}).get("labels") or {}).get(LATEST)
    if new != old and new is not None:
        return [forbidden_value(_FIELD, f"{LATEST} label is managed by porch and cannot be modified by users")]
    return []


def with_latest(labels: dict[str, str] | None, *, latest: bool) -> dict[str, str]:
    """Return ``labels`` with the managed label as it must be."""
    kept = {key: value for key, value in (labels or {}).items() if key != LATEST}
    if latest:
        kept[LATEST] = "true"
    return kept


def with_managed(annotations: dict[str, str] | None, stored: dict[str, str] | None) -> dict[str, str]:
    """Return a client's annotations with the managed ones as they are stored."""
    kept = {key: value for key, value in (annotations or {}).items() if key not in MANAGED_ANNOTATIONS}
    return kept | {key: value for key, value in (stored or {}).items() if key in MANAGED_ANNOTATIONS}

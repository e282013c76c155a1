"""The one label that the server owns: which revision of a package is the latest.

Source: ``porch-api.md`` 2.4.
"""

from typing import Any

from krm.meta.errors import Cause, forbidden_value

Json = dict[str, Any]

LATEST = "kpt.dev/latest-revision"
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

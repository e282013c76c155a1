"""What may still happen to a revision whose deletion has begun and which finalizers hold.

Pure. Deletion cannot be undone: what is published meanwhile would go from Git, unproposed, with the last finalizer.
Source: ``porch-api.md`` 2.5 and 4.7.
"""

from typing import Any

from apiserver.rules.lifecycle import GROUP, KIND, Lifecycle
from krm.meta.errors import Invalid, invalid_value

Json = dict[str, Any]


def check_not_published_while_going(stored: Json, current: Lifecycle, desired: Lifecycle, name: str) -> None:
    """Refuse to publish, or to keep as published, what is being deleted.

    Raises:
        Invalid: on spec.lifecycle.
    """
    going = bool(stored["metadata"].get("deletionTimestamp"))
    if going and desired is Lifecycle.PUBLISHED and current is not Lifecycle.PUBLISHED:
        why = "the package revision is being deleted and only waits for its finalizers; it cannot be published"
        raise Invalid.of(KIND, GROUP, name, [invalid_value("spec.lifecycle", str(desired), why)])

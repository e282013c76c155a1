"""A client's change, carried over to a state that the client had not seen.

Pure. A draft that is upgraded in place gets its gates, conditions and package metadata from the merge, on top of which come
the changes of the same request. Source: ``decisions.md`` 16.
"""

from collections.abc import Mapping
from typing import TypeVar

V = TypeVar("V")


def carried(present: Mapping[str, V], before: Mapping[str, V], after: Mapping[str, V]) -> dict[str, V]:
    """Return ``present`` with what was added, changed and removed between ``before`` and ``after``; order is kept."""
    gone = before.keys() - after.keys()
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    return {key: value for key, value in present.items() if key not in gone} | changed

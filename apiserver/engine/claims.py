"""Claims on single package revisions: the second of two overlapping writes fails at once.

Source: ``porch-api.md`` 8.2 and ``decisions.md`` 8. A claim is held in this process; between replicas the log's
compare-and-swap decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from krm.meta.errors import Conflict, ResourceName

BUSY = "another request is already in progress"
"""The words that upstream's clients and suites look for."""


class Claims:
    """Who is being written right now; entries live only as long as their write."""

    def __init__(self) -> None:
        self._held: set[tuple[str, str]] = set()

    @contextmanager
    def claim(
        self, resource: ResourceName, namespace: str, name: str, *, shown_as: str = "", doing: str = ""
    ) -> Iterator[None]:
        """Hold the revision ``namespace/name`` for the length of the block.

        Raises:
            Conflict: somebody holds it; the sentence carries upstream's words.
        """
        key = (namespace, name)
        if key in self._held:
            what = doing or f'on package revision "{namespace}/{name}"'
            raise Conflict.of(resource, shown_as or name, f"{BUSY} {what}")
        self._held.add(key)
        try:
            yield
        finally:
            self._held.discard(key)

    def held(self, namespace: str, name: str) -> bool:
        """Tell whether a write of this revision is under way."""
        return (namespace, name) in self._held

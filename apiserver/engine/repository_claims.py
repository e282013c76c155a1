"""Which Repository objects claim which branch of which Git repository: kept from the store's events, asked in O(1).

Source: ``porch-api.md`` 9 (repository webhook).
"""

from apiserver.rules.repository_location import Claim, Place, claim_of
from krm.meta.errors import StatusError
from storage.bodies import decode
from storage.interfaces import Event, EventType


class RepositoryConflict(StatusError):
    """Another Repository object has the same packages, or some of them."""

    code, reason = 409, "RepositoryConflict"


class RepositoryClaims:
    """The claims of all Repositories by place. Few share one, so those are compared one by one."""

    def __init__(self) -> None:
        self._places: dict[Place, dict[tuple[str, str], Claim]] = {}

    def observe(self, event: Event) -> None:
        """Apply one event of the repositories resource."""
        key = (event.entry.namespace, event.entry.name)
        if event.previous is not None and (old := claim_of(decode(event.previous))) is not None:
            claims = self._places.get(old.place, {})
            claims.pop(key, None)
            if not claims:
                self._places.pop(old.place, None)
        if event.type is not EventType.DELETED and (new := claim_of(decode(event.entry))) is not None:
            self._places.setdefault(new.place, {})[key] = new

    def check(self, claim: Claim) -> None:
        """Refuse a claim that cannot stand beside those that are there; may be called in any thread.

        Raises:
            RepositoryConflict: it names the first of the others.
        """
        others = list(self._places.get(claim.place, {}).values())
        for other in sorted(others, key=lambda other: (other.namespace, other.name)):
            if claim.conflicts_with(other):
                raise RepositoryConflict(
                    f"Repository conflict with existing repository: {other.namespace}/{other.name}",
                    name=claim.name,
                    group="config.porch.kpt.dev",
                    kind="repositories",
                )

"""The installation that is taken over, as the plan asks for it; :mod:`folder` and :mod:`live` are the two there are.

Everything in it was written by others: it is as hostile as a request.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

Json = dict[str, Any]

MAX_OBJECTS: Final = 100_000
"""Package revisions, or other objects of one kind, that one run takes over. An installation that has more is taken over by
namespaces: all of a run is one transaction."""


class BadSource(Exception):
    """The installation cannot be read, or not understood; the message says what would help. Nothing was changed."""


class Source(Protocol):
    """Objects of an installation, decoded and unchecked but for being objects with a name."""

    @property
    def shown(self) -> str:
        """What the report calls it."""
        ...

    async def repositories(self) -> Sequence[Json]:
        """Return the Repositories of the namespaces that were asked for. Raises BadSource."""
        ...

    async def variants(self) -> Sequence[Json]:
        """Return their PackageVariants and PackageVariantSets. Raises BadSource."""
        ...

    async def revisions(self, namespace: str, repository: str) -> Sequence[Json]:
        """Return the package revisions of one Repository. Raises BadSource."""
        ...

    async def find(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        """Return any object; None where there is none, or it may not be read. Raises BadSource."""
        ...

    async def files(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the files of a package revision by path; None where they are not to be had. Raises BadSource."""
        ...


def name_of(item: Json) -> tuple[str, str]:
    """Return namespace and name of an object, as far as it has them."""
    metadata = item.get("metadata")
    held = metadata if isinstance(metadata, dict) else {}
    return str(held.get("namespace") or ""), str(held.get("name") or "")


def is_named(item: object) -> bool:
    """Tell whether something is an object with a name."""
    return isinstance(item, dict) and isinstance(item.get("metadata"), dict) and bool(name_of(item)[1])


def repository_of(item: Json) -> str:
    """Return the name of the Repository that a package revision says it is of."""
    spec = item.get("spec")
    return str(spec.get("repository") or "") if isinstance(spec, dict) else ""


def in_namespaces(items: Sequence[Json], namespaces: frozenset[str]) -> Iterator[Json]:
    """Yield the objects of some namespaces; none named means all."""
    for item in items:
        if not namespaces or name_of(item)[0] in namespaces:
            yield item

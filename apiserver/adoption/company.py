"""What comes along with package revisions, collected before it is sure that it does."""

from collections.abc import Mapping
from typing import Any

from apiserver.adoption.objects import creation, storable
from apiserver.machinery.definition import Definition
from apiserver.resources.reading import object_key
from storage.interfaces import Mutation, ObjectKey

Json = dict[str, Any]


class Company:
    """The objects around package revisions that come along.

    ``uids`` are those of everything that is there or comes, package revisions included.
    """

    def __init__(self) -> None:
        self.kinds: Mapping[tuple[str, str], Definition] = storable()
        self.uids: set[str] = set()
        self._joined: dict[ObjectKey, tuple[Definition, Json]] = {}

    def join(self, definition: Definition, body: Json) -> None:
        """Have an object come along."""
        metadata = body["metadata"]
        self._joined[object_key(definition, metadata.get("namespace"), metadata["name"])] = (definition, body)
        self.uids.add(metadata["uid"])

    def leave(self, body: Json) -> None:
        """Have an object not come after all."""
        uid = body["metadata"]["uid"]
        self._joined = {key: one for key, one in self._joined.items() if one[1]["metadata"]["uid"] != uid}
        self.uids.discard(uid)

    def bodies(self) -> list[Json]:
        """Return what comes along."""
        return [body for _, body in self._joined.values()]

    def mutations(self) -> list[Mutation]:
        """Return what creates all of them, in the order in which they joined."""
        return [creation(definition, body) for definition, body in self._joined.values()]

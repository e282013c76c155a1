"""What a server and its render workers send each other: eight bytes of length, then a pickle."""

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from krm.functions.pipeline import Rendered
from krm.functions.step_cache import Lookup
from krm.package.contents import Contents, File

HEADER = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Answer:
    """A render's outcome without the files that stayed as they were."""

    rendered: Rendered
    """Its ``contents`` hold only the files that are new or changed."""
    removed: tuple[str, ...]
    retire: bool
    """The worker has grown too large; this is its last answer."""
    lookups: Mapping[Lookup, int]
    """How often the worker looked for outputs of single functions among those that it remembers."""

    def complete(self, given: Contents) -> Rendered:
        """Put the files that stayed as they were in ``given`` back into the outcome."""
        kept = dict(given)
        for path in self.removed:
            del kept[path]
        return replace(self.rendered, contents={**kept, **self.rendered.contents})


def answer(given: Contents, rendered: Rendered, *, retire: bool, lookups: Mapping[Lookup, int]) -> Answer:
    """Take out of ``rendered`` what the server has already."""
    changed: dict[str, File] = {
        path: file
        for path, file in rendered.contents.items()
        if file is not given.get(path) and file != given.get(path)
    }
    removed = tuple(path for path in given if path not in rendered.contents)
    return Answer(replace(rendered, contents=changed), removed, retire=retire, lookups=lookups)


def frame(message: Any) -> bytes:
    """Return ``message`` as it goes through a pipe."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(data)) + data

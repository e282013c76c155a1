"""Where two specs of PackageVariants differ, field by field. Source: ``variants.md`` 6.1."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, Final

from krm.variants.sets.specs import canonical

Json = dict[str, Any]

MOST_DIFFERENCES: Final = 100
"""Of two specs; who changes more has changed everything."""
MOST_DEPTH: Final = 32
"""Steps of a path: what lies deeper is compared as a whole."""
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs."""

    path: str
    """From ``spec`` on, as in ``spec.labels["example.com/tier"]`` or ``spec.injectors[0].name``."""
    sides: Json
    """``old`` and ``new``, of which one is missing where the field is."""

    def to_json(self) -> Json:
        """Return path, old and new."""
        return {"path": self.path, **self.sides}


def differences(old: Json, new: Json) -> list[Difference]:
    """Return what differs in meaning, in the order of paths; at most ``MOST_DIFFERENCES``. Equal digests give none."""
    return list(islice(_differences(canonical(old), canonical(new), "spec", 0), MOST_DIFFERENCES))


def _differences(old: Any, new: Any, path: str, depth: int) -> Iterator[Difference]:
    if depth < MOST_DEPTH and isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key, _MISSING), new.get(key, _MISSING), _step(path, key), depth + 1)
    elif depth < MOST_DEPTH and isinstance(old, list) and isinstance(new, list):
        for place, (before, after) in enumerate(zip_longest(old, new, fillvalue=_MISSING)):
            yield from _differences(before, after, f"{path}[{place}]", depth + 1)
    elif type(old) is not type(new) or old != new:
        sides = (("old", old), ("new", new))
        yield Difference(path, {side: value for side, value in sides if value is not _MISSING})


def _step(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{json.dumps(key, ensure_ascii=False)}]"

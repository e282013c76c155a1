"""Whether the old server was written to while a plan was made: labels and drafts of that time would be lost without a word.

What others push to Git meanwhile is no concern of this: the new server finds it with its first sync. Source: ADR 0034.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from apiserver.adoption.objects import KEPT
from apiserver.adoption.source import Source

Json = dict[str, Any]


def state_of(shown: Iterable[Json]) -> str:
    """Return a digest of what an adoption takes of package revisions; the order in which they are listed does not count."""
    lines = sorted(orjson.dumps(_taken(item), option=orjson.OPT_SORT_KEYS) for item in shown)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


async def changed_since(source: Source, states: Mapping[str, str]) -> list[str]:
    """Read the old server again; return the Repositories (``namespace/name``) whose package revisions are not as they were.

    Raises:
        BadSource: it cannot be read.
    """
    now = {key: state_of(await source.revisions(*key.split("/", 1))) for key in states}
    return [key for key, state in states.items() if now[key] != state]


def _taken(item: Json) -> Json:
    metadata, spec, status = item["metadata"], item.get("spec"), item.get("status")
    lock = status.get("selfLock") if isinstance(status, dict) else None
    return {
        "metadata": {key: metadata.get(key) for key in (*KEPT, "name", "uid", "deletionTimestamp")},
        "lifecycle": spec.get("lifecycle") if isinstance(spec, dict) else None,
        "lock": lock,
    }

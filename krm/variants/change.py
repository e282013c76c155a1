"""Whether a mutation changed a package, and what it was computed from. Source: ``variants.md`` 2.10."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from krm.package.documents import is_resource_file, read_resources
from krm.package.yaml_reader import YamlError, read_documents, same
from krm.variants.injection import Source
from krm.variants.kptfile import KPTFILE
from krm.variants.revisions import Lock
from krm.variants.variant import Variant

Json = dict[str, Any]

_LARGEST_WHOLE = 1 << 53
"""Up to which a number with a fraction of nothing is the same as the whole number to every reader of JSON."""


def differs(before: Mapping[str, str], after: Mapping[str, str], *, published: bool) -> bool:
    """Say whether two states of a package say different things: layout and comments of resources do not count.

    Args:
        before: The files as they are: path → text.
        after: The files as they should be.
        published: Whether the package is published: then the status in its Kptfile does not count.
    """
    if before.keys() != after.keys():
        return True
    return any(_differs(path, text, after[path], published) for path, text in before.items() if text != after[path])


def fingerprint(variant: Variant, lock: Lock | None, sources: Iterable[Source]) -> str:
    """Return ``sha256:<hex>`` of all that a mutation follows from, but for the files themselves.

    The same inputs give the same fingerprint in every process and release.

    Args:
        variant: Its name, context and pipeline count.
        lock: Where the package revision's contents come from.
        sources: What its injection points got, in their order.
    """
    inputs = {
        "name": variant.name,
        "packageContext": {"data": dict(variant.context_data), "removeKeys": sorted(set(variant.context_remove))},
        "pipeline": {"mutators": list(variant.mutators), "validators": list(variant.validators)},
        "lock": list(lock.place) if lock else None,
        "sources": [[one.point_type, one.api_version, one.kind, one.name, _plain(one.value)] for one in sources],
    }
    canonical = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"


def _plain(value: Any) -> Any:
    """Return JSON data with whole numbers as such: ``1.0`` comes back from one server as ``1``, from another as it was."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_WHOLE:
        return int(value)
    return value


def _differs(path: str, before: str, after: str, published: bool) -> bool:
    if not is_resource_file(path):
        return True
    try:
        # A Kptfile's fields have types: text is text there, with and without quotes.
        read = _kptfile if path == KPTFILE else _resources
        old, new = read(path, before), read(path, after)
    except YamlError:
        return True
    if path == KPTFILE and published:
        old, new = _without_status(old), _without_status(new)
    return not same(old, new)


def _kptfile(_path: str, text: str) -> list[Any]:
    return read_documents(text, as_text=True)


def _resources(path: str, text: str) -> list[Any]:
    return [document.data for document in read_resources(path, text.encode())[1] if document.data is not None]


def _without_status(documents: list[Any]) -> list[Any]:
    return [
        {key: value for key, value in one.items() if key != "status"} if isinstance(one, dict) else one
        for one in documents
    ]

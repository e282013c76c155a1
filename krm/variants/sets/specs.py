"""Whether two specs of PackageVariants mean the same.

Source: ``variants.md`` 3.6; C-21, C-27.
"""

import hashlib
import json
from typing import Any, Final

import orjson

Json = dict[str, Any]

TOO_DEEP: Final = "nested too deeply"
"""Stands for the digest of a spec that nobody rendered: no rendered spec is nested that deep."""
_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def spec_digest(spec: Json) -> str:
    """Return 32 hexadecimal digits that are equal for specs that mean the same; any JSON has a digest.

    Absent, null and empty are the same, and so are one injector and a list of it. ``revision: v1`` and ``revision: 1``
    are not: what the user writes is kept.
    """
    try:
        return canonical_digest(canonical(spec))
    except RecursionError:
        return TOO_DEEP


def canonical_digest(spec: Json) -> str:
    """Return ``spec_digest`` of a spec that is canonical already."""
    try:
        text = orjson.dumps(spec, option=_SORTED)
    except TypeError:  # texts that are no Unicode, numbers beyond 64 bits
        text = json.dumps(spec, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:32]


def canonical(spec: Json) -> Json:
    """Return a spec without what says nothing: nulls, empty maps and lists, and empty texts and ``false`` of options."""
    kept = _kept(spec)
    injectors = kept.get("injectors")
    if isinstance(injectors, dict):
        kept["injectors"] = [injectors]
    if isinstance(kept.get("upstream"), dict):
        kept["upstream"] = _options(kept["upstream"])
    return _options(kept)


def _kept(value: Json) -> Json:
    kept: Json = {}
    for key, one in value.items():
        said = _kept(one) if isinstance(one, dict) else [*map(_item, one)] if isinstance(one, list) else one
        if said is not None and said not in ({}, []):
            kept[key] = said
    return kept


def _item(value: Any) -> Any:
    """An empty item of a list says something: a selector without conditions selects everything."""
    return _kept(value) if isinstance(value, dict) else value


def _options(value: Json) -> Json:
    return {key: one for key, one in value.items() if one != "" and one is not False}

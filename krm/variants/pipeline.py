"""A variant's functions in a Kptfile's pipeline: at its beginning, under names that tell whose they are.

Source: ``variants.md`` 2.9.2, C-13; seed 000, "Editing the Kptfile function pipeline".
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from krm.variants.kptfile import FUNCTION_LISTS
from krm.variants.variant import Variant
from krm.variants.vocabulary import FUNCTION_PREFIX

Json = dict[str, Any]

_FIELDS = ("image", "tag", "exec", "configPath", "configMap", "selectors", "exclude")
"""Of a function, in the order in which they are written behind its name."""
_FUNCTION_AND_PLACE = re.compile(r"[^.]*\.[-+]?[0-9]+\Z")


def function_name(variant: str, function: str, place: int) -> str:
    """Return the name that a variant's function has in a Kptfile; ``place`` counts from 0 in the variant's list."""
    return f"{FUNCTION_PREFIX}.{variant}.{function}.{place}"


def is_function_of(variant: str, name: Any) -> bool:
    """Say whether a name in a Kptfile is one that the variant gave, now or before its spec changed.

    Names of variants may have dots, those of their functions have none.
    """
    prefix = f"{FUNCTION_PREFIX}.{variant}."
    return isinstance(name, str) and name.startswith(prefix) and bool(_FUNCTION_AND_PLACE.match(name, len(prefix)))


def pipeline_of(variant: Variant, pipeline: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the lists of functions as they should be: the variant's, then those that are not its own.

    ``pipeline`` are the lists of the Kptfile, scalars as text.
    """
    wanted: dict[str, Sequence[Json]] = {"mutators": variant.mutators, "validators": variant.validators}
    return {
        key: [_entry(variant.name, function, place) for place, function in enumerate(wanted[key])]
        + [entry for entry in pipeline.get(key, ()) if not _is_own(variant.name, entry)]
        for key in FUNCTION_LISTS
    }


def _entry(variant: str, function: Json, place: int) -> Json:
    fields = {key: function[key] for key in _FIELDS if function.get(key)}
    return {"name": function_name(variant, function.get("name") or "", place), **fields}


def _is_own(variant: str, entry: Any) -> bool:
    return isinstance(entry, dict) and is_function_of(variant, entry.get("name"))

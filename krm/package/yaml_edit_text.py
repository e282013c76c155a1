"""Change a YAML document's data with the smallest change of its text.

The caller says what the data should be; the difference is cut and pasted in the text, and the result is
read again and compared. What that cannot do right, yaml-edit tries, then ruamel.yaml; what none can
(aliases that no longer agree), is written anew without comments. A text whose data does not change is
returned as it is. Source: ``libraries.md`` 2.2 and 2.4, ``decisions.md`` 11.
"""

import json
from collections import Counter
from typing import Any

from krm.package.yaml_edit_fallbacks import edit_lossless, edit_lossless_without_aliases, edit_with_ruamel
from krm.package.yaml_reader import YamlError, read_document, same
from krm.package.yaml_splices import splice_document
from krm.package.yaml_writer import needs_quotes, new_document

__all__ = ["EDIT_WAYS", "edit_document", "edit_json", "needs_quotes", "new_document"]

EDIT_WAYS: Counter[str] = Counter()
"""How often this process changed a document in which way; for metrics. The later ones lose layout."""
_BOM = "\ufeff"
_WAYS = (
    ("spliced", splice_document),
    ("yaml-edit", edit_lossless),
    ("yaml-edit, aliases expanded", edit_lossless_without_aliases),
    ("ruamel", edit_with_ruamel),
)
_ANEW = "written anew"


def edit_document(text: str, wanted: Any, current: Any = None) -> str:
    """Return ``text`` changed so that it reads as ``wanted``; comments, order and layout stay.

    ``current`` is what ``text`` reads as now, if the caller knows it already. Keys that ``wanted`` adds
    go where they stand in ``wanted``.

    Raises:
        YamlError: ``text`` is not one YAML document.
    """
    if current is None:
        current = read_document(text)
    if same(current, wanted):
        return text
    if text.startswith(_BOM):
        return _BOM + edit_document(text[1:], wanted, current)
    if current is None:
        return text + ("" if not text or text.endswith("\n") else "\n") + new_document(wanted)
    for name, way in _WAYS:
        edited = way(text, current, wanted)
        if edited is not None and _reads_as(edited, wanted):
            EDIT_WAYS[name] += 1
            return edited
    EDIT_WAYS[_ANEW] += 1
    return new_document(wanted)


def edit_json(text: str, wanted: Any, current: Any) -> str:
    """Do the same for a JSON file, whose result must be JSON again; at worst it is indented anew by two."""
    if same(current, wanted):
        return text
    for name, way in _WAYS[:2]:
        edited = way(text, current, wanted)
        if edited is not None and _is_json_of(edited, wanted):
            EDIT_WAYS[name] += 1
            return edited
    EDIT_WAYS[_ANEW] += 1
    indent = 2 if "\n" in text.strip() else None
    return json.dumps(wanted, indent=indent, ensure_ascii=False) + ("\n" if text.endswith("\n") else "")


def _reads_as(text: str, wanted: Any) -> bool:
    try:
        return same(read_document(text), wanted)
    except YamlError:
        return False


def _is_json_of(text: str, wanted: Any) -> bool:
    try:
        return same(json.loads(text), wanted)
    except (ValueError, RecursionError):
        return False

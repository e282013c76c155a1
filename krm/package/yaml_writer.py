"""Plain data → YAML text: whole documents, and values to be put into one that exists.

Strings are quoted where our reader or any YAML 1.1 reader would take them for another type.
Source: ``kpt.md`` 7.2, 7.3.
"""

import json
import re
from typing import Any

import yaml

from krm.package.yaml_scalars import resolve_scalar

_TIME = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt \t].*)?\Z")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_MERGE_KEY = "<<"
_SAFE = re.compile(r"[\w/.$(](?:[\w./@+%=$()~^*!?;<>|&\"'-]|:(?=[^\s])| (?=[^\s#]))*\Z")
"""Strings that are plain scalars wherever they stand; most that packages hold are."""
_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_WIDTH = 1 << 20
"""Columns; lines are never folded."""


def new_document(data: Any) -> str:
    """Write ``data`` as a block-style document: two spaces, compact lists, order kept, no line folding."""
    return _dumped(data, _Dumper)


def new_block(data: Any, *, wide: bool) -> str:
    """Write ``data`` as :func:`new_document` does; ``wide`` sets lists two columns deeper than their key."""
    return _dumped(data, _WideDumper if wide and _holds_list(data) else _Dumper)


def new_flow(value: Any) -> str:
    """Write ``value`` on one line, fit for a flow collection and for anywhere else."""
    # In a list, because what may be plain is more outside of one.
    text = yaml.dump(
        [value], Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True, default_flow_style=True
    )
    return str(text).rstrip("\n")[1:-1]


def inline_scalar(value: Any, style: str | None = None) -> str | None:
    """Write a scalar on one line, a string in the quotes ``style`` if those are given.

    None when plain data of this kind is not written on one line: collections, strings of several lines.
    """
    if isinstance(value, str):
        if style == '"':
            return double_quoted(value)
        if style == "'" and value.isprintable():
            return _single_quoted(value)
        return None if "\n" in value else _unquoted(value)
    if value is None or value is True or value is False:
        return _WORDS[value]
    if isinstance(value, int):
        return str(value)
    return new_flow(value) if isinstance(value, float) else None


def double_quoted(text: str) -> str:
    """Write ``text`` in double quotes, letters of any script as they are."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def needs_quotes(text: str) -> bool:
    """Say whether some reader would take plain ``text`` for something else than this very string."""
    if not isinstance(resolve_scalar(text), str):
        return True
    return text == _MERGE_KEY or (text[0] in "+-0123456789" and bool(_TIME.match(text) or _BASE_60.match(text)))


def _unquoted(text: str) -> str:
    if needs_quotes(text):
        return double_quoted(text)
    if _SAFE.match(text):
        return text
    # libyaml's emitter would escape what lies outside the basic plane.
    return _single_quoted(text) if text.isprintable() and not text.isascii() else new_flow(text)


def _single_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_WORDS = {None: "null", True: "true", False: "false"}


class _Dumper(yaml.CSafeDumper):
    """Quotes what a YAML 1.1 reader would mistake, and writes text of several lines as it is read."""


class _WideDumper(yaml.SafeDumper):
    """The same with wide lists, which libyaml's emitter does not know."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - never without
        super().increase_indent(flow, False)


def _dumped(data: Any, dumper: type[_Dumper] | type[_WideDumper]) -> str:
    return str(
        yaml.dump(data, Dumper=dumper, sort_keys=False, width=_WIDTH, allow_unicode=True, default_flow_style=False)
    )


def _holds_list(data: Any) -> bool:
    if isinstance(data, list):
        return True
    return isinstance(data, dict) and any(map(_holds_list, data.values()))


def _write_text(dumper: Any, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and text.strip("\n") else '"' if needs_quotes(text) else None
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


for _kind in (_Dumper, _WideDumper):
    _kind.add_representer(str, _write_text)
    _kind.add_representer(dict, lambda dumper, data: dumper.represent_dict(data.items()))
    # The dumper would otherwise print anchors for values that happen to be shared.
    _kind.ignore_aliases = lambda *_: True  # type: ignore[method-assign]

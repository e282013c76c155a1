"""Change a YAML document's data with the smallest change of its text.

The caller says what the data should be; the difference is applied with yaml-edit, and the result is
read again and compared. What yaml-edit cannot do right, ruamel.yaml tries; what neither can (aliases
that no longer agree), is written anew without comments. A text whose data does not change is returned
as it is. Source: ``libraries.md`` 2.2 and 2.4, ``decisions.md`` 11.
"""

import json
import re
from io import StringIO
from typing import Any

import yaml
import yaml_edit
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError as RuamelError
from yaml_edit import Mapping, Node, ScalarValue, Sequence

from krm.package.yaml_reader import YamlError, plain_copy, read_document, resolve_scalar, same

_WIDE_LIST = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n\1 +- ", re.MULTILINE)
_QUOTED = ("single-quoted", "double-quoted")
_BOM = "\ufeff"


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
    for attempt in (_edit_lossless, _edit_lossless_without_aliases, _edit_with_ruamel):
        edited = attempt(text, current, wanted)
        if edited is not None and _reads_as(edited, wanted):
            return edited
    return new_document(wanted)


def edit_json(text: str, wanted: Any, current: Any) -> str:
    """Do the same for a JSON file, whose result must be JSON again; at worst it is indented anew by two."""
    if same(current, wanted):
        return text
    edited = _edit_lossless(text, current, wanted)
    if edited is not None:
        try:
            if same(json.loads(edited), wanted):
                return edited
        except ValueError:
            pass
    indent = 2 if "\n" in text.strip() else None
    return json.dumps(wanted, indent=indent, ensure_ascii=False) + ("\n" if text.endswith("\n") else "")


def new_document(data: Any) -> str:
    """Write ``data`` as a block-style document: two spaces, compact lists, order kept, no line folding."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=1 << 20, allow_unicode=True, default_flow_style=False)


def needs_quotes(text: str) -> bool:
    """Say whether plain ``text`` would be read as something else than this very string."""
    return not isinstance(resolve_scalar(text), str)


class _Dumper(yaml.CSafeDumper):
    """Quotes what our reader (and any YAML 1.1 reader) would take for another type."""


def _write_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") else '"' if needs_quotes(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(dict, lambda dumper, data: dumper.represent_dict(data.items()))
# The dumper would otherwise print anchors for values that happen to be shared.
_Dumper.ignore_aliases = lambda *_: True  # type: ignore[method-assign]


def _reads_as(text: str, wanted: Any) -> bool:
    try:
        return same(read_document(text), wanted)
    except YamlError:
        return False


def _edit_lossless(text: str, current: Any, wanted: Any, *, expand: bool = False) -> str | None:
    """Edit with yaml-edit; None when it cannot.

    Its objects belong to this thread: none may outlive this call, not even in a traceback.
    """
    try:
        parsed = yaml_edit.YamlFile.parse(text)
        document = parsed.document()
        root = None if document is None else document.root()
        if root is None or not _change_inside(root, current, wanted, expand=expand):
            return None
        return str(parsed)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - a Rust panic is a BaseException; the caller tries another way
        return None


def _edit_lossless_without_aliases(text: str, current: Any, wanted: Any) -> str | None:
    if "*" not in text:
        return None
    return _edit_lossless(text, current, wanted, expand=True)


def _change_inside(node: Node, current: Any, wanted: Any, *, expand: bool) -> bool:
    """Change a collection in place; False when the node must be replaced as a whole."""
    if node.is_alias():
        # The first attempt trusts that the anchor's own change brings the alias along.
        return not expand
    if type(current) is not type(wanted) or not wanted:
        return False
    if isinstance(wanted, dict):
        mapping = node.as_mapping()
        if mapping is None or not current:
            return False
        _change_mapping(mapping, current, wanted, expand=expand)
        return True
    if isinstance(wanted, list):
        sequence = node.as_sequence()
        if sequence is None or not current:
            return False
        _change_sequence(sequence, current, wanted, expand=expand)
        return True
    return False


def _change_mapping(mapping: Mapping, current: dict[str, Any], wanted: dict[str, Any], *, expand: bool) -> None:
    for key in current:
        if key not in wanted:
            _remove(mapping, key)
    last_old = max((place for place, key in enumerate(wanted) if key in current), default=-1)
    previous = None
    for place, (key, value) in enumerate(wanted.items()):
        if key not in current:
            _insert(mapping, key, _value(value), previous, place, at_end=place > last_old)
        elif not same(current[key], value):
            node = _get(mapping, key)
            if node is None or not _change_inside(node, current[key], value, expand=expand):
                _set(mapping, key, _replacement(node, value))
        previous = key


def _change_sequence(sequence: Sequence, current: list[Any], wanted: list[Any], *, expand: bool) -> None:
    start, end = _equal_ends(current, wanted)
    old, new = current[start : len(current) - end], wanted[start : len(wanted) - end]
    for offset in range(min(len(old), len(new))):
        node = sequence.get(start + offset)
        if same(old[offset], new[offset]):
            continue
        if node is None or not _change_inside(node, old[offset], new[offset], expand=expand):
            sequence.set(start + offset, _replacement(node, new[offset]))
    for place in range(start + len(old) - 1, start + len(new) - 1, -1):
        sequence.pop(place)
    for offset in range(len(old), len(new)):
        value = _value(new[offset])
        if end:
            sequence.insert(start + offset, value)
        else:
            sequence.append(value)


def _equal_ends(current: list[Any], wanted: list[Any]) -> tuple[int, int]:
    """Count the items that are equal at the start, and of the rest those equal at the end."""
    shorter = min(len(current), len(wanted))
    start = 0
    while start < shorter and same(current[start], wanted[start]):
        start += 1
    end = 0
    while end < shorter - start and same(current[-1 - end], wanted[-1 - end]):
        end += 1
    return start, end


def _get(mapping: Mapping, key: str) -> Node | None:
    if not needs_quotes(key):
        return mapping.get(key)
    return next((entry.value() for entry in mapping.entries() if _key_text(entry.key()) == key), None)


def _set(mapping: Mapping, key: str, value: Any) -> None:
    if needs_quotes(key):
        for entry in mapping.entries():
            if _key_text(entry.key()) == key:
                entry.set_value(value)
                return
    mapping.set(key, value)


def _remove(mapping: Mapping, key: str) -> None:
    if needs_quotes(key):
        for entry in mapping.entries():
            if _key_text(entry.key()) == key:
                entry.remove()
                return
    mapping.remove(key)


def _insert(mapping: Mapping, key: str, value: Any, previous: str | None, place: int, *, at_end: bool) -> None:
    if at_end:
        mapping.set(key, value)
    elif previous is None or needs_quotes(previous):
        mapping.insert_at_index(place, key, value)
    else:
        mapping.insert_after(previous, key, value)


def _key_text(node: Node | None) -> str | None:
    scalar = None if node is None else node.as_scalar()
    return None if scalar is None else scalar.as_string()


def _replacement(node: Node | None, value: Any) -> Any:
    """Return ``value`` to put in place of ``node``; a quoted string stays quoted the same way."""
    scalar = None if node is None else node.as_scalar()
    if isinstance(value, str) and scalar is not None and scalar.style() in _QUOTED:
        return ScalarValue(value, style=scalar.style())
    return _value(value)


def _value(value: Any) -> Any:
    """Return plain data for yaml-edit, strings quoted where some reader would mistake them."""
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, str) and needs_quotes(value):
        return ScalarValue(value, style="double-quoted")
    return value


def _edit_with_ruamel(text: str, current: Any, wanted: Any) -> str | None:
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 1 << 20
    if _WIDE_LIST.search(text):
        editor.indent(mapping=2, sequence=4, offset=2)
    try:
        tree = editor.load(text)
        _update(tree, current, wanted)
        out = StringIO()
        editor.dump(tree, out)
    except (RuamelError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return out.getvalue()


def _update(tree: Any, current: Any, wanted: Any) -> None:
    """Change ruamel's tree, which behaves like dicts and lists, from ``current`` to ``wanted``."""
    if isinstance(wanted, dict):
        for key in [key for key in current if key not in wanted]:
            del tree[key]
        for place, (key, value) in enumerate(wanted.items()):
            if key not in current:
                tree.insert(place, key, plain_copy(value))
            elif not same(current[key], value):
                if isinstance(value, (dict, list)) and type(current[key]) is type(value):
                    _update(tree[key], current[key], value)
                else:
                    tree[key] = value
    else:
        tree[:] = plain_copy(wanted)

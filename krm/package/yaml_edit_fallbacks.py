"""Ways to change a document that splices cannot: with yaml-edit's lossless tree, then with ruamel.yaml.

yaml-edit knows the entries of flow collections; ruamel.yaml is the last that keeps comments. Neither is
trusted: the caller reads every result again. Source: ``libraries.md`` 2.2, 2.4.
"""

import re
from io import StringIO
from typing import Any

import yaml_edit
from yaml_edit import Mapping, Node, ScalarValue, Sequence

from krm.package.list_alignment import align
from krm.package.yaml_reader import plain_copy, same
from krm.package.yaml_writer import needs_quotes

_WIDE_LIST = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\r?\n\1 +- ", re.MULTILINE)
_MOST_CHANGES = 300
"""That yaml-edit is asked for: its time grows with their number times that of the entries beside them."""
_LONGEST_FOR_RUAMEL = 256 << 10
"""Characters; it reads and writes some 300,000 a second."""
_QUOTED = ("single-quoted", "double-quoted")


def edit_lossless(text: str, current: Any, wanted: Any, *, expand: bool = False) -> str | None:
    """Edit with yaml-edit; None when it cannot, or when it would take long.

    Its objects belong to this thread: none may outlive this call, not even in a traceback.
    """
    if _differences(current, wanted) > _MOST_CHANGES:
        return None
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


def edit_lossless_without_aliases(text: str, current: Any, wanted: Any) -> str | None:
    """Edit with yaml-edit, each alias that is concerned replaced by its value; None when there are none."""
    if "*" not in text:
        return None
    return edit_lossless(text, current, wanted, expand=True)


def _differences(current: Any, wanted: Any) -> int:
    """Count the entries that differ, giving up above the limit."""
    count, todo = 0, [(current, wanted)]
    while todo and count <= _MOST_CHANGES:
        old, new = todo.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            count += len(old.keys() ^ new.keys())
            todo += [(value, new[key]) for key, value in old.items() if key in new and not same(value, new[key])]
        elif isinstance(old, list) and isinstance(new, list):
            count += abs(len(old) - len(new))
            todo += [pair for pair in zip(old, new, strict=False) if not same(*pair)]
        else:
            count += 1
    return count


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
    pairs = align(current, wanted)
    for old, new in reversed(pairs):
        if old is not None and new is None:
            sequence.pop(old)
    place = 0
    for old, new in pairs:
        if new is None:
            continue
        if old is None:
            value = _value(wanted[new])
            if place < len(sequence):
                sequence.insert(place, value)
            else:
                sequence.append(value)
        elif not same(current[old], wanted[new]):
            node = sequence.get(place)
            if node is None or not _change_inside(node, current[old], wanted[new], expand=expand):
                sequence.set(place, _replacement(node, wanted[new]))
        place += 1


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


def edit_with_ruamel(text: str, current: Any, wanted: Any) -> str | None:
    """Edit with ruamel.yaml, which keeps comments but not all layout; None when it cannot."""
    if len(text) > _LONGEST_FOR_RUAMEL:
        return None
    # Slow to import and hardly ever needed.
    from ruamel.yaml import YAML

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
    except Exception:  # noqa: BLE001 - any of its own errors, on texts that nobody wrote for it; the caller writes anew
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

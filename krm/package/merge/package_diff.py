"""How two packages differ: for people as a patch, and for updates as the files that somebody edited.

An edit is what a user meant. What tools record about a copy (its upstream, its merge keys, its last
render) is not one. Source: ``kpt.md`` 3.4, 3.9 and 3.10.
"""

import difflib
from collections.abc import Iterator
from typing import Any

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.documents import read_file
from krm.package.kptfile import parse_kptfile
from krm.package.kptfile_error import KptfileError
from krm.package.merge.document_merge import is_unedited
from krm.package.resource_identity import UPSTREAM_IDENTIFIER
from krm.package.yaml_reader import YamlError

_MOST_COMPARED_LINES = 2000
"""Differing lines, of one side, up to which the smallest patch is looked for: the search is cubic at worst."""
_RENDERED = "Rendered"
_ROOT = "Kptfile"
_PLAIN = (REGULAR, EXECUTABLE)


def changed_files(one: Contents, other: Contents) -> list[str]:
    """Return the sorted paths of files whose bytes or modes differ, or that only one package has."""
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def edited_files(origin: Contents, local: Contents) -> list[str]:
    """Return the sorted paths of files that somebody edited since ``local`` was copied from ``origin``.

    In YAML the layout and merge keys do not count, nor in Kptfiles comments and render status, nor in the
    root's upstream, lock and name. A root Kptfile that only one side has counts unless it is as empty
    as a generated one.

    Source: ``kpt.md`` 3.9 and 3.10.
    """
    return [path for path in changed_files(origin, local) if _is_edited(path, origin.get(path), local.get(path))]


def patch(one: Contents, other: Contents) -> Iterator[str]:
    """Yield the lines of a patch that turns ``one`` into ``other``, in the form ``git diff`` has.

    Binary files, links among them, are named only. Lines end as those of the files do.
    """
    for path in changed_files(one, other):
        yield from _file_patch(path, one.get(path), other.get(path))


def _is_edited(path: str, before: File | None, after: File | None) -> bool:
    if path.rpartition("/")[2] == "Kptfile":
        return _kptfile_is_edited(path, before, after)
    if before is None or after is None or before.mode != after.mode or before.mode not in _PLAIN:
        return True
    return not path.endswith((".yaml", ".yml")) or _has_edited_documents(before.data, after.data)


def _has_edited_documents(before: bytes, after: bytes) -> bool:
    try:
        files = [read_file(data)[1] for data in (before, after)]
        documents = [[document for document in file if document.data is not None] for file in files]
        return len(documents[0]) != len(documents[1]) or not all(map(is_unedited, *documents))
    except YamlError:
        return True


def _kptfile_is_edited(path: str, before: File | None, after: File | None) -> bool:
    is_root = path == _ROOT
    facts = []
    for file in (before, after):
        try:
            facts.append(None if file is None else _edited_facts(file.data, is_root=is_root))
        except KptfileError:
            return True
    if is_root:
        facts = [{} if fact is None else fact for fact in facts]
    return facts[0] != facts[1]


def _edited_facts(data: bytes, *, is_root: bool) -> dict[str, Any]:
    """Return what people write in a Kptfile; nothing is left of one that was generated."""
    facts = dict(parse_kptfile(data).raw)
    metadata = dict(facts.pop("metadata", None) or {})
    status = dict(facts.pop("status", None) or {})
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != UPSTREAM_IDENTIFIER}
    status.pop("renderStatus", None)
    conditions = [one for one in status.pop("conditions", None) or () if one and one.get("type") != _RENDERED]
    ignored = {"apiVersion", "kind"} | ({"upstream", "upstreamLock"} if is_root else set())
    if is_root:
        metadata.pop("name", None)
    facts = {key: value for key, value in facts.items() if key not in ignored}
    facts |= {"metadata": metadata, "annotations": annotations, "status": status, "conditions": conditions}
    return {key: value for key, value in facts.items() if value}


def _file_patch(path: str, before: File | None, after: File | None) -> Iterator[str]:
    yield f"diff --git a/{path} b/{path}\n"
    yield from _mode_lines(before, after)
    old, new = _lines(before), _lines(after)
    source = f"a/{path}" if before else "/dev/null"
    target = f"b/{path}" if after else "/dev/null"
    if old is None or new is None:
        if before is None or after is None or before.data != after.data:
            yield f"Binary files {source} and {target} differ\n"
        return
    if old == new:
        return
    yield f"--- {source}\n"
    yield f"+++ {target}\n"
    for line in _hunks(old, new):
        yield line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"


def _mode_lines(before: File | None, after: File | None) -> Iterator[str]:
    if before is None and after is not None:
        yield f"new file mode {after.mode:o}\n"
    elif after is None and before is not None:
        yield f"deleted file mode {before.mode:o}\n"
    elif before and after and before.mode != after.mode:
        yield f"old mode {before.mode:o}\n"
        yield f"new mode {after.mode:o}\n"


def _lines(file: File | None) -> list[str] | None:
    """Return the lines with their ends, None when the file is not text."""
    if file is None:
        return []
    if file.mode not in _PLAIN or b"\0" in file.data:
        return None
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the hunks of a unified diff, three lines of context."""
    if max(len(old), len(new)) <= _MOST_COMPARED_LINES:
        yield from list(difflib.unified_diff(old, new))[2:]
        return
    start, end = _equal_ends(old, new)
    from_line, to_line = max(start - 3, 0), max(end - 3, 0)
    before, after = old[from_line : len(old) - to_line], new[from_line : len(new) - to_line]
    if max(len(before), len(after)) <= _MOST_COMPARED_LINES:
        for line in list(difflib.unified_diff(before, after))[2:]:
            yield _moved(line, from_line) if line.startswith("@@") else line
        return
    yield f"@@ -{_range(from_line, len(before))} +{_range(from_line, len(after))} @@\n"
    yield from (" " + line for line in before[: start - from_line])
    tail = end - to_line
    yield from ("-" + line for line in before[start - from_line : len(before) - tail])
    yield from ("+" + line for line in after[start - from_line : len(after) - tail])
    yield from (" " + line for line in before[len(before) - tail :])


def _equal_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _moved(header: str, lines: int) -> str:
    """Return a hunk's header ``lines`` further down."""
    ranges = []
    for part in header.split()[1:3]:
        first, _, count = part[1:].partition(",")
        ranges.append(f"{part[0]}{int(first) + lines}" + (f",{count}" if count else ""))
    return f"@@ {ranges[0]} {ranges[1]} @@\n"


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"

"""How porchctl prints what it got: a table of the server's, or columns and paths of objects."""

from typing import Any

import yaml

from krm.meta.jsonpath import compile_path

COLUMNS = {"name": "Package", "revision": "Revision", "workspace": "WorkspaceName"}
FIELDS = {"name": "packageName", "revision": "revision", "workspace": "workspaceName"}
GAP = "   "


def printed(found: list[Any], output: str, *, headers: bool = True, wanted: dict[str, str] | None = None) -> list[str]:
    """Return the lines of one list or of single objects, of those that have the ``wanted`` name, revision and workspace."""
    if not output:
        return _table(found, wanted or {})
    listed = [item for answer in found for item in answer.get("items", [answer])]
    items = [item for item in listed if _has(item["spec"], wanted or {})]
    form, _, argument = output.partition("=")
    if form == "custom-columns":
        columns = [column.partition(":") for column in argument.split(",")]
        rows = [[_cell(item, path) for _, _, path in columns] for item in items]
        return aligned([[name for name, _, _ in columns]] if headers else [], rows)
    if form == "jsonpath":
        return ["".join(_cell(item, argument.strip("{}")) for item in items)]
    return yaml.safe_dump_all(items).splitlines()


def _has(spec: dict[str, Any], wanted: dict[str, str]) -> bool:
    return all(str(spec.get(FIELDS[key], 0 if key == "revision" else "")) == value for key, value in wanted.items())


def _table(answers: list[Any], wanted: dict[str, str]) -> list[str]:
    columns = [column["name"] for column in answers[0]["columnDefinitions"] if not column["priority"]]
    rows = [row["cells"] for answer in answers for row in answer["rows"]]
    places = {columns.index(COLUMNS[key]): value for key, value in wanted.items()}
    kept = [row for row in rows if all(str(row[at]) == value for at, value in places.items())]
    if not kept:
        return []
    return aligned([[column.upper() for column in columns]], [[_text(cell) for cell in row] for row in kept])


def _cell(item: Any, path: str) -> str:
    found = compile_path(path).find(item)
    return ",".join(_text(value) for value in found) if found else "<none>"


def _text(value: Any) -> str:
    return "<none>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def aligned(headers: list[list[str]], rows: list[list[str]]) -> list[str]:
    lines = [*headers, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))] if lines else []
    return [GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]

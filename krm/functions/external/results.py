"""What functions report, in the one form that everything behind them expects. Source: ``kpt.md`` 2.9."""

from collections.abc import Mapping
from typing import Any

from krm.package.yaml_edit_text import new_document

MAX_RESULTS = 10_000
"""Of one call; more are left out, and a last result says so."""

Json = dict[str, Any]


def uplifted(results: Any) -> list[Json]:
    """Return ``results`` of a ResourceList as a list of results with the fields of today.

    Reads the list of today and the mapping of older functions (``{name, items}``), and fields under their
    older names. What has no meaning here is left out.
    """
    if isinstance(results, dict):
        results = results.get("items")
    if not isinstance(results, list):
        return []
    found = [_result(result) for result in results[:MAX_RESULTS] if isinstance(result, dict)]
    if len(results) > MAX_RESULTS:
        left_out = f"{len(results) - MAX_RESULTS} more results are left out"
        found.append({"message": left_out, "severity": "warning"})
    return found


def _result(raw: Json) -> Json:
    fields = {
        "message": _text(raw.get("message")),
        "severity": _text(raw.get("severity")),
        "resourceRef": _reference(_mapping(raw.get("resourceRef"))),
        "field": _field(_mapping(raw.get("field"))),
        "file": _file(_mapping(raw.get("file"))),
        "tags": {key: _text(value) for key, value in _mapping(raw.get("tags")).items()},
    }
    return {key: value for key, value in fields.items() if value or key == "message"}


def _reference(raw: Mapping[str, Any]) -> Json:
    metadata = _mapping(raw.get("metadata"))
    flat = {**raw, **{key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}}
    return {key: _text(flat[key]) for key in ("apiVersion", "kind", "name", "namespace") if flat.get(key)}


def _field(raw: Mapping[str, Any]) -> Json:
    found = {"path": _text(raw["path"])} if raw.get("path") else {}
    proposed = raw.get("proposedValue", raw.get("suggestedValue"))
    for name, value in (("currentValue", raw.get("currentValue")), ("proposedValue", proposed)):
        if value is not None:
            found[name] = _text(value)
    return found


def _file(raw: Mapping[str, Any]) -> Json:
    found: Json = {"path": _text(raw["path"])} if raw.get("path") else {}
    if isinstance(raw.get("index"), int) and raw["index"]:
        found["index"] = raw["index"]
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """Return a string as it is, anything else as its YAML text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else new_document(value).removesuffix("...\n").strip()

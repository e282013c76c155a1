"""How the server's answer to a save of files becomes ``renderStatus`` of a target. Source: ``variants.md`` 1.3, 2.13, R7."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from krm.meta.errors import Invalid
from krm.variants.conditions import MOST_CHARACTERS, shortened

Json = dict[str, Any]

NOT_RENDERED: Final[Json] = {"error": "", "result": {"exitCode": 0}}
"""Of a target whose files the controller did not write."""
MOST_ITEMS: Final = 20
"""Functions that the status tells of."""
MOST_BYTES: Final = 16 * 1024
"""Of all that functions say in one status, as JSON."""
MOST_IMAGE: Final = 256
"""Characters of a function's name."""

_FILES: Final = "spec.resources"
_FUNCTION: Final = "FunctionFailed"


def render_status_of(saved: Json) -> Json:
    """Return what the answer to a save that was rendered says."""
    rendered = (saved.get("status") or {}).get("renderStatus") or {}
    result = rendered.get("result") or {}
    told: Json = {"exitCode": result.get("exitCode") or 0}
    if items := _bounded(result.get("items") or ()):
        told["items"] = items
    return {"error": shortened(rendered.get("error") or ""), "result": told}


def render_status_of_error(error: Invalid) -> Json:
    """Return what the refusal of a save says: the error, and each function that failed."""
    items = [{"exitCode": 1, "stderr": shortened(cause.message)} for cause in error.causes if cause.reason == _FUNCTION]
    result: Json = {"exitCode": 1}
    if items := _bounded(items):
        result["items"] = items
    return {"error": shortened(str(error)), "result": result}


def _bounded(items: Sequence[Json]) -> list[Json]:
    """Return as much of what functions said as fits, in their order; one that says too much is told of in short."""
    kept: list[Json] = []
    left = MOST_BYTES
    for item in items[:MOST_ITEMS]:
        told = item if len(orjson.dumps(item)) <= MOST_CHARACTERS else _in_short(item)
        left -= len(orjson.dumps(told))
        if left < 0:
            break
        kept.append(told)
    return kept


def _in_short(item: Json) -> Json:
    """Say which function it was, whether it failed, and the beginning of what it said."""
    results = item.get("results") or [{}]
    said = str(item.get("stderr") or results[0].get("message") or "")
    parts = {
        "image": shortened(str(item.get("image") or ""), MOST_IMAGE),
        "exitCode": item.get("exitCode") or 0,
        "stderr": shortened(said, MOST_CHARACTERS // 4),
    }
    return {key: value for key, value in parts.items() if value != ""}


def is_about_files(error: Invalid) -> bool:
    """Whether a refusal is for the files or their render, rather than for the state that the revision is in."""
    fields = [cause.field for cause in error.causes]
    functions = any(cause.reason == _FUNCTION for cause in error.causes)
    return functions or not fields or any(field.startswith(_FILES) for field in fields)

"""Merge patch (RFC 7386) and JSON patch (RFC 6902) on decoded objects.

Neither changes its arguments, and results share nothing with the patch: a patch may be applied
again to fresher state. Strategic merge is ``strategic.py``. Source: ``kube-api.md`` 1.2 and 2.9.
"""

import copy
from collections.abc import Sequence
from typing import Any, Final

import jsonpatch
import jsonpointer
import orjson

from krm.meta.errors import RequestEntityTooLarge, Unprocessable

Json = dict[str, Any]

MAX_OPERATIONS: Final = 10_000
"""Operations in one JSON patch; more are answered with 413, as the API server does."""
COPY_BUDGET: Final = 3 * 1024 * 1024
"""Bytes that all ``copy`` operations of one patch may add: copies of copies grow exponentially."""

_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_NEEDS_VALUE: Final = frozenset({"add", "replace", "test"})
_NEEDS_FROM: Final = frozenset({"move", "copy"})


def merge_patch(target: Json, patch: Json) -> Json:
    """Return ``target`` with ``patch`` merged in: null deletes, arrays replace."""
    merged = dict(target)
    for key, wanted in patch.items():
        if wanted is None:
            merged.pop(key, None)
        elif isinstance(wanted, dict):
            present = merged.get(key)
            merged[key] = merge_patch(present if isinstance(present, dict) else {}, wanted)
        else:
            merged[key] = copy.deepcopy(wanted)
    return merged


def json_patch(target: Json, operations: Sequence[Any]) -> Json:
    """Return ``target`` with the operations applied, in order; all of them or none.

    Raises:
        Unprocessable: an operation is malformed, a path is missing, or a ``test`` failed.
        RequestEntityTooLarge: over 10,000 operations, or copies add more than 3 MiB.
    """
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    checked = [_check(operation) for operation in operations]
    document: Any = copy.deepcopy(target)
    budget = COPY_BUDGET
    for operation in checked:
        if operation["op"] == "copy":
            budget -= _copied_bytes(document, operation["from"])
            if budget < 0:
                raise RequestEntityTooLarge(f"the JSON patch copies more than {COPY_BUDGET} bytes")
        document = _apply(document, _adding(document, operation))
    if not isinstance(document, dict):
        raise Unprocessable
    return document


def unknown_members(operations: Sequence[Any]) -> list[str]:
    """Name the members of the operations that RFC 6902 does not know, as paths."""
    known = {"op", "path", "from", "value"}
    return [
        f"[{index}].{member}"
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for member in operation
        if member not in known
    ]


def _check(operation: Any) -> Json:
    name = operation.get("op") if isinstance(operation, dict) else None
    if not isinstance(name, str) or name not in _OPERATIONS:
        raise Unprocessable
    _check_pointer(operation.get("path"))
    if name in _NEEDS_VALUE and "value" not in operation:
        raise Unprocessable
    if name in _NEEDS_FROM:
        _check_pointer(operation.get("from"))
    return dict(operation)


def _check_pointer(pointer: Any) -> None:
    if not isinstance(pointer, str):
        raise Unprocessable
    try:
        jsonpointer.JsonPointer(pointer)
    except jsonpointer.JsonPointerException as error:
        raise Unprocessable from error


def _copied_bytes(document: Any, pointer: str) -> int:
    try:
        return len(orjson.dumps(jsonpointer.resolve_pointer(document, pointer)))
    except jsonpointer.JsonPointerException as error:
        raise Unprocessable from error


def _adding(document: Any, operation: Json) -> Json:
    """Return an ``add`` for a ``replace`` of a member that is missing from its object: kube-apiserver takes it for one."""
    if operation["op"] != "replace":
        return operation
    *parents, member = jsonpointer.JsonPointer(operation["path"]).parts or [""]
    parent = jsonpointer.JsonPointer.from_parts(parents).resolve(document, None)
    missing = isinstance(parent, dict) and bool(operation["path"]) and member not in parent
    return {**operation, "op": "add"} if missing else operation


def _apply(document: Any, operation: Json) -> Any:
    operation = {**operation, "value": copy.deepcopy(operation["value"])} if "value" in operation else operation
    try:
        return jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise Unprocessable from error
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        # What the library lets through when a path leads into a string or a number.
        raise Unprocessable from error

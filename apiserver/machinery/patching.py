"""A PATCH body as a change of the stored object: parsed once, applied again whenever another writer was first.

Source: ``kube-api.md`` 1.9 and 2.9.
"""

from typing import Any

import orjson

from apiserver.machinery.apply.reading import APPLY_PATCH
from apiserver.machinery.decode import Body, Parsed, admit_patched, parse_json, unreadable
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.patch import json_patch, merge_patch, unknown_members
from apiserver.machinery.rest import Change, WriteOptions
from apiserver.machinery.schema import CompiledSchema
from apiserver.machinery.strategic import strategic_merge
from krm.meta.errors import BadRequest, Cause, Invalid, UnsupportedMediaType

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


def read_patch(body: Body, definition: Definition, schema: CompiledSchema, options: WriteOptions) -> Change:
    """Return the change that a patch asks for; its result fits the kind.

    Calling it twice repeats no warning.

    Raises:
        UnsupportedMediaType: a patch format that the kind does not take.
        BadRequest: the patch cannot be parsed.
    """
    merge = _merge_of(body, definition)
    parsed = _parsed(body, definition)
    _report(_oddities(parsed, body), options)

    def change(current: Json) -> Json:
        again = WriteOptions(field_validation=options.field_validation)
        wanted = admit_patched(merge(current, parsed.value), definition, schema, again)
        options.warnings.extend(text for text in again.warnings if text not in options.warnings)
        return wanted

    return change


def _merge_of(body: Body, definition: Definition) -> Any:
    if body.media_type == JSON_PATCH:
        return json_patch
    if body.media_type == MERGE_PATCH:
        return merge_patch
    strategic = definition.strategic or definition.strategic_unlisted
    if body.media_type == STRATEGIC_PATCH and strategic:
        return lambda current, patch: strategic_merge(current, patch, definition.merge_keys)
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_PATCH] if strategic else []), APPLY_PATCH]
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def _parsed(body: Body, definition: Definition) -> Parsed:
    try:
        parsed = parse_json(body.data)
    except orjson.JSONDecodeError as error:
        raise unreadable(body.data, definition.kind, str(error)) from error
    wanted = list if body.media_type == JSON_PATCH else dict
    if not isinstance(parsed.value, wanted):
        shape = "a list of operations" if wanted is list else "an object"
        raise BadRequest(f"a patch of type {body.media_type} must be {shape}")
    return parsed


def _oddities(parsed: Parsed, body: Body) -> list[str]:
    problems = [f'duplicate field "{path}"' for path in parsed.duplicates]
    if body.media_type == JSON_PATCH:
        problems += [f'json patch unknown field "{path}"' for path in unknown_members(parsed.value)]
    return problems


def _report(problems: list[str], options: WriteOptions) -> None:
    if problems and options.field_validation == "Strict":
        message = f"Invalid value: strict decoding error: {', '.join(problems)}"
        raise Invalid.of("", "", "", [Cause("FieldValueInvalid", message, "patch")])
    if options.field_validation == "Warn":
        options.warnings.extend(problems)

"""The body of an apply: a configuration as YAML or JSON, and the change of the object that it asks for.

Source: ``kube-api.md`` 1.9 and 2.10.
"""

import asyncio
from typing import Any, Final

import orjson

from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.decode import MAX_DEPTH, Body, Parsed, parse_json
from apiserver.machinery.rest import Change, WriteOptions
from apiserver.machinery.yaml_body import YamlRefused, parse_yaml
from krm.meta.errors import BadRequest

Json = dict[str, Any]

APPLY_PATCH: Final = "application/apply-patch+yaml"


async def read_apply(body: Body, ownership: Ownership, options: WriteOptions) -> Change:
    """Return the change that applying a body makes; it may also be made of nothing ({}).

    Calling it twice repeats no warning.

    Raises:
        BadRequest: the body is no object, in YAML or JSON, or does not fit the kind.
    """
    parsed = await _parsed(body)
    config: Json = parsed.value
    ownership.check(config)
    problems = [f'duplicate field "{path}"' for path in parsed.duplicates]

    def change(current: Json) -> Json:
        obj = ownership.apply(current, config, options)
        if problems and options.field_validation == "Strict":
            raise BadRequest(f"error strict decoding YAML: {', '.join(problems)}")
        if options.field_validation == "Warn":
            options.warnings.extend(text for text in problems if text not in options.warnings)
        return obj

    return change


async def _parsed(body: Body) -> Parsed:
    try:
        # Clients mostly send JSON under the name of YAML, which is far slower to read.
        parsed = parse_json(body.data)
    except orjson.JSONDecodeError:
        try:
            value, duplicates = await asyncio.to_thread(parse_yaml, body.data, MAX_DEPTH)
        except YamlRefused as error:
            raise BadRequest(f"error decoding YAML: {error}") from error
        parsed = Parsed({} if value is None else value, tuple(duplicates))
    if not isinstance(parsed.value, dict):
        raise BadRequest(f"error decoding YAML: a configuration is an object, not {type(parsed.value).__name__}")
    return parsed

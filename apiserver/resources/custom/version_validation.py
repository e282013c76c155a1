"""Checks of one version of a CustomResourceDefinition: name, deprecation, schema, columns, fields, scale.

Pure. Source: ``kube-api.md`` 2.15.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from apiserver.machinery.definition import Json, Schema
from krm.meta.errors import Cause, invalid_value, required_value
from krm.meta.jsonpath import JsonPathError, compile_path
from krm.meta.names import dns_1035_problem

COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "name", "password")
MAX_SELECTABLE: Final = 8
"""Selectable fields of one version."""
MAX_WARNING: Final = 256
"""Characters of a deprecation warning."""
_SELECTABLE_TYPES: Final = ("string", "integer", "boolean")
_SIMPLE_PATH: Final = re.compile(r"(\.[A-Za-z_][-A-Za-z0-9_]*)+")


def version_causes(version: Json, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a version; ``path`` is where it stands."""
    name = version.get("name") or ""
    if not name:
        yield required_value(f"{path}.name")
    elif problem := dns_1035_problem(name):
        yield invalid_value(f"{path}.name", name[:512], problem)
    yield from _deprecation_causes(version, path)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield required_value(f"{path}.schema.openAPIV3Schema", "schemas are required")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column_causes(column, f"{path}.additionalPrinterColumns[{index}]")
    yield from _selectable_causes(version.get("selectableFields") or (), schema or {}, f"{path}.selectableFields")
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from _scale_causes(scale, f"{path}.subresources.scale")


def _deprecation_causes(version: Json, path: str) -> Iterator[Cause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    field = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid_value(field, warning[:512], "can only be set for deprecated versions")
    elif not warning:
        yield invalid_value(field, warning, "must not be empty")
    elif len(warning) > MAX_WARNING:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {MAX_WARNING} bytes", field)
    elif not warning.isprintable():
        yield invalid_value(field, warning, "must only contain printable UTF-8 characters")


def _column_causes(column: Json, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield required_value(f"{path}.name")
    type_ = column.get("type") or ""
    one_of = f"must be one of {','.join(COLUMN_TYPES)}"
    if not type_:
        yield required_value(f"{path}.type", one_of)
    elif type_ not in COLUMN_TYPES:
        yield invalid_value(f"{path}.type", type_[:512], one_of)
    format_ = column.get("format") or ""
    if format_ and format_ not in COLUMN_FORMATS:
        yield invalid_value(f"{path}.format", format_[:512], f"must be one of {','.join(COLUMN_FORMATS)}")
    text = column.get("jsonPath") or ""
    if not text:
        yield required_value(f"{path}.jsonPath")
        return
    try:
        compile_path(text)
    except JsonPathError as error:
        yield invalid_value(f"{path}.jsonPath", text[:512], str(error))


def _selectable_causes(fields: Sequence[Json], schema: Schema, path: str) -> Iterator[Cause]:
    if len(fields) > MAX_SELECTABLE:
        detail = f"Too many: {len(fields)}: must have at most {MAX_SELECTABLE} items"
        yield Cause("FieldValueTooMany", detail, path)
        return
    seen: set[str] = set()
    for index, field in enumerate(fields):
        text, where = field.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not text:
            yield required_value(where)
        elif text in seen:
            yield Cause("FieldValueDuplicate", f'Duplicate value: "{text}"', where)
        elif problem := _selectable_problem(text, schema):
            yield invalid_value(where, text[:512], problem)
        seen.add(text)


def _selectable_problem(text: str, schema: Schema) -> str:
    if not _SIMPLE_PATH.fullmatch(text):
        return "is an invalid path: only a simple path of field names, such as .spec.color, can be selected"
    if text.startswith(".metadata"):
        return "must not point to fields in metadata"
    node: Any = schema
    for name in text[1:].split("."):
        node = (node.get("properties") or {}).get(name)
        if not isinstance(node, dict):
            return "is an invalid path: does not refer to a valid field"
    if node.get("type") not in _SELECTABLE_TYPES:
        return "must point to a field of type string, boolean or integer"
    return ""


def _scale_causes(scale: Json, path: str) -> Iterator[Cause]:
    for key, roots, required in (
        ("specReplicasPath", (".spec",), True),
        ("statusReplicasPath", (".status",), True),
        ("labelSelectorPath", (".spec", ".status"), False),
    ):
        text = scale.get(key) or ""
        where = f"{path}.{key}"
        if not text:
            if required:
                yield required_value(where)
        elif not _SIMPLE_PATH.fullmatch(text):
            detail = "is an invalid path: only a simple path of field names, without list notation, is allowed"
            yield invalid_value(where, text[:512], detail)
        elif not any(text.startswith(f"{root}.") for root in roots):
            allowed = " or ".join(roots)
            yield invalid_value(where, text, f"should be a json path under {allowed}")

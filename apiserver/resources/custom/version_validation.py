"""Checks of the versions of a CustomResourceDefinition: names, deprecation, columns, selectable fields, scale.

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
MAX_COLUMNS: Final = 64
"""Columns of one version; each costs an evaluation for every object printed."""
MAX_SELECTABLE: Final = 8
"""Selectable fields of one version."""
MAX_WARNING: Final = 256
"""Characters of a deprecation warning."""
_SELECTABLE_TYPES: Final = ("string", "integer", "boolean")
_SIMPLE_PATH: Final = re.compile(r"(\.[A-Za-z_][-A-Za-z0-9_]*)+")


def version_causes(version: Json, path: str) -> Iterator[Cause]:
    """Yield what is wrong with what a version has for itself; ``path`` is where it stands."""
    name = version.get("name") or ""
    if not name:
        yield required_value(f"{path}.name")
    elif problem := dns_1035_problem(name):
        yield invalid_value(f"{path}.name", name[:512], problem)
    yield from _deprecation_causes(version, path)
    if (version.get("schema") or {}).get("openAPIV3Schema") is None:
        yield required_value(f"{path}.schema.openAPIV3Schema")


def parts_causes(versions: Sequence[Json]) -> Iterator[Cause]:
    """Yield what is wrong with columns, selectable fields and subresources.

    What is the same in all versions is checked once and stands, as in kube-apiserver, at ``spec`` itself.
    """
    for key, check in (
        ("additionalPrinterColumns", _column_causes),
        ("selectableFields", _selectable_causes),
        ("subresources", _subresource_causes),
    ):
        shared = all(version.get(key) == versions[0].get(key) for version in versions)
        for index, version in enumerate(versions[:1] if shared else versions):
            if version.get(key):
                yield from check(version, f"spec.{key}" if shared else f"spec.versions[{index}].{key}")


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


def _column_causes(version: Json, path: str) -> Iterator[Cause]:
    columns = version["additionalPrinterColumns"]
    if len(columns) > MAX_COLUMNS:
        yield Cause("FieldValueTooMany", f"Too many: {len(columns)}: must have at most {MAX_COLUMNS} items", path)
        return
    for index, column in enumerate(columns):
        yield from _one_column_causes(column, f"{path}[{index}]")


def _one_column_causes(column: Json, path: str) -> Iterator[Cause]:
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
        yield required_value(f"{path}.JSONPath")
    elif problem := _path_problem(text):
        yield invalid_value(f"{path}.JSONPath", text[:512], problem)


def _path_problem(text: str) -> str:
    if not text.startswith("."):
        return "must be a simple json path starting with ."
    try:
        compile_path(text)
    except JsonPathError as error:
        return str(error)
    return ""


def _selectable_causes(version: Json, path: str) -> Iterator[Cause]:
    fields = version["selectableFields"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
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


def _subresource_causes(version: Json, path: str) -> Iterator[Cause]:
    scale = version["subresources"].get("scale")
    if scale is None:
        return
    for key, roots, allowed in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".status.", ".spec."), "either .status or .spec"),
    ):
        text = scale.get(key) or ""
        where = f"{path}.scale.{key}"
        if not text:
            if key != "labelSelectorPath":
                yield required_value(where)
        elif not _SIMPLE_PATH.fullmatch(text):
            yield invalid_value(where, text[:512], "must be a simple json path starting with .")
        elif not text.startswith(roots):
            yield invalid_value(where, text, f"should be a json path under {allowed}")

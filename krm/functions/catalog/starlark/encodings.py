"""The modules ``encoding/*.star`` and ``hash.star``. Source: ``kpt.md`` 4.9.

Upstream's are starlib's and Starlark's own: the names and what they return are theirs.
"""

import base64
import csv
import hashlib
import io
import json
from typing import Any

from krm.functions.catalog.starlark.library import Library, LibraryError

_ALTERED = {"standard": b"+/", "url": b"-_"}
"""The last two characters of each alphabet."""


def _base64_encode(text: str, encoding: str) -> str:
    encoded = base64.b64encode(text.encode(), altchars=_altered(encoding)).decode()
    return encoded.rstrip("=") if encoding.endswith("_raw") else encoded


def _base64_decode(text: str, encoding: str) -> str:
    padded = text + "=" * (-len(text) % 4) if encoding.endswith("_raw") else text
    try:
        return base64.b64decode(padded, altchars=_altered(encoding), validate=True).decode()
    except ValueError as error:
        raise LibraryError(f"base64.decode: {error}") from None


def _altered(encoding: str) -> bytes:
    altered = _ALTERED.get(encoding.removesuffix("_raw"))
    if altered is None:
        raise LibraryError(f"base64: unknown encoding {encoding}; there are standard, standard_raw, url and url_raw")
    return altered


BASE64 = Library(
    """
def _encode(src, encoding="standard"):
    return _base64_encode(src, encoding)

def _decode(src, encoding="standard"):
    return _base64_decode(src, encoding)

base64 = struct(encode=_encode, decode=_decode)
""",
    {"_base64_encode": _base64_encode, "_base64_decode": _base64_decode},
)


def _csv_read(source: str, comma: str, comment: str, skip: int, fields: int) -> list[list[str]]:
    lines = source.splitlines(keepends=True)
    if comment:
        lines = [line for line in lines if not line.startswith(comment)]
    try:
        rows = [row for row in csv.reader(lines, delimiter=comma, strict=True) if row][skip:]
    except (csv.Error, TypeError) as error:
        raise LibraryError(f"csv.read_all: {error}") from None
    wanted = fields or (len(rows[0]) if rows else 0)
    if fields >= 0 and any(len(row) != wanted for row in rows):
        raise LibraryError("csv.read_all: wrong number of fields")
    return rows


def _csv_write(rows: list[list[Any]], comma: str) -> str:
    text = io.StringIO()
    try:
        csv.writer(text, delimiter=comma, lineterminator="\n").writerows(rows)
    except (csv.Error, TypeError) as error:
        raise LibraryError(f"csv.write_all: {error}") from None
    return text.getvalue()


CSV = Library(
    """
def _read_all(source, comma=",", comment="", lazy_quotes=False, trim_leading_space=False, fields_per_record=0, skip=0):
    rows = _csv_read(source, comma, comment, skip, fields_per_record)
    return [[cell.lstrip() for cell in row] for row in rows] if trim_leading_space else rows

def _write_all(source, comma=","):
    return _csv_write([[cell if type(cell) == "string" else str(cell) for cell in row] for row in source], comma)

csv = struct(read_all=_read_all, write_all=_write_all)
""",
    {"_csv_read": _csv_read, "_csv_write": _csv_write},
)


def _json_encode(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _json_decode(text: str) -> list[Any]:
    """Return the value and an error's text: a script may ask for a default instead of the error."""
    try:
        return [json.loads(text), ""]
    except (ValueError, RecursionError) as error:
        return [None, f"json.decode: {error}"]


def _refuse(problem: str) -> None:
    raise LibraryError(problem)


def _json_indent(text: str, prefix: str, indent: str) -> str:
    value, problem = _json_decode(text)
    if problem:
        raise LibraryError(problem.replace("decode", "indent", 1))
    lines = json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", ": ")).split("\n")
    return f"\n{prefix}".join(lines)


JSON = Library(
    """
_NO_DEFAULT = struct()

def _decode(x, default=_NO_DEFAULT):
    value, problem = _json_decode(x)
    if problem == "":
        return value
    return _refuse(problem) if default == _NO_DEFAULT else default

def _indent(str, prefix="", indent="\\t"):
    return _json_indent(str, prefix, indent)

json = struct(decode=_decode, loads=_decode, encode=_json_encode, dumps=_json_encode, indent=_indent)
""",
    {"_json_encode": _json_encode, "_json_decode": _json_decode, "_json_indent": _json_indent, "_refuse": _refuse},
)


def _yaml_loads(text: str) -> Any:
    from krm.package.yaml_reader import YamlError, read_documents  # costs start-up time, and few scripts need it

    try:
        documents = read_documents(text)
    except YamlError as error:
        raise LibraryError(f"yaml.loads: {error}") from None
    return documents[0] if documents else None


def _yaml_dumps(value: Any) -> str:
    from krm.package.yaml_edit_text import new_document

    return new_document(_sorted(value)).removesuffix("...\n")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


YAML = Library(
    "yaml = struct(loads=_yaml_loads, decode=_yaml_loads, dumps=_yaml_dumps, encode=_yaml_dumps)\n",
    {"_yaml_loads": _yaml_loads, "_yaml_dumps": _yaml_dumps},
)


def _digest(name: str) -> Any:
    return lambda text: hashlib.new(name, str(text).encode(), usedforsecurity=False).hexdigest()


HASH = Library(
    "hash = struct(md5=_md5, sha1=_sha1, sha256=_sha256, sha512=_sha512)\n",
    {f"_{name}": _digest(name) for name in ("md5", "sha1", "sha256", "sha512")},
)

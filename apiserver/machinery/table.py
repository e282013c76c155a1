"""Objects as Table rows and as metadata only, built from stored bytes once and then cached on the item.

A cached row is cut where a date stands, since "5m" is true for a moment only: serving it puts the ages between the
pieces, without copying these. Source: ``kube-api.md`` 1.8.
"""

import re
import time
from datetime import UTC, datetime
from enum import StrEnum

import orjson

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.rest import Item
from krm.meta.errors import BadRequest

_METADATA_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'
# Cells are scalars, so this byte sequence cannot stand inside them: quotes in strings are escaped.
_BEFORE_OBJECT = b'],"object":'
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
# Below how many seconds a duration is said in which unit, and what remains in which (the same: nothing).
_STEPS = (
    (120, "s", "s"),
    (600, "m", "s"),
    (3 * 3600, "m", "m"),
    (8 * 3600, "h", "m"),
    (48 * 3600, "h", "h"),
    (8 * 86_400, "d", "h"),
    (2 * 365 * 86_400, "d", "d"),
    (8 * 365 * 86_400, "y", "d"),
)
_DATE_MARK = re.compile(rb'"\\u0000date:([^"\\]*)"')


class Include(StrEnum):
    """What a row carries beside its cells."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"

    @classmethod
    def parse(cls, text: str) -> "Include":
        """Read the ``includeObject`` parameter.

        Raises:
            BadRequest: it is none of the three words.
        """
        try:
            return cls(text or "Metadata")
        except ValueError as error:
            why = f"Invalid value: \"{text[:64]}\": must be 'Metadata', 'Object', 'None', or empty"
            raise BadRequest(f"Unable to convert to Table as requested: includeObject: {why}") from error


class ShownItem:
    """What is left of an item whose row or metadata was made: its body is not held any longer."""

    __slots__ = ("body", "name", "namespace", "partial", "row", "rv")

    def __init__(self, item: Item) -> None:
        self.rv = item.rv
        self.body = b""
        self.row = item.row
        self.partial = item.partial
        self.namespace = item.namespace
        self.name = item.name


class Columns:
    """The printer columns of a kind; makes rows and tables."""

    def __init__(self, definition: Definition) -> None:
        columns = definition.columns or (_AGE,)
        if all(column.name != "Name" for column in columns):
            columns = (_NAME, *columns)
        self._columns = columns
        self.count = len(columns)
        self.header = orjson.dumps([_column_json(column) for column in columns])

    def row(self, item: Item) -> tuple[bytes, ...]:
        """Return the row with the metadata in it: text and timestamps in turn; decodes the object only once."""
        if item.row is None:
            decoded = orjson.loads(item.body)
            cells = orjson.dumps([self._cell(column, decoded) for column in self._columns])
            *before, last = _DATE_MARK.split(b'{"cells":' + cells[:-1])
            item.row = (*before, last + _BEFORE_OBJECT + _metadata_of(decoded) + b"}")
        return item.row

    def add_shown(self, pieces: list[bytes], item: Item, include: Include, moment: "Moment") -> None:
        """Append the row as it is sent, in pieces."""
        row = item.row or self.row(item)
        for index in range(0, len(row) - 1, 2):
            pieces += (row[index], moment[row[index + 1]])
        if include is Include.METADATA:
            pieces.append(row[-1])
            return
        pieces.append(row[-1][: row[-1].index(_BEFORE_OBJECT)])
        pieces += (_BEFORE_OBJECT, item.body if include is Include.OBJECT else b"null", b"}")

    def shown(self, item: Item, include: Include, moment: "Moment") -> bytes:
        """Return the row as it is sent."""
        pieces: list[bytes] = []
        self.add_shown(pieces, item, include, moment)
        return b"".join(pieces)

    def _cell(self, column: Column, decoded: Json) -> object:
        value = column.value(decoded)
        if column.type == "date" and isinstance(value, str):
            return f"\0date:{value}"
        return value if value is None or isinstance(value, str | int | float) else str(value)


def metadata_only(item: Item, version: str = "v1") -> bytes:
    """Return the item as PartialObjectMetadata of meta.k8s.io/``version``."""
    if item.row is not None:
        end = item.row[-1]
        found = end[end.index(_BEFORE_OBJECT) + len(_BEFORE_OBJECT) : -1]
    else:
        if item.partial is None:
            item.partial = _metadata_of(orjson.loads(item.body))
        found = item.partial
    return found if version == "v1" else found.replace(b"meta.k8s.io/v1", b"meta.k8s.io/" + version.encode(), 1)


def table_head(metadata: bytes, header: bytes, version: str = "v1") -> bytes:
    """Return the beginning of a Table up to its rows; ``]}`` ends it."""
    return b'{"kind":"Table","apiVersion":"meta.k8s.io/%b","metadata":%b,"columnDefinitions":%b,"rows":[' % (
        version.encode(),
        metadata,
        header,
    )


class Moment(dict[bytes, bytes]):
    """Ages at one moment, as JSON: timestamp → ``"5m"``; each is worked out once, since many objects share theirs."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = int(seconds)

    def __missing__(self, timestamp: bytes) -> bytes:
        age = self[timestamp] = b'"%b"' % _age(timestamp, self._seconds)
        return age


def now() -> Moment:
    """Return the moment that ages are counted to."""
    return Moment(time.time())


def human_duration(seconds: float) -> str:
    """Say a duration as kubectl's columns do: two units at most, coarser the longer it is."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    for limit, unit, small_unit in _STEPS:
        if total < limit:
            size, small_size = _SECONDS[unit], _SECONDS[small_unit]
            rest = total % size // small_size
            return (
                f"{total // size}{unit}{rest}{small_unit}" if rest and unit != small_unit else f"{total // size}{unit}"
            )
    return f"{total // _SECONDS['y']}y"


def _age(text: bytes, moment: int) -> bytes:
    """Return the age of a timestamp at ``moment``, in seconds since the epoch."""
    try:
        then = datetime.fromisoformat(text.decode())
    except ValueError:
        return b"<unknown>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return human_duration(moment - then.timestamp()).encode()


def _metadata_of(decoded: Json) -> bytes:
    return _METADATA_HEAD + orjson.dumps(decoded.get("metadata") or {}) + b"}"


def _column_json(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.told_type or column.type,
        "format": column.format or ("name" if column.name == "Name" else ""),
        "description": column.description,
        "priority": column.priority,
    }


_NAME = Column("Name", "string", lambda obj: obj["metadata"].get("name"), "Name of the object.", format="name")
_AGE = Column("Age", "date", lambda obj: obj["metadata"].get("creationTimestamp"), "Time since the object was created.")

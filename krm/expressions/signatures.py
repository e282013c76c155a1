"""Which types the functions of expressions take and give; ``*`` is any type, ``item`` what the list or map holds."""

from collections.abc import Mapping
from typing import Final

from krm.expressions.types import DYN, Type, accepts

Signature = tuple[tuple[str, ...], str]
"""The arguments, the owner of a method first, and the result."""

_ANY: Final = "*"
_SIZED: Final = ("string", "bytes", "list", "map")
_TIME_PARTS: Final = (
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
)


def _parse(*lines: str) -> tuple[Signature, ...]:
    """Read signatures like ``string string -> bool``."""
    read = []
    for line in lines:
        arguments, _, result = line.partition(" -> ")
        read.append((tuple(arguments.split()), result))
    return tuple(read)


FUNCTIONS: Final[Mapping[str, tuple[Signature, ...]]] = {
    "size": _parse(*(f"{sized} -> int" for sized in _SIZED)),
    "int": _parse(*(f"{kind} -> int" for kind in ("int", "uint", "double", "string", "timestamp"))),
    "uint": _parse(*(f"{kind} -> uint" for kind in ("int", "uint", "double", "string"))),
    "double": _parse(*(f"{kind} -> double" for kind in ("int", "uint", "double", "string"))),
    "bool": _parse("bool -> bool", "string -> bool"),
    "string": _parse(
        *(
            f"{kind} -> string"
            for kind in ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration", "ip", "cidr")
        )
    ),
    "bytes": _parse("bytes -> bytes", "string -> bytes"),
    "dyn": _parse("* -> dyn"),
    "type": _parse("* -> type"),
    "timestamp": _parse("string -> timestamp", "timestamp -> timestamp", "int -> timestamp"),
    "duration": _parse("string -> duration", "duration -> duration", "int -> duration"),
    "matches": _parse("string string -> bool"),
    "ip": _parse("string -> ip"),
    "cidr": _parse("string -> cidr"),
    "url": _parse("string -> url"),
    "quantity": _parse("string -> quantity"),
    "semver": _parse("string -> semver"),
    **{name: _parse("string -> bool") for name in ("isIP", "isCIDR", "isURL", "isQuantity", "isSemver")},
}
_COMPARED: Final = ("quantity", "semver")
METHODS: Final[Mapping[str, tuple[Signature, ...]]] = {
    "size": FUNCTIONS["size"],
    "contains": _parse("string string -> bool"),
    "startsWith": _parse("string string -> bool"),
    "endsWith": _parse("string string -> bool"),
    "matches": _parse("string string -> bool"),
    "find": _parse("string string -> string"),
    "findAll": _parse("string string -> list", "string string int -> list"),
    "lowerAscii": _parse("string -> string"),
    "upperAscii": _parse("string -> string"),
    "trim": _parse("string -> string"),
    "charAt": _parse("string int -> string"),
    "replace": _parse("string string string -> string", "string string string int -> string"),
    "split": _parse("string string -> list", "string string int -> list"),
    "substring": _parse("string int -> string", "string int int -> string"),
    "format": _parse("string list -> string"),
    "indexOf": _parse("string string -> int", "string string int -> int", "list item -> int"),
    "lastIndexOf": _parse("string string -> int", "string string int -> int", "list item -> int"),
    "isSorted": _parse("list -> bool"),
    "sum": _parse("list -> item"),
    "min": _parse("list -> item"),
    "max": _parse("list -> item"),
    "join": _parse("list -> string", "list string -> string"),
    "hasValue": _parse("optional_type -> bool"),
    "value": _parse("optional_type -> item"),
    "orValue": _parse("optional_type * -> item"),
    "or": _parse("optional_type optional_type -> optional_type"),
    "ip": _parse("cidr -> ip"),
    "family": _parse("ip -> int"),
    **{
        name: _parse("ip -> bool")
        for name in (
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        )
    },
    "containsIP": _parse("cidr ip -> bool", "cidr string -> bool"),
    "containsCIDR": _parse("cidr cidr -> bool", "cidr string -> bool"),
    "masked": _parse("cidr -> cidr"),
    "prefixLength": _parse("cidr -> int"),
    **{name: _parse("url -> string") for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")},
    "getQuery": _parse("url -> map"),
    "isInteger": _parse("quantity -> bool"),
    "asInteger": _parse("quantity -> int"),
    "asApproximateFloat": _parse("quantity -> double"),
    "add": _parse("quantity quantity -> quantity", "quantity int -> quantity"),
    "sub": _parse("quantity quantity -> quantity", "quantity int -> quantity"),
    **{
        name: _parse(*(f"{kind} {kind} -> {result}" for kind in _COMPARED))
        for name, result in (("isLessThan", "bool"), ("isGreaterThan", "bool"), ("compareTo", "int"))
    },
    **{part: _parse("semver -> int") for part in ("major", "minor", "patch")},
    **{part: _parse("timestamp -> int", "timestamp string -> int") for part in _TIME_PARTS[:6]},
    **{part: _parse("timestamp -> int", "timestamp string -> int", "duration -> int") for part in _TIME_PARTS[6:]},
}
NAMESPACES: Final[Mapping[str, Mapping[str, tuple[Signature, ...]]]] = {
    "sets": {name: _parse("list list -> bool") for name in ("contains", "equivalent", "intersects")},
    "optional": {
        "of": _parse("* -> optional_type"),
        "none": _parse(" -> optional_type"),
        "ofNonZeroValue": _parse("* -> optional_type"),
    },
    "ip": {"isCanonical": _parse("string -> bool")},
}
_NUMERIC: Final = ("int", "uint", "double", "duration", "dyn")


def result_of(name: str, signatures: tuple[Signature, ...], arguments: list[Type]) -> Type | None:
    """Return what a call gives, or None if no signature takes these arguments."""
    owner = arguments[0] if arguments else DYN
    if name == "sum" and owner.item is not None and owner.item.name not in _NUMERIC:
        return None
    for wanted, result in signatures:
        if len(wanted) == len(arguments) and all(
            _takes(kind, given, owner) for kind, given in zip(wanted, arguments, strict=True)
        ):
            return _result(result, owner)
    return None


def _takes(kind: str, given: Type, owner: Type) -> bool:
    if kind == "item":
        return owner.item is None or accepts(owner.item, given)
    return kind == _ANY or accepts(Type(kind), given)


def _result(kind: str, owner: Type) -> Type:
    return (owner.item or DYN) if kind == "item" else Type(kind)

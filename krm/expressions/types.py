"""The types that expressions are checked against before they are ever evaluated."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Optional

Members = Callable[[str], Optional["Type"]]


@dataclass(frozen=True, slots=True)
class Type:
    """A type; ``dyn`` is anything."""

    name: str
    item: Optional["Type"] = None
    """What a list holds, or the values of a map."""
    members: Members | None = field(default=None, compare=False)
    """The fields of an object, by the name that they are written with."""

    def __str__(self) -> str:
        if self.name == "list":
            return f"list({self.item or DYN})"
        if self.name == "map":
            return f"map(string, {self.item or DYN})"
        return _SHOWN.get(self.name, self.name)


_SHOWN: Final = {
    "null_type": "null",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "url": "kubernetes.URL",
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
}
DYN: Final = Type("dyn")
BOOL: Final = Type("bool")
INT: Final = Type("int")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
NULL: Final = Type("null_type")


def accepts(wanted: Type, given: Type) -> bool:
    """Tell whether a value of a type may stand where another type is wanted."""
    if "dyn" in (wanted.name, given.name):
        return True
    if given.name == "null_type" and wanted.name not in ("bool", "int", "uint", "double", "string", "bytes"):
        return True
    if wanted.name != given.name:
        return False
    return wanted.item is None or given.item is None or accepts(wanted.item, given.item)


def joined(left: Type, right: Type) -> Type:
    """Return the type of a value that is one of two."""
    return left if left == right else DYN

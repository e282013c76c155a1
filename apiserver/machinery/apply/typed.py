"""What field ownership needs to know of a kind: which parts are owned as a whole, and how list items are told apart.

Compiled once from the kind's structural schema. Parts that the schema leaves open are typed by their values: maps
entry by entry, lists as a whole. Source: ``kube-api.md`` 2.10.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from apiserver.machinery.apply import field_set

Json = dict[str, Any]
Schema = dict[str, Any]


class Shape(Enum):
    """How a part of an object is owned."""

    LEAF = "leaf"
    """As a whole: scalars, lists and maps that are atomic."""
    MAP = "map"
    """Field by field, or entry by entry."""
    SET = "set"
    """A list whose items are scalars, each once."""
    LIST_MAP = "list map"
    """A list of objects that some of their fields tell apart."""
    OPEN = "open"
    """Not said by the schema: whatever the value is."""


@dataclass(slots=True)
class Type:
    """One node of a kind, as ownership sees it."""

    shape: Shape
    fields: Mapping[str, "Type"] = field(default_factory=dict)
    """Declared fields of a map."""
    element: "Type | None" = None
    """Entries of a map that are not declared (None: there are none), or items of a list."""
    keys: tuple[str, ...] = ()
    """The fields that tell the items of a list map apart."""
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    """What keys are where an item does not say."""


OPEN: Final = Type(Shape.OPEN)
LEAF: Final = Type(Shape.LEAF)
TEXT: Final = Type(Shape.LEAF)
_TEXTS: Final = Type(Shape.MAP, element=TEXT)
OBJECT_META: Final = Type(
    Shape.MAP,
    {
        **dict.fromkeys(
            (
                "name",
                "generateName",
                "namespace",
                "selfLink",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "managedFields",
            ),
            LEAF,
        ),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": Type(Shape.SET, element=TEXT),
        "ownerReferences": Type(Shape.LIST_MAP, element=LEAF, keys=("uid",), key_defaults={"uid": ""}),
    },
)
"""Metadata of every kind; an owner reference is owned as a whole, so that nobody changes half of it."""


class KeyMissing(ValueError):
    """An item of a list map lacks a key that has no default."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f'associative list with keys has an element that omits key field "{key}" (and doesn\'t have default value)'
        )


def compile_type(schema: Schema) -> Type:
    """Return the type of a kind from the schema of its whole object; ``metadata`` is ObjectMeta, whatever it says."""
    root = _compile(schema)
    return Type(Shape.MAP, {**root.fields, **_envelope()}, root.element)


def _envelope() -> dict[str, Type]:
    return {"apiVersion": TEXT, "kind": TEXT, "metadata": OBJECT_META}


def _compile(schema: Schema) -> Type:
    type_ = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        return LEAF
    if type_ == "array":
        return _compile_list(schema)
    if type_ == "object" or "properties" in schema:
        return _compile_map(schema)
    return LEAF if type_ else OPEN


def _compile_list(schema: Schema) -> Type:
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    items = schema.get("items") or {}
    if list_type == "set":
        return Type(Shape.SET, element=_compile(items))
    if list_type == "map":
        keys = tuple(sorted(schema.get("x-kubernetes-list-map-keys") or ()))
        properties = items.get("properties") or {}
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
        return Type(Shape.LIST_MAP, element=_compile(items), keys=keys, key_defaults=defaults)
    return LEAF


def _compile_map(schema: Schema) -> Type:
    if schema.get("x-kubernetes-map-type") == "atomic":
        return LEAF
    fields = {name: _compile(below) for name, below in (schema.get("properties") or {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        fields |= _envelope()
    return Type(Shape.MAP, fields, _entries(schema, bool(fields)))


def _entries(schema: Schema, has_fields: bool) -> Type | None:
    """Return the type of what is not declared."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return _compile(additional)
    if additional or schema.get("x-kubernetes-preserve-unknown-fields") or not has_fields:
        return OPEN
    return None


def shape_of(value: Any, type_: Type) -> Shape:
    """Return how a value of this type is owned.

    An open type follows the value, and a value that does not fit its type (stored under another schema) is one whole.
    """
    shape = type_.shape
    if shape is Shape.LEAF:
        return shape
    if isinstance(value, dict):
        return Shape.MAP if shape in (Shape.MAP, Shape.OPEN) else Shape.LEAF
    if isinstance(value, list):
        return shape if shape in (Shape.SET, Shape.LIST_MAP) else Shape.LEAF
    return shape if value is None and shape is not Shape.OPEN else Shape.LEAF


def entry_type(type_: Type, name: str) -> Type:
    """Return the type of a field of a map, or of an entry."""
    return type_.fields.get(name) or type_.element or OPEN


def item_type(type_: Type) -> Type:
    """Return the type of the items of a list."""
    return type_.element or OPEN


def steps_of(items: list[Any], type_: Type, shape: Shape) -> list[str]:
    """Return the step to each item of a set or a list map.

    Items without their keys, which only objects stored under another schema can have, are told apart by position.
    """
    steps: list[str] = []
    for position, item in enumerate(items):
        try:
            steps.append(step_of(item, type_, shape))
        except KeyMissing:
            steps.append(field_set.index(position))
    return steps


def step_of(item: Any, type_: Type, shape: Shape) -> str:
    """Return the step to one item of a set or a list map.

    Raises:
        KeyMissing: a key is neither there nor has a default.
    """
    if shape is Shape.SET:
        return field_set.member(item)
    found: Json = {}
    for key in type_.keys:
        value = item.get(key) if isinstance(item, dict) else None
        if value is None:
            value = type_.key_defaults.get(key)
        if value is None:
            raise KeyMissing(key)
        found[key] = value
    return field_set.keyed(found)

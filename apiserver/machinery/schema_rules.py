"""The rules of a structural schema whose breach makes an object Invalid (422).

Required fields, enums, patterns, bounds and formats, and the combinations allOf, anyOf, oneOf and not; of custom
resources types too. The wording is kube-apiserver's for custom resources, which clients compare. With an older object,
what is wrong and unchanged is let pass (ratcheting). Source: ``kube-api.md`` 2.15 and 2.17.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from apiserver.machinery.field_path import CauseAt, Problem, at_index, at_name
from apiserver.machinery.schema_breaches import (
    bad_factor,
    in_body,
    junction,
    not_among,
    number_text,
    too_long,
    too_many,
    wrong_format,
    wrong_type,
)
from apiserver.machinery.schema_correlation import ABSENT, older_field, older_items, same
from apiserver.machinery.schema_node import Node
from krm.meta.errors import required_value

Problems = list[Problem[CauseAt]]

_SAFE_INTEGER: Final = 2**53
"""From here on a number with a fraction part in its text is no integer to kube-apiserver."""

_COMPARED: Final = 1000
"""Items that ``uniqueItems`` compares with one another; only built-in kinds may have it."""
_TOLERANCE: Final = 1e-9
"""Share by which a quotient may miss a whole number."""


def rule_problems(value: Any, node: Node, old: Any = ABSENT) -> Problems:
    """Return every broken rule of a value and of what is below it; ``old`` is what stood there before the update."""
    found: Problems = []
    if node.custom and (type_ := _wrong_type(value, node)):
        found.append(((), wrong_type(type_, value)))
    if node.branches and value is not None:
        found += _branch_problems(value, node)
    if node.own_rules or node.checks_format is not None:
        found += [((), cause) for cause in _own_problems(value, node)]
    if isinstance(value, dict):
        _object_problems(value, node, old, found)
    elif isinstance(value, list):
        _list_problems(value, node, old, found)
    if found and old is not ABSENT and same(value, old, node):
        return []
    return found


def _wrong_type(value: Any, node: Node) -> str:
    """Return the type that the value should have and has not, or nothing."""
    wanted = node.type_name
    if not wanted or type(value) is node.python_type or (value is None and node.nullable):
        return "integer" if type(value) is int and wanted == "integer" and not -(2**63) <= value < 2**63 else ""
    if wanted == "int-or-string":
        return "" if isinstance(value, str) or _is_integer(value) else "integer,string"
    if wanted == "integer" and _is_integer(value):
        return ""
    return "" if wanted == "number" and type(value) is int else wanted


def _is_integer(value: Any) -> bool:
    if type(value) is float:
        return value.is_integer() and abs(value) < _SAFE_INTEGER
    return type(value) is int


def _object_problems(value: dict[str, Any], node: Node, old: Any, found: Problems) -> None:
    properties, additional = node.properties, node.additional
    for name, child_value in value.items():
        child = properties.get(name, additional)
        if child is None or not child.has_rules or (child_value is None and not child.custom):
            continue
        if child.passes is not None and child.passes(child_value):
            continue
        if below := rule_problems(child_value, child, ABSENT if old is ABSENT else older_field(old, name)):
            found += [((at_name(name), *path), cause) for path, cause in below]
    for name in node.required:
        if name not in value:
            found.append(((at_name(name),), required_value))


def _list_problems(value: list[Any], node: Node, old: Any, found: Problems) -> None:
    items = node.items
    if items is not None and items.has_rules:
        olds = older_items(value, old, node) if old is not ABSENT else None
        for index, item in enumerate(value):
            if items.passes is not None and items.passes(item):
                continue
            if below := rule_problems(item, items, olds[index] if olds else ABSENT):
                found += [((at_index(index), *path), cause) for path, cause in below]
    if not node.own_rules:
        return
    found += [((), cause) for cause in _count_problems(len(value), node.schema, "Items", "items")]
    if node.schema.get("uniqueItems") and _repeats(value):
        found.append(((), in_body("", "shouldn't contain duplicates")))


def _own_problems(value: Any, node: Node) -> Iterator[CauseAt]:
    if isinstance(value, str):
        yield from _string_problems(value, node)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, node.schema)
    elif isinstance(value, dict):
        yield from _count_problems(len(value), node.schema, "Properties", "properties")
    enum = node.schema.get("enum")
    if enum and not among(value, enum):
        yield not_among(value, enum)


def _repeats(value: list[Any]) -> bool:
    return any(among(item, value[:index]) for index, item in enumerate(value[:_COMPARED]))


def among(value: Any, options: list[Any]) -> bool:
    """Tell whether the value is among ``options``; ``true`` is not ``1``.

    As in kube-apiserver, of a number only the whole part is compared with options that are whole.
    """
    if type(value) is float:
        return any(int(value) == option if type(option) is int else value == option for option in options)
    return any(option == value and isinstance(option, bool) is isinstance(value, bool) for option in options)


def _string_problems(value: str, node: Node) -> Iterator[CauseAt]:
    schema = node.schema
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield too_long(longest)
    elif shortest is not None and len(value) < shortest:
        yield in_body(value, f"should be at least {shortest} chars long")
    elif node.pattern is not None and not node.pattern.search(value):
        yield in_body(value, f"should match '{schema['pattern']}'")
    if node.checks_format is not None and not node.checks_format(value):
        yield wrong_format(node.format, value)


def _number_problems(value: float, schema: Mapping[str, Any]) -> Iterator[CauseAt]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if type(value) is int:
        # kube-apiserver compares integers with the whole part of a bound.
        low, high, step = (None if bound is None else int(bound) for bound in (low, high, step))
    if step is not None and step <= 0:
        yield bad_factor(step)
    elif step is not None and not _is_multiple(value, step):
        yield in_body(value, f"should be a multiple of {number_text(step)}")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        yield in_body(value, f"should be greater than {_or_equal(schema, 'exclusiveMinimum')}{number_text(low)}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        yield in_body(value, f"should be less than {_or_equal(schema, 'exclusiveMaximum')}{number_text(high)}")


def _or_equal(schema: Mapping[str, Any], exclusive: str) -> str:
    return "" if schema.get(exclusive) else "or equal to "


def _is_multiple(value: float, step: float) -> bool:
    if type(value) is int and type(step) is int:
        return value % step == 0
    quotient = value / step if step >= 1 else (1 / step) * value
    whole = math.trunc(quotient) if math.isfinite(quotient) else quotient
    return quotient == whole or abs(quotient - whole) / (abs(quotient) + abs(whole)) < _TOLERANCE


def _count_problems(count: int, schema: Mapping[str, Any], keyword: str, what: str) -> Iterator[CauseAt]:
    fewest, most = schema.get(f"min{keyword}"), schema.get(f"max{keyword}")
    if fewest is not None and count < fewest:
        yield in_body(count, f"should have at least {fewest} {what}")
    if most is not None and count > most:
        yield too_many(count, most)


def _branch_problems(value: Any, node: Node) -> Problems:
    """Check anyOf, oneOf, allOf and not; of alternatives that all fail, the one that goes deepest is reported too."""
    found: Problems = []
    outcomes = {key: [rule_problems(value, branch) for branch in branches] for key, branches in node.branches.items()}
    failed = {key: [problems for problems in outcome if problems] for key, outcome in outcomes.items()}
    for key, text in (("anyOf", "at least one schema (anyOf)"), ("oneOf", "one and only one schema (oneOf)")):
        if key not in outcomes:
            continue
        valid = len(outcomes[key]) - len(failed[key])
        if valid == 0:
            tail = ". Found none valid" if key == "oneOf" else ""
            found += [
                ((), junction(f"must validate {text}{tail}")),
                *_closest(value, node.branches[key], outcomes[key]),
            ]
        elif valid > 1 and key == "oneOf":
            found.append(((), junction(f"must validate {text}. Found {valid} valid alternatives")))
    if failed.get("allOf"):
        found += [problem for problems in failed["allOf"] for problem in problems]
        tail = ". None validated" if len(failed["allOf"]) == len(outcomes["allOf"]) else ""
        found.append(((), junction(f"must validate all the schemas (allOf){tail}")))
    if "not" in outcomes and not failed["not"]:
        found.append(((), junction("must not validate the schema (not)")))
    return found


def _closest(value: Any, branches: list[Node], outcomes: list[Problems]) -> Problems:
    """Return the problems of the branch that has most to say about the value; the first among equals."""
    best = max(range(len(branches)), key=lambda index: (_reach(value, branches[index]), -index))
    return outcomes[best]


def _reach(value: Any, node: Node) -> int:
    reached = 1 + sum(_reach(value, branch) for branches in node.branches.values() for branch in branches)
    if isinstance(value, dict):
        reached += sum(_reach(value[name], child) for name, child in node.properties.items() if name in value)
    elif isinstance(value, list) and (items := node.items) is not None:
        reached += sum(_reach(item, items) for item in value)
    return reached

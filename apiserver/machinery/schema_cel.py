"""CEL rules of schemas (``x-kubernetes-validations``): evaluated wherever a value that has some stands.

Rules with ``oldSelf`` (transition rules) run only on updates, where the older value is found by name or list-map key. A
rule without it is not held against a value that an update leaves as it was. Wording is kube-apiserver's.
Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from apiserver.machinery.field_path import NO_FIELD, at_index, at_key, at_name, path_text
from apiserver.machinery.schema_cel_values import cel_type, cel_value
from apiserver.machinery.schema_correlation import ABSENT, older_field, older_items, same
from apiserver.machinery.schema_node import Node
from apiserver.machinery.schema_rule_path import rule_path
from apiserver.machinery.schema_types import json_type
from krm.expressions.cel import (
    Budget,
    CelBudgetError,
    CelError,
    CelEvaluationError,
    CelSyntaxError,
    Expression,
    compile_expression,
)
from krm.expressions.types import Type
from krm.expressions.values import NONE, OptionalValue
from krm.meta.errors import Cause

Json = dict[str, Any]

MAX_STEPS: Final = 250_000
"""Steps that all rules of one object may take together; a step takes a few microseconds."""
MAX_MESSAGE: Final = 5 * 1024
"""Bytes of a message that an expression makes; a longer one is not used."""


class Rule:
    """One rule of a schema; compiled when it is first needed."""

    def __init__(self, node: Node, stated: Json) -> None:
        self.stated = stated
        self.node = node
        self.optional = bool(stated.get("optionalOldSelf"))
        self._compiled: Expression | None = None
        self._message: Expression | None = None

    @property
    def text(self) -> str:
        """The rule as messages show it."""
        return str(self.stated.get("rule") or "").strip()

    def expression(self) -> Expression:
        """Compile the rule.

        Raises:
            CelSyntaxError: it does not compile.
        """
        if self._compiled is None:
            self._compiled = compile_expression(self.stated.get("rule") or "", (), self._types())
        return self._compiled

    def message_expression(self) -> Expression | None:
        """Compile the expression that makes the message, if there is one.

        Raises:
            CelSyntaxError: it does not compile.
        """
        text = self.stated.get("messageExpression") or ""
        if self._message is None and text.strip():
            self._message = compile_expression(text, (), self._types())
        return self._message

    def _types(self) -> dict[str, Type]:
        own = cel_type(self.node)
        return {"self": own, "oldSelf": Type("optional_type", own) if self.optional else own}


@dataclass(frozen=True, slots=True)
class _Frame:
    """A value on the way down, with the older value in its place."""

    value: Any
    old: Any
    node: Node
    path: tuple[str, ...]
    parent: "_Frame | None"

    def below(self, value: Any, old: Any, node: Node, piece: str) -> "_Frame":
        return _Frame(value, old, node, (*self.path, piece), self)

    def unchanged(self) -> bool:
        """Tell whether an update left this value, or one that holds it, as it was."""
        frame: _Frame | None = self
        while frame is not None:
            if frame.old is not ABSENT and same(frame.value, frame.old, frame.node):
                return True
            frame = frame.parent
        return False


class SchemaRules:
    """All rules of one schema."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._rules: dict[int, list[Rule]] = {}
        _collect(root, self._rules)

    def __bool__(self) -> bool:
        return self._root.ruled

    def causes(self, obj: Any, old: Any = ABSENT, path: str = "") -> list[Cause]:
        """Return a cause per failed rule; ``path`` is where the object stands, if it is part of another."""
        if not self._root.ruled:
            return []
        budget = Budget(MAX_STEPS)
        found: list[Cause] = []
        try:
            for frame in self._due(_Frame(obj, old, self._root, (path,) if path else (), None)):
                seen = _Seen(frame)
                for rule in self._rules[id(frame.node)]:
                    found += _outcome(frame, rule, seen, budget)
        except _Stopped as stopped:
            found.append(stopped.cause)
        return found

    def _due(self, frame: _Frame) -> Iterator[_Frame]:
        """Yield the values that have rules, from the top down."""
        if not frame.node.ruled or frame.value is None:
            return
        if id(frame.node) in self._rules:
            yield frame
        if isinstance(frame.value, dict):
            for name, child in frame.value.items():
                known = name in frame.node.properties
                node = frame.node.properties.get(name, frame.node.additional)
                if node is not None and node.ruled:
                    piece = at_name(name) if known else at_key(name)
                    yield from self._due(frame.below(child, older_field(frame.old, name), node, piece))
        elif isinstance(frame.value, list) and frame.node.items is not None:
            olds = older_items(frame.value, frame.old, frame.node)
            for index, item in enumerate(frame.value):
                old = olds[index] if olds else ABSENT
                yield from self._due(frame.below(item, old, frame.node.items, at_index(index)))


class _Stopped(Exception):
    """The budget is spent: no further rule is evaluated."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.message)
        self.cause = cause


def _collect(node: Node, rules: dict[int, list[Rule]]) -> None:
    if not node.ruled:
        return
    if stated := node.schema.get("x-kubernetes-validations"):
        rules[id(node)] = [Rule(node, one) for one in stated]
    for child in (*node.properties.values(), node.additional, node.items):
        if child is not None:
            _collect(child, rules)


class _Seen:
    """What the rules of one value see of it and of the older one; converted when the first rule asks."""

    def __init__(self, frame: _Frame) -> None:
        self._frame = frame

    @cached_property
    def value(self) -> Any:
        return cel_value(self._frame.value, self._frame.node)

    @cached_property
    def old(self) -> Any:
        return cel_value(self._frame.old, self._frame.node)


def _outcome(frame: _Frame, rule: Rule, seen: _Seen, budget: Budget) -> list[Cause]:
    """Evaluate one rule; return its cause if it does not hold."""
    try:
        expression = rule.expression()
        if "oldSelf" in expression.names and frame.old is ABSENT and not rule.optional:
            return []
        variables = _variables(frame, rule, seen, expression)
        held = expression.evaluate(variables, budget)
    except CelSyntaxError as error:
        detail = f"rule compile error: compilation failed: {error.pointing(rule.stated.get('rule') or '')}"
        return [_invalid(frame, detail)]
    except CelEvaluationError as error:
        failed = [_invalid(frame, f"{error} evaluating rule: {_stated_message(rule) or rule.text}")]
    except CelBudgetError as error:
        detail = (
            "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost "
            f"exceeds limit for rule: {rule.text}"
        )
        raise _Stopped(_invalid(frame, detail)) from error
    else:
        if held is True:
            return []
        failed = [_failed(frame, rule, variables, budget)]
    return [] if "oldSelf" not in expression.names and frame.unchanged() else failed


def _variables(frame: _Frame, rule: Rule, seen: _Seen, expression: Expression) -> dict[str, Any]:
    variables = {"self": seen.value}
    if "oldSelf" in expression.names:
        present = frame.old is not ABSENT
        if rule.optional:
            variables["oldSelf"] = OptionalValue(seen.old, present=True) if present else NONE
        else:
            variables["oldSelf"] = seen.old
    return variables


def _failed(frame: _Frame, rule: Rule, variables: dict[str, Any], budget: Budget) -> Cause:
    message = _made_message(rule, variables, budget) or _stated_message(rule) or f"failed rule: {rule.text}"
    pieces = rule_path(frame.node.schema, rule.stated.get("fieldPath") or "") or ()
    field = path_text((*frame.path, *pieces)) or NO_FIELD
    reason = rule.stated.get("reason") or "FieldValueInvalid"
    texts = {
        "FieldValueForbidden": f"Forbidden: {message}",
        "FieldValueRequired": f"Required value: {message}",
        "FieldValueDuplicate": f'Duplicate value: "{json_type(frame.value)}"',
    }
    return Cause(reason, texts.get(reason, f'Invalid value: "{json_type(frame.value)}": {message}'), field)


def _stated_message(rule: Rule) -> str:
    return str(rule.stated.get("message") or "").strip()


def _made_message(rule: Rule, variables: dict[str, Any], budget: Budget) -> str:
    """Return what the message expression makes, or nothing if it fails or makes what is no message."""
    try:
        expression = rule.message_expression()
        made = expression.evaluate(variables, budget) if expression is not None else ""
    except CelError:
        return ""
    text = made.strip() if isinstance(made, str) else ""
    return "" if "\n" in text or "\r" in text or len(text.encode()) > MAX_MESSAGE else text


def _invalid(frame: _Frame, detail: str) -> Cause:
    message = f'Invalid value: "{json_type(frame.value)}": {detail}'
    return Cause("FieldValueInvalid", message, path_text(frame.path) or NO_FIELD)

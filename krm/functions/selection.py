"""Which resources a step of a pipeline sees. Source: ``kpt.md`` 2.6."""

from collections.abc import Mapping
from typing import Any

from krm.functions.resource import Resource
from krm.package.kptfile import Function, Selector
from krm.package.resource_identity import annotations_of

_EMPTY = Selector()


def selected(items: list[Resource], function: Function) -> list[Resource]:
    """Return what the step sees, each resource once: any selector matches (or there is none), no exclusion does.

    Without selectors and exclusions that is ``items`` itself.
    """
    exclusions = [exclusion for exclusion in function.exclude if exclusion != _EMPTY]
    chosen = items
    if function.selectors:
        chosen = [item for item in chosen if any(_matches(item.data, selector) for selector in function.selectors)]
    if exclusions:
        chosen = [item for item in chosen if not any(_matches(item.data, exclusion) for exclusion in exclusions)]
    return chosen


def _matches(data: dict[str, Any], selector: Selector) -> bool:
    """Compare every field that the selector gives, exactly."""
    if selector.api_version and selector.api_version != _text(data.get("apiVersion")):
        return False
    if selector.kind and selector.kind != _text(data.get("kind")):
        return False
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    if selector.name and selector.name != _text(metadata.get("name")):
        return False
    if selector.namespace and selector.namespace != _text(metadata.get("namespace")):
        return False
    if selector.labels and not _includes(metadata.get("labels"), selector.labels):
        return False
    return not selector.annotations or _includes(annotations_of(data), selector.annotations)


def _includes(values: Any, wanted: Mapping[str, str]) -> bool:
    if not isinstance(values, dict):
        return False
    return all(key in values and _text(values[key]) == value for key, value in wanted.items())


def _text(value: Any) -> Any:
    """Return a scalar as the text a selector would give for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value

"""Whether rendered specs can be worked on, and their digests: at the speed of thousands of specs from one template.

Source: ``variants.md`` 3.3 (checks afterwards), 1.2; C-36.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from krm.meta.names import (
    LABEL_LENGTH,
    SUBDOMAIN_LENGTH,
    dns_label_problem,
    label_value_problem,
    qualified_name_problem,
)
from krm.variants import validation
from krm.variants.sets.specs import canonical, canonical_digest
from krm.variants.sets.template import Template, TemplateError
from krm.variants.vocabulary import LATEST_LABEL, RESERVED_CONTEXT_KEYS

Json = dict[str, Any]

_SHOWN: Final = 100
"""Characters of a name that a message repeats."""
_RESERVED: Final = frozenset(RESERVED_CONTEXT_KEYS)
_PACKAGE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:/[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
"""Names of which no part can be too long, being short as a whole."""
_LONG: Final = LABEL_LENGTH + 1 + SUBDOMAIN_LENGTH
"""Characters of a key; longer ones are not valid, nor worth being remembered."""


def repository_problem(name: str) -> str:
    """Return what is wrong with the name of a repository, a DNS label; empty if nothing is."""
    return _name_problem("repository", name, [name])


def package_problem(name: str) -> str:
    """Return what is wrong with the name of a package, DNS labels with slashes between; empty if nothing is."""
    if len(name) <= LABEL_LENGTH and _PACKAGE.fullmatch(name):
        return ""
    return _name_problem("package", name, name.split("/"))


def _name_problem(what: str, name: str, labels: Iterable[str]) -> str:
    for label in labels:
        if problem := dns_label_problem(label[: LABEL_LENGTH + 1]):
            shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
            return f'{what} name "{shown}" is invalid: {problem}'
    return ""


class SpecChecks:
    """What specs of one template have in common is looked at once."""

    def __init__(self, upstream: Json, template: Template | None) -> None:
        changing = [name for name, _ in template.sections] if template else []
        self._constants = canonical({"upstream": upstream, **(template.constants if template else {})})
        self._source = upstream.get("repo"), upstream.get("package")
        self._changing = [(name, _LOOKS_VALID[name]) for name in changing]
        self._constants_are_valid = False

    def check(self, spec: Json) -> None:
        """Check the package's name, and a spec by the rules of a PackageVariant.

        Raises:
            TemplateError: something is wrong with it.
        """
        if problem := package_problem(spec["downstream"]["package"]):
            raise TemplateError(problem)
        if self._constants_are_valid and self._looks_valid(spec):
            return
        if found := validation.problems({"spec": spec}):
            raise TemplateError("; ".join(found))
        self._constants_are_valid = True

    def digest(self, spec: Json) -> str:
        """Return ``specs.spec_digest`` of a spec."""
        kept = self._constants.copy()
        kept["downstream"] = spec["downstream"]
        for name, _ in self._changing:
            part = spec[name]
            if part := _CANONICAL[name](part) if name in _CANONICAL else part:
                kept[name] = part
        return canonical_digest(kept)

    def _looks_valid(self, spec: Json) -> bool:
        """Tell whether what expressions gave is surely valid; what may be wrong is for the rules to say.

        The names of repository and package were checked when they were found.
        """
        downstream = spec["downstream"]
        if downstream["package"] == self._source[1] and downstream["repo"] == self._source[0]:
            return False
        return all(looks_valid(spec[name]) for name, looks_valid in self._changing)


def _labels_look_valid(labels: Mapping[str, str]) -> bool:
    return (
        LATEST_LABEL not in labels
        and all(map(_key_is_valid, labels))
        and not any(map(label_value_problem, labels.values()))
    )


def _annotations_look_valid(annotations: Mapping[str, str]) -> bool:
    return all(map(_key_is_valid, map(str.lower, annotations)))


def _context_looks_valid(context: Json) -> bool:
    data, removed = context.get("data") or {}, context.get("removeKeys") or ()
    return _RESERVED.isdisjoint(data) and _RESERVED.isdisjoint(removed)


def _injectors_look_valid(injectors: list[Json]) -> bool:
    return all(one["name"] for one in injectors)


_LOOKS_VALID: Final[Mapping[str, Callable[[Any], bool]]] = {
    "labels": _labels_look_valid,
    "annotations": _annotations_look_valid,
    "packageContext": _context_looks_valid,
    "injectors": _injectors_look_valid,
    "pipeline": lambda _pipeline: True,  # expressions give texts, and a configMap may have any
}
_CANONICAL: Final[Mapping[str, Callable[[Any], Any]]] = {
    "packageContext": lambda context: {name: part for name, part in context.items() if part},
    "pipeline": canonical,
}
"""Changing parts that can hold what says nothing; maps and lists that are rendered never do."""


def _key_is_valid(key: str) -> bool:
    return len(key) <= _LONG and _short_key_is_valid(key)


@lru_cache(maxsize=4096)
def _short_key_is_valid(key: str) -> bool:
    return not qualified_name_problem(key)

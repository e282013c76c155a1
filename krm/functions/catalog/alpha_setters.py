"""Setters as kpt had them before v1: OpenAPI definitions in the Kptfile, JSON in comments. Source: ``kpt.md`` 4.17."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from krm.functions.catalog.setter_comments import SetterError
from krm.functions.catalog.source_nodes import scalar_texts

_SETTER = "io.k8s.cli.setters."
_SUBSTITUTION = "io.k8s.cli.substitutions."
_REFERENCE = "#/definitions/"
_COMMENT_KEYS = ("$kpt-set", "$openapi")
_LONGEST_COMMENT = 4096
"""Characters of a comment that is looked into."""
_LONGEST_PATTERN = 1 << 16
"""Characters of a pattern with the substitutions in it resolved."""
_MOST_STEPS = 1000
"""Substitutions resolved for one comment; they may name each other."""


@dataclass(slots=True)
class AlphaSetters:
    """The setters and substitutions of one Kptfile."""

    values: dict[str, str] = field(default_factory=dict)
    """Of each setter: its text, or a YAML list."""
    substitutions: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    """Pattern of each substitution, and the definition that each of its markers stands for."""
    _patterns: dict[str, str] = field(default_factory=dict)
    """Those that are known already."""

    def pattern(self, name: str) -> str:
        """Return the pattern of a ``kpt-set`` comment for a setter or substitution.

        Raises:
            SetterError: it would be too long.
        """
        if name not in self._patterns:
            self._patterns[name] = self._resolved(name, [_MOST_STEPS])
        return self._patterns[name]

    def _resolved(self, name: str, budget: list[int], above: tuple[str, ...] = ()) -> str:
        budget[0] -= 1
        if name not in self.substitutions or name in above or budget[0] < 0:
            return f"${{{name}}}"
        pattern, markers = self.substitutions[name]
        # Markers may be part of each other's replacement: each stands for a place first.
        pieces = [pattern]
        for marker in sorted(markers, key=len, reverse=True):
            filled = self._resolved(markers[marker], budget, (*above, name))
            pieces = [part for place, piece in enumerate(pieces) for part in _split(piece, place, marker, filled)]
        if sum(map(len, pieces)) > _LONGEST_PATTERN:
            raise SetterError(f"the pattern of substitution {name} would be longer than {_LONGEST_PATTERN} characters")
        return "".join(pieces)


def _split(piece: str, place: int, marker: str, filled: str) -> Iterator[str]:
    """Cut a literal (an even place) at ``marker``; what is filled in gets odd places."""
    if place % 2 or not marker:
        yield piece
        return
    for count, literal in enumerate(piece.split(marker)):
        if count:
            yield filled
        yield literal


def read_alpha_setters(data: Mapping[str, Any], text: str) -> AlphaSetters:
    """Read the definitions of a v1alpha1 Kptfile; ``text`` is what it was read from, for the spelling of values."""
    found = AlphaSetters()
    definitions = _map(_map(data.get("openAPI")).get("definitions"))
    spelled = scalar_texts(text) if definitions else {}
    for key, definition in definitions.items():
        cli = _map(_map(definition).get("x-k8s-cli"))
        if isinstance(setter := cli.get("setter"), dict):
            name = str(setter.get("name") or key.removeprefix(_SETTER))
            path = ("openAPI", "definitions", key, "x-k8s-cli", "setter", "value")
            values = setter.get("listValues")
            if isinstance(values, list):
                found.values[name] = "".join(f"- {_element(value)}\n" for value in values)
            else:
                found.values[name] = spelled.get(path, "")
        elif isinstance(substitution := cli.get("substitution"), dict):
            name = str(substitution.get("name") or key.removeprefix(_SUBSTITUTION))
            found.substitutions[name] = (str(substitution.get("pattern") or ""), dict(_markers(substitution)))
    return found


def commented_setter(comment: str) -> str:
    """Return the setter or substitution that an old comment names, empty when it is another comment."""
    text = comment.removeprefix("#").strip()
    if not text.startswith("{") or len(text) > _LONGEST_COMMENT:
        return ""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for key in _COMMENT_KEYS:
        if isinstance(name := content.get(key), str):
            return name
    return _definition(content.get("$ref"))


def _markers(substitution: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    values = substitution.get("values")
    for value in values if isinstance(values, list) else []:
        if isinstance(value, dict) and isinstance(marker := value.get("marker"), str):
            yield marker, _definition(value.get("ref")) or marker.removeprefix("${").removesuffix("}")


def _definition(reference: Any) -> str:
    if not isinstance(reference, str) or not reference.startswith(_REFERENCE):
        return ""
    return reference.removeprefix(_REFERENCE).removeprefix(_SETTER).removeprefix(_SUBSTITUTION)


def _element(value: Any) -> str:
    """Return a list's element as YAML; JSON is."""
    return value if isinstance(value, str) and value.isalnum() and not value.isdigit() else json.dumps(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}

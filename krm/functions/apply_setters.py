"""``apply-setters``: put configured values where ``# kpt-set:`` comments ask for them. Source: ``kpt.md`` 4.10."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.config_values import file_of, text_map
from krm.functions.images import Version
from krm.functions.redaction import redacted
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.functions.setter_comments import Path, SetterComment, setter_comments
from krm.package.resource_identity import identity_of
from krm.package.yaml_reader import YamlError, read_document

_DETAILED: Version = (0, 2, 1)
"""From here on results carry severity, resource and values, and secrets are hidden."""
_SETTER = re.compile(r"\$\{([^${}]*)\}")
_PLAIN_UNSAFE = re.compile(r"^[\s\-?:,\[\]{}#&*!|>'\"%@`]|[\n\r\t]|: |:$| #|\s$|[\[\]{},]")
_SAFE_START = re.compile(r"-[^\s\-]|[?:][^\s]")


class _SetterError(Exception):
    """A setter cannot be applied."""


@dataclass(slots=True)
class _Change:
    """One field that was set."""

    resource: Resource
    path: str
    old: str
    new: str
    names: list[str] = field(default_factory=list)


def apply_setters(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    setters = text_map(resources.config, "data") if resources.config else {}
    changes: list[_Change] = []
    try:
        for resource in resources.items:
            changes += _apply(resource, setters)
    except (_SetterError, YamlError) as error:
        message = f"failed to apply setters: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    detailed = version >= _DETAILED
    results = [_detailed_result(change) if detailed else _result(change) for change in changes]
    if not results:
        results = [{"message": "no matches for input setter(s)", **({"severity": "info"} if detailed else {})}]
    return FunctionResult(resources.items, results)


def _apply(resource: Resource, setters: Mapping[str, str]) -> list[_Change]:
    text = resource.text()
    changes = []
    lists = []
    edited = text
    # From the end, so that the offsets of what comes before stay right.
    for comment in reversed(list(setter_comments(text))):
        if comment.is_list:
            lists.append(comment)
            continue
        value = _resolve(comment, setters)
        if value is None:
            continue
        edited = edited[: comment.start] + _written(value, comment.style) + edited[comment.end :]
        names = _SETTER.findall(comment.pattern)
        changes.append(_Change(resource, _shown(comment.path), comment.value, value, names))
    if edited != text:
        resource.set_text(edited)
    changes += [change for comment in lists if (change := _apply_list(resource, comment, setters))]
    return changes[::-1]


def _resolve(comment: SetterComment, setters: Mapping[str, str]) -> str | None:
    """Return the new text of a scalar; None when no given setter occurs in its pattern."""
    names = _SETTER.findall(comment.pattern)
    if not any(name in setters for name in names):
        return None
    missing = [name for name in names if name not in setters]
    values = {**_derived(comment, missing), **setters}
    unresolved = [f"${{{name}}}" for name in dict.fromkeys(names) if name not in values]
    if unresolved:
        raise _SetterError(f"values for setters [{' '.join(unresolved)}] must be provided")
    return _SETTER.sub(lambda found: values[found[1]], comment.pattern)


def _derived(comment: SetterComment, missing: list[str]) -> dict[str, str]:
    """Read the values of setters that were not given out of the current text."""
    parts = _SETTER.split(comment.pattern)
    names, literals = parts[1::2], parts[0::2]
    # Two setters without anything between them cannot be told apart.
    if not missing or "\n" in comment.value or not all(literals[1:-1]):
        return {}
    values = _captured(comment.value, literals)
    if not all(values):
        return {}
    return {name: value for name, value in zip(names, values, strict=True) if name in missing}


def _captured(text: str, literals: list[str]) -> list[str]:
    """Return what greedy groups between ``literals`` capture, empty strings when they do not match.

    The same as a regular expression of ``(.*)`` groups finds, without its backtracking: the first literal
    stands as far left as it can, every other as far right as those behind it allow.
    """
    nothing = [""] * (len(literals) - 1)
    start = text.find(literals[0])
    if start < 0:
        return nothing
    end = len(text)
    places = []
    for literal in reversed(literals[1:]):
        end = text.rfind(literal, 0, end)
        if end < 0:
            return nothing
        places.append(end)
    left = start + len(literals[0])
    captured = []
    for place, literal in zip(reversed(places), literals[1:], strict=True):
        if place < left:
            return nothing
        captured.append(text[left:place])
        left = place + len(literal)
    return captured


def _written(value: str, style: str | None) -> str:
    """Write a scalar in the style it had; plain only where that reads back as one plain scalar."""
    if not value:
        return '""'
    if any(ord(char) < ord(" ") or char in "\x7f\x85\u2028\u2029\ufeff" for char in value) or style == '"':
        return _double_quoted(value)
    if style == "'" or (_PLAIN_UNSAFE.search(value) and not _is_safe_anyway(value)):
        return "'" + value.replace("'", "''") + "'"
    return value


def _is_safe_anyway(value: str) -> bool:
    return bool(_SAFE_START.match(value)) and not _PLAIN_UNSAFE.search("x" + value[1:])


def _double_quoted(value: str) -> str:
    escaped = []
    for char in value:
        if char in '"\\':
            escaped.append("\\" + char)
        elif char == "\n":
            escaped.append("\\n")
        elif char == "\t":
            escaped.append("\\t")
        elif char.isprintable():
            escaped.append(char)
        else:
            code = ord(char)
            escaped.append(f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")  # noqa: PLR2004 - the BMP's end
    return f'"{"".join(escaped)}"'


def _apply_list(resource: Resource, comment: SetterComment, setters: Mapping[str, str]) -> _Change | None:
    names = _SETTER.findall(comment.pattern)
    if not any(name in setters for name in names):
        return None
    if len(names) != 1 or comment.pattern != f"${{{names[0]}}}":
        raise _SetterError(f'invalid setter pattern for array node: "{comment.pattern}"')
    text = setters[names[0]]
    values = read_document(text) if text.strip() else []
    if not isinstance(values, list):
        raise _SetterError(f'input to array setter must be an array of values, but found "{text}"')
    owner: Any = resource.data
    for part in comment.path[:-1]:
        owner = owner[part]
    owner[comment.path[-1]] = values
    return _Change(resource, _shown(comment.path), "", text, names)


def _shown(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _result(change: _Change) -> dict[str, Any]:
    return {
        "message": f'set field value to "{change.new}"',
        "field": {"path": change.path},
        "file": {"path": change.resource.path},
    }


def _detailed_result(change: _Change) -> dict[str, Any]:
    now = identity_of(change.resource.data)
    reference = {
        "apiVersion": change.resource.data.get("apiVersion"),
        "kind": now.kind,
        "name": now.name,
        "namespace": now.namespace,
    }
    old, new = (redacted(value, change.path, change.names) for value in (change.old, change.new))
    return {
        "message": f'set field value to "{new}"',
        "severity": "info",
        "resourceRef": {key: value for key, value in reference.items() if value},
        "field": {"path": change.path, "currentValue": old, "proposedValue": new},
        "file": file_of(change.resource.path, change.resource.index),
    }


FUNCTION = Builtin(
    name="apply-setters",
    run=lambda resources, _, version: apply_setters(resources, version),
    summary="Puts configured values where `# kpt-set:` comments ask for them.",
    source="kpt.md 4.10",
    tags=("v0.1.0", "v0.1.1", "v0.2.0", "v0.2.1", "v0.2.2"),
    config_kinds=("ConfigMap",),
    options=(Option("data.<setter>", "the value of the setter", required=True),),
    behaviours=(
        Behaviour("up to v0.2.0", "results carry message, field and file"),
        Behaviour("v0.2.1 and later, latest", "results carry severity, resource and both values; secrets are redacted"),
    ),
)

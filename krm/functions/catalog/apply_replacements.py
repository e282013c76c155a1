"""``apply-replacements``: copy a field of one resource into fields of others. Source: ``kpt.md`` 4.7.

Two rule sets, by tag: lenient up to v0.1.1, where what is missing is skipped and a target becomes a copy of
its source; strict later, where a target must be found and keeps its own type.
"""

from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import config_result
from krm.functions.catalog.replacement_config import (
    Options,
    Replacement,
    ReplacementConfigError,
    Source,
    Target,
    read_replacements,
)
from krm.functions.catalog.replacement_paths import (
    ElementPatterns,
    FieldPathError,
    Place,
    find_places,
    read_path,
    scalar_text,
)
from krm.functions.catalog.resource_ids import IndexedResource, ResourceId, ResourceIndex, ResourceSelector
from krm.functions.catalog.work_budget import BudgetExceeded, WorkBudget
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.yaml_reader import plain_copy, read_document, resolve_scalar

_FAILURE = "failed to evaluate function: error: function failure"
_STRICT: Version = (0, 1, 2)
_LONGEST_SHOWN = 1000
"""Characters of a value in a message."""
_IDENTITY = ("apiVersion", "kind", "metadata")
"""Fields that say who a resource is."""
_MOST_WORK = 1_000_000
"""Values that one call may look at and write: a value copied into itself doubles with each replacement."""


class _ReplacementError(Exception):
    """A replacement cannot be made."""


def apply_replacements(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function: in the order of the configuration, later replacements see what earlier ones did."""
    try:
        replacements = read_replacements(resources.config)
        run = _Run(ResourceIndex(resources.items), strict=version >= _STRICT)
        for replacement in replacements:
            run.apply(replacement)
    except ReplacementConfigError as error:
        return FunctionResult.failure(resources, [config_result(str(error), resources.config)], _FAILURE)
    except (_ReplacementError, FieldPathError, BudgetExceeded) as error:
        return FunctionResult.failure(resources, [{"message": str(error), "severity": "error"}], _FAILURE)
    return FunctionResult(resources.items)


class _Run:
    """One call of the function."""

    def __init__(self, index: ResourceIndex, *, strict: bool) -> None:
        self._index = index
        self._budget = WorkBudget(_MOST_WORK)
        self._strict = strict
        self._patterns = ElementPatterns(self._budget) if strict else None

    def apply(self, replacement: Replacement) -> None:
        source = replacement.source
        if isinstance(source, str):
            value = text = source
        else:
            value, text = self._read(source)
        for target in replacement.targets:
            self._budget.spend(self._index.effort(target.select.resource_id) * (1 + len(target.reject)))
            # Listed first, because what is written may change what the selector finds.
            chosen = [
                entry for entry in self._index.candidates(target.select.resource_id) if self._is_target(entry, target)
            ]
            for entry in chosen:
                places = [
                    place
                    for path in target.field_paths
                    for place in self._write(entry.resource, path, target.options, value, text)
                ]
                if any(place.path[:1] == (field,) for place in places for field in _IDENTITY):
                    self._index.refresh(entry)

    def _read(self, source: Source) -> tuple[Any, str]:
        """Return the value of a source, and its text where it has one."""
        self._budget.spend(self._index.effort(source.resource_id))
        found = self._two_at_most(source)
        if not found:
            raise _ReplacementError(f"nothing selected by {source.resource_id}")
        if len(found) > 1:
            raise _ReplacementError(f"multiple matches for selector {source.resource_id}")
        resource = found[0]
        places = find_places(resource.data, read_path(source.field_path), self._budget, patterns=None, create=False)
        value = places[0].value if places else None
        if value is None or value in ({}, []):
            raise _ReplacementError(
                f"fieldPath `{source.field_path}` is missing for replacement source {source.resource_id}"
            )
        if not source.options.delimiter:
            # A copy, because one of the targets may be in it.
            self._budget.spend_on(value, 0)
            return plain_copy(value), "" if isinstance(value, (dict, list)) else self._text_at(resource, places[0])
        if isinstance(value, (dict, list)):
            raise _ReplacementError("delimiter option can only be used with scalar nodes")
        return self._part(self._text_at(resource, places[0]), value, source.options)

    def _two_at_most(self, source: Source) -> list[Resource]:
        found = []
        for entry in self._index.candidates(source.resource_id):
            found.append(entry.resource)
            if len(found) > 1:
                break
        return found

    def _text_at(self, resource: Resource, place: Place) -> str:
        """Return a scalar as it is written: ``0777``, not 511."""
        value = place.value
        if value is None or isinstance(value, (str, bool)):
            return scalar_text(value)
        text = resource.text()
        self._budget.spend_on_text(text)
        found = read_document(text, as_text=True)
        for key in place.path:
            found = found[key]
        return str(found)

    def _part(self, text: str, value: Any, options: Options) -> tuple[Any, str]:
        self._budget.spend_on_text(text)
        parts = text.split(options.delimiter)
        if not 0 <= options.index < len(parts):
            raise _ReplacementError(f"options.index {options.index} is out of bounds for value {text[:_LONGEST_SHOWN]}")
        part = parts[options.index]
        return _typed(part, value), part

    def _is_target(self, entry: IndexedResource, target: Target) -> bool:
        data = entry.resource.data
        if not target.select.accepts_metadata(data):
            return False
        if not target.reject:
            return True
        rejecting = [selector for selector in target.reject if not selector.empty and selector.accepts_metadata(data)]
        wanted = [known for known in entry.ids if target.select.resource_id.selects(known)]
        rejected = [_is_rejected(rejecting, known) for known in (entry.ids if self._strict else wanted)]
        return not any(rejected) if self._strict else not all(rejected)

    def _write(self, resource: Resource, path: str, options: Options, value: Any, text: str) -> list[Place]:
        places = find_places(
            resource.data, read_path(path), self._budget, patterns=self._patterns, create=options.create
        )
        if not places and self._strict:
            action = "find or create" if options.create else "find"
            raise _ReplacementError(f'unable to {action} field "{path}" in replacement target')
        for place in places:
            new = self._replaced(resource, place, options, value, text)
            self._budget.spend_on(new, len(place.path))
            place.set(plain_copy(new))
        return places

    def _replaced(self, resource: Resource, place: Place, options: Options, value: Any, text: str) -> Any:
        current = place.value
        is_scalar = not isinstance(value, (dict, list))
        if options.delimiter:
            if not is_scalar or isinstance(current, (dict, list)):
                raise _ReplacementError("delimiter option can only be used with scalar nodes")
            joined = _joined(self._text_at(resource, place), text, options)
            return _typed(joined, current if self._strict and current is not None else value)
        if not self._strict or not is_scalar or current is None or isinstance(current, (dict, list)):
            return value
        typed = _typed(text, current)
        # A text that is none of the target's type keeps the type it had in the source.
        return value if isinstance(typed, str) and not isinstance(current, str) else typed


def _is_rejected(selectors: list[ResourceSelector], known: ResourceId) -> bool:
    return any(selector.resource_id.selects(known) for selector in selectors)


def _joined(current: str, text: str, options: Options) -> str:
    parts = current.split(options.delimiter)
    if options.index < 0:
        parts.insert(0, text)
    elif options.index >= len(parts):
        parts.append(text)
    else:
        parts[options.index] = text
    return options.delimiter.join(parts)


def _typed(text: str, like: Any) -> Any:
    """Return what ``text`` is as a value of the type of ``like``; the text itself when it is none."""
    if isinstance(like, str) or not text:
        return text
    value = resolve_scalar(text)
    numbers = (int, float)
    if type(value) is type(like) or (type(value) in numbers and type(like) in numbers):
        return value
    return text


FUNCTION = Builtin(
    name="apply-replacements",
    run=lambda resources, _, version: apply_replacements(resources, version),
    summary="Copies the value of a field into fields of other resources.",
    source="kpt.md 4.7",
    tags=("v0.1.0", "v0.1.1", "v0.1.2", "v0.1.3", "v0.1.4", "v0.1.5"),
    config_kinds=("ApplyReplacements.fn.kpt.dev",),
    options=(
        Option(
            "replacements[].source",
            "{group, version, kind, name, namespace, fieldPath, options: {delimiter, index}} of the one source; "
            "required without a sourceValue",
        ),
        Option("replacements[].sourceValue", "the value itself, instead of a source"),
        Option(
            "replacements[].targets[].select",
            "{group, version, kind, name, namespace, annotationSelector, labelSelector} of the targets",
            required=True,
        ),
        Option("replacements[].targets[].reject", "list of the same fields: resources to leave alone"),
        Option(
            "replacements[].targets[].fieldPaths",
            "where the value goes; `metadata.name` when none is given. Names are separated by dots; `\\.` is a dot in a "
            "name, `[a.b/c]` a name as it stands, `[key=value]` elements of a list, a number one element, `-` the last",
        ),
        Option(
            "replacements[].targets[].options",
            "{delimiter, index, create}: replace one part of the text (below 0: put before, past the end: put behind); "
            "create what is missing",
        ),
    ),
    behaviours=(
        Behaviour("v0.1.0, v0.1.1", "missing targets are skipped, `[key=value]` compares exactly, types are copied"),
        Behaviour(
            "v0.1.2 and later, latest",
            "missing targets are errors, `[key=value]` is a regular expression, `*` is every element, "
            "targets keep their type",
        ),
    ),
)

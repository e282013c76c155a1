"""``search-replace``: find fields by value, path and file, and change their values or comments.

Source: ``kpt.md`` 4.12.
"""

import re
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import file_of, text_map
from krm.functions.catalog.field_paths import shown_path
from krm.functions.catalog.line_comments import set_line_comments
from krm.functions.catalog.list_style import write_as_block
from krm.functions.catalog.patterns import Pattern, PatternError, field_pattern, file_pattern
from krm.functions.catalog.scalar_edits import replace_scalars, respell
from krm.functions.catalog.source_nodes import SourceList, SourceScalar, source_nodes
from krm.functions.go_text import quoted
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.comments import Path
from krm.package.yaml_reader import YamlError, resolve_scalar

_MATCHERS = ("by-value", "by-file-path", "by-value-regex", "by-path", "put-value", "put-comment")
_GROUP = re.compile(r"\$\{([0-9]{1,4})\}")
_LONGEST_VALUE = 1 << 20
"""Characters of a value after its groups are filled in."""


class _SearchError(Exception):
    """The search cannot be done; the text says why."""


@dataclass(frozen=True, slots=True)
class _Query:
    """What to look for, and what to put there."""

    value: str = ""
    regex: Pattern | None = None
    path: str = ""
    path_pattern: Pattern | None = None
    file_pattern: Pattern | None = None
    put_value: str = ""
    put_comment: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether the path names one field, which is created where it is missing."""
        return bool(
            self.path
            and self.put_value
            and not (self.value or self.regex)
            and not set("*[") & set(self.path)
            and all(self.path.split("."))
        )

    def matches_path(self, path: Path) -> bool:
        return self.path_pattern is not None and self.path_pattern.is_all_of(shown_path(path) + ".")

    def match(self, node: SourceScalar) -> tuple[str | None, ...] | None:
        """Return the groups that a matching scalar's text fills (none without a regex), None without a match."""
        groups: tuple[str | None, ...] | None = None
        if self.regex is not None:
            groups = self.regex.search(node.text)
        elif self.value:
            groups = () if node.text == self.value else None
        elif self.path_pattern is not None:
            groups = ()
        if groups is None or (self.path_pattern is not None and not self.matches_path(node.path)):
            return None
        return groups


@dataclass(frozen=True, slots=True)
class _Found:
    """One matching field; ``visit`` sorts within the resource."""

    visit: int
    value: str
    path: str


def search_replace(resources: ResourceList) -> FunctionResult:
    """Run the function."""
    results = []
    try:
        query = _configure(resources.config)
        for resource in resources.items:
            if query.file_pattern is not None and not query.file_pattern.is_all_of(resource.path):
                continue
            found = _put_directly(resource, query) if query.is_direct else _search(resource, query)
            results += [_result(resource, one, query) for one in sorted(found, key=lambda one: one.visit)]
    except (_SearchError, PatternError, YamlError) as error:
        message = f"failed to perform search-replace operation: {quoted(str(error))}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    return FunctionResult(resources.items, results or [{"message": "no matches"}])


def _configure(config: FunctionConfig | None) -> _Query:
    given = text_map(config, "data") if config else {}
    for name in sorted(given):
        if name not in _MATCHERS:
            shown = " ".join(f'"{matcher}"' for matcher in _MATCHERS)
            raise _SearchError(f"invalid matcher {quoted(name)}, must be one of [{shown}]")
    value, regex, path, files = (
        given.get(name, "") for name in ("by-value", "by-value-regex", "by-path", "by-file-path")
    )
    if value and regex:
        raise _SearchError('only one of ["by-value", "by-value-regex"] can be provided')
    return _Query(
        value,
        Pattern(regex) if regex else None,
        path,
        field_pattern(path) if path else None,
        file_pattern(files) if files else None,
        given.get("put-value", ""),
        given.get("put-comment", ""),
    )


def _search(resource: Resource, query: _Query) -> list[_Found]:
    """Change what matches in one resource, and say what it was."""
    found: list[_Found] = []
    edits: list[tuple[SourceScalar, str]] = []
    comments: dict[Path, str] = {}
    lists = []
    for node in source_nodes(resource.text()):
        if isinstance(node, SourceList):
            if query.put_comment and query.matches_path(node.path) and not (query.value or query.regex):
                lists.append(node)
                found.append(_Found(node.visit, _shown_list(node), f"{query.path} # {query.put_comment}"))
            continue
        groups = query.match(node)
        if groups is None:
            continue
        if query.put_comment:
            comments[node.path] = _filled(query.put_comment, groups)
        value = node.text
        if query.put_value:
            value = _filled(query.put_value, groups)
            if value != node.text:
                edits.append((node, value))
        found.append(_Found(node.visit, value, shown_path(node.path)))
    if edits:
        replace_scalars(resource, edits)
    if lists:
        write_as_block(resource, {node.path for node in lists})
        comments |= {node.path: query.put_comment for node in lists}
    if comments:
        set_line_comments(resource, comments)
    return found


def _put_directly(resource: Resource, query: _Query) -> list[_Found]:
    """Set the one field that the path names, creating the way to it."""
    path = tuple(query.path.split("."))
    value = _filled(query.put_value, ())
    node = next((node for node in source_nodes(resource.text()) if node.path == path), None)
    if isinstance(node, SourceScalar):
        replace_scalars(resource, [(node, value)])
    else:
        owner = resource.data
        for name in path[:-1]:
            if owner.get(name) is None:
                owner[name] = {}
            owner = owner[name]
            if not isinstance(owner, dict):
                raise _SearchError(f"cannot create field {query.path} in {resource.path}: {name} is not a map")
        owner[path[-1]] = resolve_scalar(value) if value else ""
        if not isinstance(owner[path[-1]], str):
            respell(resource, {path: value})
    if query.put_comment:
        set_line_comments(resource, {path: _filled(query.put_comment, ())})
    return [_Found(0, value, query.path)]


def _filled(template: str, groups: tuple[str | None, ...]) -> str:
    """Put what the regex captured into ``template``."""

    def captured(found: re.Match[str]) -> str:
        number = int(found[1])
        text = groups[number] if number < len(groups) else None
        if text is None:
            raise _SearchError("unable to resolve capture groups")
        return text

    longest = max((len(text) for text in groups if text), default=0)
    if len(template) + len(_GROUP.findall(template)) * longest > _LONGEST_VALUE:
        raise _SearchError(f"a new value could be longer than {_LONGEST_VALUE} characters")
    return _GROUP.sub(captured, template)


def _shown_list(node: SourceList) -> str:
    return f"[{', '.join(node.texts)}]" if node.texts is not None else ""


def _result(resource: Resource, found: _Found, query: _Query) -> dict[str, Any]:
    puts = query.put_value or query.put_comment
    message = f"Mutated field value to {quoted(found.value)}" if puts else f"Matched field value {quoted(found.value)}"
    return {"message": message, "field": {"path": found.path}, "file": file_of(resource.path, None)}


FUNCTION = Builtin(
    name="search-replace",
    run=lambda resources, *_: search_replace(resources),
    summary="Finds fields by value, path and file, and changes their values or line comments.",
    source="kpt.md 4.12",
    tags=("v0.1.0", "v0.2.0", "v0.2.1"),
    config_kinds=("ConfigMap",),
    options=(
        Option("data.by-value", "fields whose text is this; not together with `by-value-regex`"),
        Option("data.by-value-regex", "fields in whose text this RE2 expression is found"),
        Option(
            "data.by-path",
            "fields at this path: `.` between elements, `*` for one element or part of its name, `**` for any number, "
            "`a[0]`, `a[*]`; every matcher that is given must match",
        ),
        Option("data.by-file-path", "only resources of files that match this glob: `*`, `?`, `[a-z]`, `{a,b}`, `**`"),
        Option(
            "data.put-value",
            "the new value; `${1}` is the first group of the regex. With a `by-path` that names one field and no value "
            "matcher, the field is created in every resource that lacks it",
        ),
        Option("data.put-comment", "the line comment, such as `kpt-set: ${name}`; groups as in `put-value`"),
    ),
    behaviours=(Behaviour("all", "the same: results carry message, field and file, no severity"),),
)

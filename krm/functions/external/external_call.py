"""One call of a function that speaks ResourceList over pipes, whatever runs it.

Source: ``kpt.md`` 2.5, 2.7 and 2.8.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from krm.functions.external.annotation_reconciliation import AnnotationMismatch, Recorded
from krm.functions.external.child_process import Finished
from krm.functions.external.resource_list import MalformedResourceList, items_for_function, resources_from_function
from krm.functions.external.resource_list_text import ParsedList, read_resource_list, write_resource_list
from krm.functions.external.results import uplifted
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Comment, Path, read_comments
from krm.package.yaml_reader import MAX_BYTES, YamlError

_ITEMS = "items"


@dataclass(slots=True)
class ExternalCall:
    """What goes to the function's standard input, and what is made of its answer."""

    given: ResourceList
    stdin: bytes
    recorded: Recorded

    @classmethod
    def of(cls, given: ResourceList) -> "ExternalCall":
        """Prepare a call.

        Raises:
            MalformedResourceList: the resources are too large together.
        """
        items, recorded = items_for_function(given.items)
        stdin = write_resource_list(given.items, items, given.config).encode()
        if len(stdin) > MAX_BYTES:
            raise MalformedResourceList(
                f"the resources take {len(stdin)} bytes together, and a function outside this process is given at "
                f"most {MAX_BYTES}: select fewer of them"
            )
        return cls(given, stdin, recorded)

    def result(self, finished: Finished) -> FunctionResult:
        """Return what the function did. Its results count even when it failed, its items only when it did not.

        A function that succeeds but writes no ResourceList has failed: nothing of what it was given is
        taken for deleted.
        """
        stderr = finished.stderr.decode(errors="replace").rstrip("\n")
        try:
            parsed = read_resource_list(finished.stdout)
        except (MalformedResourceList, YamlError) as error:
            parsed, problem = ParsedList([]), f"the function's output is not usable: {error}"
        else:
            problem = ""
        results = uplifted(parsed.results)
        if finished.problem or finished.exit_code:
            stderr = _with_line(stderr, f"the function {finished.problem}" if finished.problem else "")
            return FunctionResult(self.given.items, results, finished.exit_code or 1, stderr)
        if problem:
            return FunctionResult.failure(self.given, results, _with_line(stderr, problem))
        try:
            items = resources_from_function(parsed.items, self.given.items, self.recorded)
        except (MalformedResourceList, AnnotationMismatch) as error:
            return FunctionResult.failure(self.given, results, _with_line(stderr, str(error)))
        if parsed.is_wrapped:
            self._adopt_comments(finished.stdout.decode(), items)
        return FunctionResult(items, results, stderr=stderr)

    def _adopt_comments(self, output: str, items: Sequence[Resource]) -> None:
        """Take over the comments that the function wrote; where it left none, those that were there stay."""
        if "#" not in output:
            return
        sent = _comments_by_item(self.stdin.decode())
        places = {id(resource): place for place, resource in enumerate(self.given.items)}
        written = _comments_by_item(output)
        for place, resource in enumerate(items):
            before = sent.get(places.get(id(resource), -1), {})
            new = {path: comment for path, comment in written.get(place, {}).items() if comment != before.get(path)}
            if new:
                _write_comments(resource, new)


def _comments_by_item(text: str) -> dict[int, dict[Path, Comment]]:
    """Return the comments of a ResourceList's items, by the item's place, then by path inside it."""
    found: dict[int, dict[Path, Comment]] = {}
    for path, comment in read_comments(text).items():
        match path:
            case (key, int() as place, *below) if key == _ITEMS:
                found.setdefault(place, {})[tuple(below)] = comment
    return found


def _write_comments(resource: Resource, new: Mapping[Path, Comment]) -> None:
    old = resource.comments()
    known = {line for comment in old.values() for text in (comment.head, comment.foot) for line in text.split("\n")}
    nothing = Comment()
    wanted = {}
    for path, comment in new.items():
        # What stands above a list's element stands above the first key of a document.
        own: Path = path or (next(iter(resource.data), ""),)
        had = old.get(own, nothing)
        taken = Comment(
            _new_lines(comment.head, had.head, known),
            comment.line or had.line,
            _new_lines(comment.foot, had.foot, known),
        )
        if taken != had:
            wanted[own] = taken
    if wanted:
        resource.set_comments(wanted)


def _new_lines(written: str, had: str, known: Container[str]) -> str:
    """Return ``had`` unless the function wrote lines that stand nowhere yet.

    Functions leave out blank lines when they write a document anew, and what set comments apart is lost: the same
    comment then seems to belong to another value.
    """
    before = had.split("\n")
    kept = [line for line in written.split("\n") if line not in known or line in before]
    return "\n".join(kept) if any(line and line not in known for line in kept) else had


def _with_line(text: str, line: str) -> str:
    return "\n".join(filter(None, (text, line)))


def refused(given: ResourceList, error: Exception) -> FunctionResult:
    """Return the result of a call that could not even be made."""
    results: list[dict[str, Any]] = []
    return FunctionResult.failure(given, results, str(error))

"""Setting the comments behind values, and nothing else of what is written around them."""

from collections.abc import Mapping
from dataclasses import replace

from krm.functions.resource import Resource
from krm.package.comments import Comment, Path

_NOTHING = Comment()


def set_line_comments(resource: Resource, comments: Mapping[Path, str]) -> set[Path]:
    """Put each text, with ``#`` before it where it has none, behind the value at its path.

    Returns the paths that now have their comment: there is no place for one in JSON, nor within a flow
    collection of one line.

    Raises:
        YamlError: the resource's text is not one YAML document.
    """
    if resource.is_json:
        return set()
    old = resource.comments()
    wanted = {path: replace(old.get(path, _NOTHING), line=_comment(text)) for path, text in comments.items()}
    changed = {path: comment for path, comment in wanted.items() if comment != old.get(path, _NOTHING)}
    if changed:
        resource.set_comments(changed)
        old = resource.comments()
    return {path for path, comment in wanted.items() if path in old and old[path].line == comment.line}


def _comment(text: str) -> str:
    line = " ".join(text.split("\n"))
    return line if line.startswith("#") else f"# {line}"

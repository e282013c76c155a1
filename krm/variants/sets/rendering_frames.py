"""What the owner of a rendering process and the process say to each other: frames of a length and so many bytes of JSON.

A request is ``about`` (the set and its upstream), Repositories and contexts in parts, and ``END``; each part of contexts is
answered by what they come to, and ``END`` by ``Done``. Parts are small, so that neither side waits long for the other, and no
event loop for JSON. Source: ``variants.md`` 6.9.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from krm.variants.sets.rendering import VIEW, Rendered, Renderer
from krm.variants.sets.targets import Context, SelectedObject

Json = dict[str, Any]

LENGTH: Final = struct.Struct(">I")
READY: Final = b'"ready"'
"""The first frame of a process, before any request."""
END: Final = b'{"end":true}'
MAX_FRAME: Final = 64 << 20
"""Bytes of a frame."""
PART: Final = 1 << 18
"""Bytes of a part, unless one item alone is larger."""
MOST_ITEMS: Final = 250
"""Items of a part."""
_ITSELF: Final = True
"""Stands for a selected Repository that is the one of the same name among the Repositories."""


class FrameError(Exception):
    """Something is too large for a frame, or no JSON."""


def framed(data: bytes) -> bytes:
    """Return a frame.

    Raises:
        FrameError: it would be larger than ``MAX_FRAME``.
    """
    if len(data) > MAX_FRAME:
        raise FrameError(f"a part of {len(data)} bytes is over the limit of {MAX_FRAME}")
    return LENGTH.pack(len(data)) + data


def about(set_body: Json, upstream: Json, seconds: float) -> bytes:
    """Return the first frame of a request, with what rendering reads of the set."""
    body = {"metadata": {"name": set_body["metadata"]["name"]}, "spec": set_body["spec"]}
    return framed(_written({"set": body, "upstream": upstream, "seconds": seconds}))


def needed_repositories(
    set_body: Json, contexts: Iterable[Context], repositories: Mapping[str, SelectedObject]
) -> Mapping[str, SelectedObject]:
    """Return those of the Repositories that the variants can be for: a small set need not know thousands of them."""
    downstream = [((one.get("template") or {}).get("downstream") or {}) for one in set_body["spec"]["targets"]]
    if any(one.get("repoExpr") for one in downstream):
        return repositories
    names = {context.repo_default for context in contexts} | {str(one.get("repo")) for one in downstream}
    return {name: repositories[name] for name in names if name in repositories}


def repository_parts(repositories: Iterable[SelectedObject]) -> Iterator[bytes]:
    """Return the frames of Repositories."""
    return _parts("repositories", (_object_as_json(one) for one in repositories))


def context_parts(contexts: Iterable[Context], repositories: Mapping[str, SelectedObject]) -> Iterator[bytes]:
    """Return the frames of contexts; their templates are those of the set."""
    return _parts("contexts", (_context_as_json(one, repositories) for one in contexts))


def object_from_json(written: Sequence[Any]) -> SelectedObject:
    """Read an object."""
    name, namespace, labels, annotations = written
    return SelectedObject("", "", namespace, name, labels, annotations)


def rendered_part(renderer: Renderer, contexts: Iterable[Any]) -> bytes:
    """Render the contexts of a part, and return the frame with what they come to.

    Raises:
        FrameError: it is too large.
    """
    rows = []
    for index, repo, package, target in contexts:
        view: Json | None = renderer.repository(repo) if target is _ITSELF else None
        if view is None and target is not None:
            view = dict(zip(VIEW, target, strict=True))
        rows.append(renderer.row(index, repo, package, view))
    return framed(_written(rows))


def rendered_from_json(written: Iterable[Sequence[Any]]) -> Iterator[Rendered]:
    """Read what a part of contexts comes to."""
    return (Rendered(*one) for one in written)


def done(*, last: bool) -> bytes:
    """Return the frame that answers ``END``; ``last`` tells that the process ends now, having grown."""
    return framed(_written({"done": True, "last": last}))


def _context_as_json(context: Context, repositories: Mapping[str, SelectedObject]) -> Any:
    target = context.target
    if target is None:
        return context.target_index, context.repo_default, context.package_default, None
    same = repositories.get(target.name) is target and context.repo_default == target.name
    written = _ITSELF if same else _object_as_json(target)
    return context.target_index, context.repo_default, context.package_default, written


def _object_as_json(one: SelectedObject) -> Any:
    return one.name, one.namespace, one.labels, one.annotations


def _parts(name: str, items: Iterable[Any]) -> Iterator[bytes]:
    pending: list[bytes] = []
    size = 0
    for item in items:
        pending.append(_written(item))
        size += len(pending[-1])
        if size >= PART or len(pending) >= MOST_ITEMS:
            yield _part(name, pending)
            pending, size = [], 0
    if pending:
        yield _part(name, pending)


def _part(name: str, items: list[bytes]) -> bytes:
    return framed(b'{"%b":[%b]}' % (name.encode(), b",".join(items)))


def _written(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:  # texts that are no Unicode, numbers beyond 64 bits, nesting without end
        raise FrameError(f"not to be written as JSON: {error}") from error

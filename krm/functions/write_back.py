"""Resources back into files: only files whose resources changed are written. Source: ``kpt.md`` 2.11."""

from collections.abc import Iterable

from krm.functions.package_tree import PackageTree, SourceFile
from krm.functions.resource import Resource
from krm.package.contents import Contents, File


def write_back(contents: Contents, tree: PackageTree, resources: Iterable[Resource]) -> dict[str, File]:
    """Return ``contents`` with the resources as they are now.

    Documents that did not change keep their bytes, with everything between them; a file none of whose
    documents is left is removed.
    """
    by_file: dict[str, list[Resource]] = {}
    for resource in resources:
        by_file.setdefault(resource.root_path, []).append(resource)
    new = dict(contents)
    for path, source in tree.files.items():
        if source.read and path not in by_file:
            _remove_all(new, path, source)
    for path, members in by_file.items():
        _write(new, path, tree.files.get(path), _in_order(members))
    return new


def _in_order(resources: list[Resource]) -> list[Resource]:
    """Sort by index; what has none comes first, as upstream sorts it, unless others have one."""
    last = max((resource.index for resource in resources if resource.index is not None), default=0)
    return sorted(resources, key=lambda resource: last if resource.index is None else resource.index)


def _write(new: dict[str, File], path: str, source: SourceFile | None, resources: list[Resource]) -> None:
    if source is None:
        previous = new.get(path)
        data = _joined([resource.text() for resource in resources]).encode()
        new[path] = File(data, previous.mode) if previous else File(data)
        return
    places = [resource.origin[1] if resource.origin and resource.origin[0] == path else None for resource in resources]
    here = [place for place in places if place is not None]
    pieces = list(source.pieces)
    generated = [resource.text() for resource, place in zip(resources, places, strict=True) if place is None]
    if here == sorted(here) and places == here + [None] * len(generated):
        for resource, place in zip(resources, here, strict=False):
            pieces[2 * place] = resource.text()
        text = _joined(["".join(_without(pieces, source.read - set(here))), *generated])
    else:
        text = _joined([resource.text() for resource in resources])
    data = text.encode()
    if data != source.file.data:
        new[path] = File(data, source.file.mode)


def _remove_all(new: dict[str, File], path: str, source: SourceFile) -> None:
    rest = "".join(_without(source.pieces, source.read))
    if any(line.strip() and not line.startswith(("#", "---", "...")) for line in rest.splitlines()):
        new[path] = File(rest.encode(), source.file.mode)
    else:
        del new[path]


def _without(pieces: list[str], places: set[int]) -> list[str]:
    """Drop documents, each with the separator before it, or after it for the first."""
    kept: list[str] = []
    for place in range((len(pieces) + 1) // 2):
        if place in places:
            continue
        if place and kept:
            kept.append(pieces[2 * place - 1])
        kept.append(pieces[2 * place])
    return kept


def _joined(texts: list[str]) -> str:
    """Join documents by separator lines."""
    joined = ""
    for text in filter(None, texts):
        if joined:
            joined += ("" if joined.endswith("\n") else "\n") + "---\n"
        joined += text
    return joined

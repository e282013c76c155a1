"""Resources back into files: only files whose resources changed are written. Source: ``kpt.md`` 2.11."""

from collections.abc import Iterable

from krm.functions.package_tree import PackageTree, SourceFile
from krm.functions.placement import PlacementError, directories, tidy_annotations
from krm.functions.resource import Resource
from krm.package.contents import EXECUTABLE, MAX_FILES, MAX_TOTAL_BYTES, REGULAR, Contents, File
from krm.package.yaml_reader import YamlError


def group_by_file(resources: Iterable[Resource]) -> dict[str, list[Resource]]:
    """Return the resources by the path of their file, relative to the root package, in the order of their places."""
    by_file: dict[str, list[Resource]] = {}
    for resource in resources:
        by_file.setdefault(resource.root_path, []).append(resource)
    return {path: _in_order(members) for path, members in by_file.items()}


def write_back(
    contents: Contents, tree: PackageTree, resources: Iterable[Resource], *, prune: bool = True
) -> tuple[dict[str, File], dict[str, list[Resource]]]:
    """Return ``contents`` with the resources as they are now, and these by file.

    Documents that did not change keep their bytes, with everything between them; a file none of whose
    documents is left is removed, unless ``prune`` is off and the resources are not in another file instead.

    Raises:
        PlacementError: a resource's file cannot be there, or the package grew over a limit.
    """
    by_file = group_by_file(resources)
    new = dict(contents)
    elsewhere = {
        resource.origin[0]
        for path, members in by_file.items()
        for resource in members
        if resource.origin and resource.origin[0] != path
    }
    for path, source in tree.files.items():
        if source.read and path not in by_file and (prune or path in elsewhere):
            _remove_all(new, path, source)
    for path, members in by_file.items():
        _write(new, path, tree.files.get(path), members)
    _check(contents, new)
    return new, by_file


def _in_order(resources: list[Resource]) -> list[Resource]:
    """Sort by index; what has none goes to the last index there is, behind what has it."""
    last = max((resource.index for resource in resources if resource.index is not None), default=0)
    return sorted(resources, key=lambda resource: last if resource.index is None else resource.index)


def _write(new: dict[str, File], path: str, source: SourceFile | None, resources: list[Resource]) -> None:
    changed = [resource for resource in resources if resource.is_changed]
    for resource in changed:
        tidy_annotations(resource)
    if source is not None and not changed and [resource.origin for resource in resources] == source.origins(path):
        return
    try:
        data = (_joined(_texts(path, resources)) if source is None else _edited(path, source, resources)).encode()
    except (YamlError, UnicodeError) as error:
        raise PlacementError(f"{path}: what the functions made of it cannot be written: {error}") from None
    previous = new.get(path)
    if previous is None:
        new[path] = File(data)
    elif previous.mode not in (REGULAR, EXECUTABLE):
        raise PlacementError(f"{path}: resources are written into files, and this is a link or a submodule")
    elif data != previous.data:
        new[path] = File(data, previous.mode)


def _edited(path: str, source: SourceFile, resources: list[Resource]) -> str:
    """Return the file's text with its documents in the places where they were, if they are in that order."""
    places = [resource.origin[1] if resource.origin and resource.origin[0] == path else None for resource in resources]
    here = [place for place in places if place is not None]
    if not source.pieces or here != sorted(here) or places != here + [None] * (len(places) - len(here)):
        return _joined(_texts(path, resources))
    texts = _texts(path, resources)
    if len(texts) > 1 and any(resource.is_json for resource in resources):
        return _joined(texts)
    pieces = list(source.pieces)
    for text, place in zip(texts, here, strict=False):
        pieces[2 * place] = text
    return _joined(["".join(_without(pieces, source.read - set(here))), *texts[len(here) :]])


def _texts(path: str, resources: list[Resource]) -> list[str]:
    """Return the documents as they stand in the file: as JSON when it is one JSON document, else as YAML."""
    if path.endswith(".json") and len(resources) == 1:
        return [resources[0].json_text()]
    return [resource.yaml_text() for resource in resources]


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
    joined: list[str] = []
    for text in filter(None, texts):
        if joined:
            joined.append("---\n" if joined[-1].endswith("\n") else "\n---\n")
        joined.append(text)
    return "".join(joined)


def _check(before: Contents, after: Contents) -> None:
    """Refuse files that functions added where directories are, or the other way round, and too many or too much."""
    added = after.keys() - before.keys()
    if added:
        folders = set(directories(after))
        for path in sorted(added):
            if path in folders:
                raise PlacementError(f'config.kubernetes.io/path cannot be a directory: "{path}"')
        for folder in directories(added):
            if folder in after:
                raise PlacementError(f'"{folder}" is a file, so that no resource can be written below it')
        if len(after) > max(MAX_FILES, len(before)):
            raise PlacementError(f"the functions made {len(after)} files, more than {MAX_FILES}")
    if _size(after) > max(MAX_TOTAL_BYTES, _size(before)):
        raise PlacementError(f"the functions made the package larger than {MAX_TOTAL_BYTES >> 20} MiB")


def _size(contents: Contents) -> int:
    return sum(len(file.data) for file in contents.values())

"""The YAML files of one tree of a merge, read into resources with their upstream identity.

Source: ``kpt.md`` 1.7 and 3.4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.documents import Document, read_file
from krm.package.merge.update_error import UpdateError
from krm.package.resource_identity import Identity, identity_of, merge_comment
from krm.package.yaml_reader import YamlError


class DuplicateResource(UpdateError):
    """Two resources of one file have the same identity, so that it is not clear which one upstream changed."""

    def __init__(self, tree: str, path: str, identity: Identity) -> None:
        super().__init__(
            f'found duplicate "{tree}" resources in file "{path}", please refer to "update" documentation for the fix'
        )
        self.tree = tree
        self.path = path
        self.identity = identity


class UnreadableFile(YamlError):
    """A file that all sides changed is not YAML; the message names file and tree, ``line`` counts in the file."""

    def __init__(self, path: str, tree: str, error: YamlError) -> None:
        super().__init__(error.problem, error.line, error.column)
        self.args = (f"{path} ({tree}): {error}",)
        self.path = path
        self.tree = tree


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of one tree."""

    document: Document
    identity: Identity
    """As the ``kpt-merge`` comment has it, else as it is now."""
    path: str
    place: int
    """In its file, counting documents with content."""


@dataclass(frozen=True, slots=True)
class ResourceFile:
    """One file of one tree that holds nothing but resources."""

    file: File
    pieces: list[str]
    documents: list[Document]
    resources: list[Resource]


class FileReader:
    """Reads files, each content once however many trees have it."""

    def __init__(self) -> None:
        self._read: dict[bytes, tuple[list[str], list[Document]] | YamlError] = {}

    def resource_file(self, path: str, file: File) -> ResourceFile | None:
        """Return the resources of a file; None when it holds anything else.

        Raises:
            YamlError: it is not YAML, or over a limit.
        """
        if file.mode not in (REGULAR, EXECUTABLE) or _is_binary(file.data):
            return None
        pieces, documents = self._documents(file.data)
        with_content = [document for document in documents if document.data is not None]
        if not all(map(_is_resource, with_content)):
            return None
        resources = [
            Resource(document, _upstream_identity(document), path, place) for place, document in enumerate(with_content)
        ]
        return ResourceFile(file, pieces, documents, resources)

    def _documents(self, data: bytes) -> tuple[list[str], list[Document]]:
        result = self._read.get(data)
        if result is None:
            try:
                result = read_file(data)
            except YamlError as error:
                result = error
            self._read[data] = result
        if isinstance(result, YamlError):
            raise result
        return result


def is_resource_path(path: str) -> bool:
    """Say whether a merge looks for resources in a file of this name."""
    return path.endswith((".yaml", ".yml"))


def resources_of(files: Mapping[str, ResourceFile], tree: str) -> Iterator[Resource]:
    """Yield the resources of a tree, file by file.

    Raises:
        DuplicateResource: two of a file have one identity; ``tree`` is upstream's word for the tree.
    """
    for path, file in files.items():
        seen = set()
        for resource in file.resources:
            if resource.identity in seen:
                raise DuplicateResource(tree, path, resource.identity)
            seen.add(resource.identity)
            yield resource


def readable_files(
    trees: Mapping[str, Contents],
) -> tuple[dict[str, dict[str, ResourceFile]], set[str]]:
    """Read the YAML files of the trees; return them by tree and path, and the paths to be merged as mere files.

    These are the paths at which some tree has no resources but something else. A file that cannot be read
    is one of them, too, as long as no more than one side changed it.

    Raises:
        UnreadableFile: both sides changed a file that cannot be read.
    """
    reader = FileReader()
    read: dict[str, dict[str, ResourceFile]] = {tree: {} for tree in trees}
    opaque: set[str] = set()
    for path in sorted({path for contents in trees.values() for path in contents if is_resource_path(path)}):
        states = {tree: contents[path] for tree, contents in trees.items() if path in contents}
        try:
            found = {}
            for tree, file in states.items():
                found[tree] = reader.resource_file(path, file)
        except YamlError as error:
            if len({contents.get(path) for contents in trees.values()}) == len(trees):
                raise UnreadableFile(path, tree, error) from None
            opaque.add(path)
            continue
        files = {tree: file for tree, file in found.items() if file is not None}
        if len(files) < len(states) or not any(file.resources for file in files.values()):
            opaque.add(path)
            continue
        for tree, resource_file in files.items():
            read[tree][path] = resource_file
    return read, opaque


def _is_binary(data: bytes) -> bool:
    try:
        return "\0" in data.decode()
    except UnicodeDecodeError:
        return True


def _is_resource(document: Document) -> bool:
    data: Any = document.data
    return isinstance(data, dict) and isinstance(data.get("kind"), str) and data["kind"] != ""


def _upstream_identity(document: Document) -> Identity:
    now = identity_of(document.data)
    recorded = merge_comment(document.text)
    return now if recorded is None else Identity(now.group, now.kind, *recorded)

"""A package and its subpackages, taken apart into resources. Source: ``kpt.md`` 1.6–1.8 and 2.1."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from krm.functions.placement import without_transport_annotations
from krm.functions.resource import Resource
from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.documents import is_resource_file, read_resources
from krm.package.kptfile import Kptfile, parse_kptfile
from krm.package.kptfile_error import KptfileError
from krm.package.krmignore import KrmIgnore
from krm.package.resource_identity import krm_problem
from krm.package.yaml_reader import YamlError

_KPTFILE = "Kptfile"
_FILES = (REGULAR, EXECUTABLE)
"""Modes of what is read; links are not followed."""


class RenderError(Exception):
    """A package cannot be rendered; the text is the chain of causes as clients see it."""

    def __init__(self, chain: str, *, cause: str, is_recorded: bool = True) -> None:
        super().__init__(chain)
        self.cause = cause
        """The innermost cause, for a terminal; empty when the functions' results say it all."""
        self.is_recorded = is_recorded
        """Whether the root Kptfile's status tells of it: not when it is the root's own Kptfile or pipeline
        that cannot be read (``kpt.md`` 2.12)."""


@dataclass(slots=True)
class Package:
    """One package of the tree with its own resources, subpackages apart."""

    path: str
    """Directory relative to the root package; empty for the root."""
    kptfile: Kptfile
    resources: list[Resource] = field(default_factory=list)
    children: list["Package"] = field(default_factory=list)
    """The direct subpackages, in lexical order."""

    @property
    def display(self) -> str:
        """The name in messages: ``.`` for the root, ``./sub/package`` below."""
        return f"./{self.path}" if self.path else "."

    def walk(self) -> Iterator["Package"]:
        """Yield this package and all below, level by level."""
        level = [self]
        while level:
            yield from level
            level = [child for package in level for child in package.children]


@dataclass(slots=True)
class SourceFile:
    """A file that resources were read from: its pieces as ``documents.split_documents`` cuts them."""

    file: File
    pieces: list[str]
    """Empty when the resources were taken over: such a tree is not written back."""
    package: str
    """The path of the package that the file belongs to."""
    read: set[int] = field(default_factory=set)
    """The places of documents that are resources; what is not among them always stays."""

    def origins(self, path: str) -> list[tuple[str, int]]:
        """Return where the file's resources came from, in order; ``path`` is the file's."""
        return [(path, place) for place in sorted(self.read)]


@dataclass(slots=True)
class PackageTree:
    """The root package and the files its resources came from."""

    root: Package
    files: dict[str, SourceFile]


def load_tree(
    contents: Contents, *, shown: str = ".", known: Mapping[str, Sequence[Resource]] | None = None
) -> PackageTree:
    """Read a package whose Kptfile is at the root.

    ``shown`` is what messages call the root. ``known`` has resources of files, by path, whose texts together
    are what ``contents`` has there: they are taken over instead of being read again.

    Raises:
        RenderError: a Kptfile or a resource file cannot be read.
    """
    kptfiles = (path for path, file in contents.items() if path.rpartition("/")[2] == _KPTFILE and file.mode in _FILES)
    directories = sorted({"", *map(_directory, kptfiles)})
    packages = {directory: Package(directory, _kptfile(contents, directory, shown)) for directory in directories}
    for directory in directories[1:]:
        packages[_owner(_directory(directory), packages)].children.append(packages[directory])
    ignores = {directory: _ignore(contents, directory) for directory in directories}
    tree = PackageTree(packages[""], {})
    for path in _walk_order(contents):
        file = contents[path]
        if not is_resource_file(path) or file.mode not in _FILES:
            continue
        owner = _owner(_directory(path), packages)
        if _is_ignored(path, owner, ignores):
            continue
        if known and path in known:
            _take_over(tree, packages[owner], path, file, known[path])
        else:
            _read_resources(tree, packages[owner], path, file)
    return tree


def load_folder(contents: Contents, *, leave_out: Container[str] = ()) -> PackageTree:
    """Read the resources of a folder as those of one package, its subpackages' included.

    No Kptfile is decoded, and none is needed. Here the rules of ``.krmignore`` hold for the packages below too.
    ``leave_out`` are paths of files that are not read. Source: ``kpt.md`` 1.7, 1.8 and 2.16.

    Raises:
        RenderError: a resource file cannot be read.
    """
    directories = {"", *(_directory(path) for path in contents if path.rpartition("/")[2] == "Kptfile")}
    ignores = {directory: _ignore(contents, directory) for directory in directories}
    tree = PackageTree(Package("", _NO_KPTFILE), {})
    for path in _walk_order(contents):
        file = contents[path]
        if path in leave_out or not is_resource_file(path) or file.mode not in _FILES:
            continue
        owners = [directory for directory in _ancestors(path) if directory in ignores]
        if not any(_is_ignored(path, owner, ignores) for owner in owners):
            _read_resources(tree, tree.root, path, file)
    return tree


_NO_KPTFILE = Kptfile("", {}, {}, None, None, {}, (), (), (), (), {})


def _ancestors(path: str) -> Iterator[str]:
    while path:
        path = _directory(path)
        yield path


def _walk_order(paths: Iterable[str]) -> list[str]:
    """Return the files in the order of a walk: lexical in each directory."""
    return sorted(paths, key=lambda path: path.split("/"))


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _owner(directory: str, packages: dict[str, Package]) -> str:
    while directory not in packages:
        directory = _directory(directory)
    return directory


def _kptfile(contents: Contents, directory: str, shown: str) -> Kptfile:
    path = f"{directory}/Kptfile" if directory else "Kptfile"
    try:
        return parse_kptfile(contents[path].data, path)
    except KptfileError as error:
        display = f"./{directory}" if directory else "."
        chain = f'error reading Kptfile at "{display}": {error.problem}'
        inner = f"pkg.Subpackages: pkg {display}: {chain}" if directory else f"pkg.ReadKptfile: {chain}"
        place = f"{shown}/{directory}" if directory else shown
        cause = f'Kptfile at "{place}" can\'t be read.\n\nDetails:\n{error.problem}'
        raise RenderError(f"pkg.render: pkg .:\n\t{inner}", cause=cause, is_recorded=bool(directory)) from None


def _ignore(contents: Contents, directory: str) -> KrmIgnore | None:
    file = contents.get(f"{directory}/.krmignore" if directory else ".krmignore")
    if file is None or file.mode not in _FILES:
        return None
    return KrmIgnore(file.data.decode(errors="replace"))


def _is_ignored(path: str, owner: str, ignores: dict[str, KrmIgnore | None]) -> bool:
    """Only the owner's rules count: a subpackage that its parent ignores is rendered all the same."""
    ignore = ignores[owner]
    return ignore is not None and ignore.ignores(path[len(owner) + 1 :] if owner else path)


def _read_resources(tree: PackageTree, package: Package, path: str, file: File) -> None:
    relative = path[len(package.path) + 1 :] if package.path else path
    try:
        pieces, documents, is_json = read_resources(path, file.data)
    except YamlError as error:
        chain = f"pkg.render: pkg {package.display}:\n\tpkg.LocalResources: {relative}: {error}"
        raise RenderError(chain, cause=f"{relative}: {error}") from None
    source = tree.files[path] = SourceFile(file, pieces, package.path)
    for place, document in enumerate(documents):
        if document.data is None or _is_excused(document.data, relative):
            continue
        resource = Resource.of_document(
            document.data,
            document.text,
            path=relative,
            index=len(source.read),
            package=package.path,
            origin=(path, place),
            is_json=is_json,
        )
        resource.data = without_transport_annotations(document.data)
        source.read.add(place)
        package.resources.append(resource)


def _is_excused(data: Any, path: str) -> bool:
    """Say whether a document is no mapping where it need not be one: it stays as it is, and no function sees it."""
    return not isinstance(data, dict) and not krm_problem(data, path)


def _take_over(tree: PackageTree, package: Package, path: str, file: File, resources: Sequence[Resource]) -> None:
    """Do what :func:`_read_resources` does with resources that were read or written before."""
    source = tree.files[path] = SourceFile(file, [], package.path)
    for index, resource in enumerate(resources):
        resource.mark_as_read(path[len(package.path) + 1 :] if package.path else path, index, package.path)
        source.read.add(index)
        package.resources.append(resource)

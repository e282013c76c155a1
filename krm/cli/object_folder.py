"""Objects in files in place of a cluster: what ``kubectl get -o yaml`` printed, or a repository of manifests.

Everything is bounded: files may be other people's. Source: ``variants.md`` 6.1.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from krm.cli.failures import CommandFailed
from krm.package.yaml_reader import YamlError, read_documents
from krm.variants.sets.previewing import is_of_set
from krm.variants.sets.targets import NEVER_SELECTED, SECRET, Kind, SelectedObject
from krm.variants.sets.vocabulary import API_VERSION as SET_VERSION
from krm.variants.sets.vocabulary import KIND as SET_KIND
from krm.variants.sets.vocabulary import REPOSITORY
from krm.variants.vocabulary import API_VERSION as VARIANT_VERSION
from krm.variants.vocabulary import KIND as VARIANT_KIND

Json = dict[str, Any]

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 256 << 20
"""Of all files together; package revisions of a thousand packages are a few MiB."""
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_VARIANT: Final = (VARIANT_VERSION, VARIANT_KIND)
_SET: Final = (SET_VERSION, SET_KIND)
_REVISION: Final = ("porch.kpt.dev/v1alpha1", "PackageRevision")
_ALWAYS_SERVED: Final = frozenset(
    {REPOSITORY, _VARIANT, _SET, _REVISION, ("v1", "ConfigMap"), ("v1", "ServiceAccount")}
)
_DEFINITION: Final = "CustomResourceDefinition"


def read_objects(file: Path) -> list[Json]:
    """Return the objects of a file, those of lists one by one.

    Raises:
        CommandFailed: it cannot be read, or has something that is no object.
    """
    try:
        return _objects_in(file, file.read_bytes())
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}") from error


def objects_of(text: bytes, source: str) -> list[Json]:
    """Return the objects of YAML or JSON, those of lists one by one; ``source`` is named in errors.

    Raises:
        CommandFailed: it has something that is no object.
    """
    return _objects_in(Path(source), text)


def _objects_in(file: Path, data: bytes) -> list[Json]:
    try:
        documents = [orjson.loads(data)] if file.suffix == ".json" else read_documents(data, strict=False)
    except (YamlError, orjson.JSONDecodeError) as error:
        raise CommandFailed(f"{file}: {error}") from error
    found: list[Json] = []
    for one in documents:
        if not isinstance(one, dict):
            raise CommandFailed(f"{file}: not every document is an object")
        is_list = str(one.get("kind") or "").endswith("List") and isinstance(one.get("items"), list)
        found += [item for item in one["items"] if isinstance(item, dict)] if is_list else [one]
    return [one for one in found if _is_object(one)]


def _is_object(body: Json) -> bool:
    meta = body.get("metadata")
    texts = (body.get("apiVersion"), body.get("kind"), meta.get("name") if isinstance(meta, dict) else None)
    return all(isinstance(text, str) for text in texts)


class ObjectFolder:
    """The objects of one namespace in a folder and the folders in it; objects without a namespace are of every one."""

    def __init__(self, folder: Path, namespace: str) -> None:
        """Read them.

        Raises:
            CommandFailed: a file cannot be read, or there are too many.
        """
        self._kinds: dict[Kind, dict[str, Json]] = defaultdict(dict)
        self._revisions: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for file in _files(folder):
            for body in read_objects(file):
                if (body["metadata"].get("namespace") or namespace) == namespace:
                    self._kinds[body["apiVersion"], body["kind"]][body["metadata"]["name"]] = body
        for body in self._kinds[_REVISION].values():
            spec = body.get("spec") or {}
            self._revisions[spec.get("repository", ""), spec.get("packageName", "")].append(body)

    def stored_set(self, name: str) -> Json | None:
        """Return a PackageVariantSet that is there."""
        return self._kinds[_SET].get(name)

    def repositories(self) -> Iterator[Json]:
        """Yield the Repositories."""
        yield from self._kinds[REPOSITORY].values()

    def revisions(self, repository: str, package: str) -> Sequence[Json]:
        """Return the revisions of a package."""
        return self._revisions.get((repository, package), ())

    def variants_of(self, set_uid: str) -> Iterator[Json]:
        """Yield the PackageVariants with the label of a set."""
        return (one for one in self._kinds[_VARIANT].values() if is_of_set(one, set_uid))

    def variant(self, name: str) -> Json | None:
        """Return a PackageVariant."""
        return self._kinds[_VARIANT].get(name)

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind; kinds of which there is neither an object nor a definition are not served."""
        found: dict[Kind, Sequence[SelectedObject] | str] = {kind: [] for kind in (*_ALWAYS_SERVED, *self._defined())}
        for kind, bodies in self._kinds.items():
            found[kind] = [SelectedObject.of(one, kind) for one in bodies.values()]
        return {**found, SECRET: NEVER_SELECTED}

    def _defined(self) -> Iterator[Kind]:
        for (_, kind), bodies in list(self._kinds.items()):
            for body in bodies.values() if kind == _DEFINITION else ():
                spec = body.get("spec") or {}
                for version in spec.get("versions") or ():
                    yield f"{spec.get('group')}/{version.get('name')}", (spec.get("names") or {}).get("kind") or ""


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files with objects, in order; symbolic links are not followed out of the folder.

    Raises:
        CommandFailed: there are too many, or they are too large.
    """
    count = size = 0
    root = folder.resolve()
    for file in sorted(root.rglob("*")):
        if file.suffix not in _SUFFIXES or file.is_symlink() or not file.is_file():
            continue
        count, size = count + 1, size + file.stat().st_size
        if count > MAX_FILES or size > MAX_BYTES:
            raise CommandFailed(f"{folder}: more than {MAX_FILES} files, or more than {MAX_BYTES >> 20} MiB")
        yield file

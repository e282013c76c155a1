"""An installation in files: what ``kubectl get … -o yaml`` (or ``-o json``) printed, in one folder."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from apiserver.adoption.records import RECORD, record_repository, revision_of
from apiserver.adoption.source import MAX_OBJECTS, BadSource, in_namespaces, is_named, name_of, repository_of
from apiserver.engine.revision_body import API_VERSION
from krm.package.yaml_reader import YamlError, read_documents

Json = dict[str, Any]

MAX_FILES: Final = 1000
MAX_BYTES: Final = 256 << 20
"""Of all files together; YAML besides has the reader's own limit for one file."""
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_ANY_SET: Final = "PackageVariantSet"


class FolderSource:
    """Reads the folder once, when it is made. Blocking; YAML takes some 5 s for ten thousand revisions, JSON 0.2 s.

    ``records`` takes metadata from PackageRevs in place of PackageRevisions, for a server that answers no more.

    Raises:
        BadSource: a file cannot be read, or there is no Repository in them.
    """

    def __init__(self, folder: Path, namespaces: frozenset[str] = frozenset(), *, records: bool = False) -> None:
        self.shown = f"the files in {folder}"
        self._namespaces = namespaces
        self._kinds: dict[str, list[Json]] = defaultdict(list)
        for item in _objects(folder):
            self._kinds[str(item.get("kind"))].append(item)
        self._found = {
            (str(item.get("apiVersion")), str(item.get("kind")), *name_of(item)): item
            for items in self._kinds.values()
            for item in items
        }
        wanted = RECORD if records else "PackageRevision"
        if not self._kinds["Repository"] or not self._kinds[wanted]:
            raise BadSource(
                f"{folder} must hold what kubectl get -A -o yaml prints of repositories and of "
                f"{'packagerevs' if records else 'packagerevisions.v1alpha1.porch.kpt.dev'}"
            )
        self._revisions: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for item in self._kinds[wanted]:
            repository = record_repository(item) if records else repository_of(item)
            self._revisions[name_of(item)[0], repository].append(revision_of(item) if records else item)

    async def repositories(self) -> Sequence[Json]:
        return list(in_namespaces(self._kinds["Repository"], self._namespaces))

    async def variants(self) -> Sequence[Json]:
        both = [*self._kinds["PackageVariant"], *self._kinds[_ANY_SET]]
        return list(in_namespaces(both, self._namespaces))

    async def revisions(self, namespace: str, repository: str) -> Sequence[Json]:
        return self._revisions.get((namespace, repository), [])

    async def find(self, api_version: str, kind: str, namespace: str, name: str) -> Json | None:
        return self._found.get((api_version, kind, namespace, name))

    async def files(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        item = self._found.get((API_VERSION, "PackageRevisionResources", namespace, name)) or {}
        spec = item.get("spec")
        resources = spec.get("resources") if isinstance(spec, dict) else None
        return resources if isinstance(resources, dict) else None


def _objects(folder: Path) -> list[Json]:
    if not folder.is_dir():
        raise BadSource(f"{folder} is no folder")
    paths = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    if len(paths) > MAX_FILES or sum(path.stat().st_size for path in paths) > MAX_BYTES:
        raise BadSource(
            f"{folder} holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB; take it over by namespaces"
        )
    found = [item for path in paths for document in _documents(path) for item in _items(document)]
    if len(found) > MAX_OBJECTS:
        raise BadSource(f"{folder} holds more than {MAX_OBJECTS} objects; take it over by namespaces")
    return [item for item in found if is_named(item)]


def _documents(path: Path) -> list[Any]:
    try:
        if path.suffix == ".json":
            return [orjson.loads(path.read_bytes())]
        return read_documents(path.read_bytes())
    except YamlError as error:
        raise BadSource(f"{path}: {error}; larger lists can be given as JSON (kubectl get -o json)") from error
    except (OSError, ValueError) as error:
        raise BadSource(f"{path}: {error}") from error


def _items(document: Any) -> list[Any]:
    """Return the objects of a list, or the one object that a document is."""
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]

"""Three-way merge of one file that holds resources or a Kptfile, by the rules of what it holds.

For who has three files and no package around them. Source: ``kpt.md`` 3.4–3.7.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from krm.package.contents import File
from krm.package.documents import Document, read_file
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.conflicts import Conflict
from krm.package.merge.document_merge import merge_documents
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.merge.resource_files import UnreadableFile
from krm.package.merge.resource_merge import merge_resources
from krm.package.yaml_reader import YamlError, read_documents

_FILE = "document.yaml"
"""The name of the file in messages."""


def merge_texts(
    origin: bytes,
    updated: bytes,
    local: bytes,
    *,
    crds: Iterable[bytes] = (),
    update_upstream: bool = False,
    infer: bool | None = None,
) -> tuple[bytes, tuple[Conflict, ...]]:
    """Return the merged file, empty when the resource is gone, and what both sides changed differently.

    A file without content is a state without the resource; a file of several documents is merged resource by
    resource, as it would be in a package. A local document of kind Kptfile is merged as one,
    for which alone ``update_upstream`` counts. ``crds`` are files with CustomResourceDefinitions,
    whose list keys hold besides those of Kubernetes. ``infer`` says whether lists whose elements all have a
    name are matched by it where no schema says so; None means: if the document has no apiVersion, so
    that it cannot have a schema.

    Raises:
        UnreadableFile: a file is not YAML.
        DuplicateResource: a file has two resources of one identity.
        KptfileError: a Kptfile cannot be read.
    """
    states = [_State.read(tree, data) for tree, data in (("origin", origin), ("updated", updated), ("local", local))]
    if _is_kptfile(states[2]):
        given = [state.data if state.documents else None for state in states]
        merged = merge_kptfiles(given[0], given[1], local, update_upstream=update_upstream)
        return merged.data, merged.conflicts
    data = [document.data for state in states for document in state.documents]
    if infer is None:
        infer = not any(isinstance(document, dict) and document.get("apiVersion") for document in data)
    definitions = [definition for text in crds for definition in _definitions(text)]
    lists = ListKeys.of_resources((*definitions, *data), infer=infer)
    if any(len(state.documents) > 1 for state in states):
        return _merged_resources(states, lists)
    result = merge_documents(*(state.text() for state in states), lists=lists)
    base = states[2] if states[2].documents else states[1]
    return base.with_text(result.text), result.conflicts


@dataclass(frozen=True, slots=True)
class _State:
    """One state of the file."""

    data: bytes
    pieces: list[str]
    documents: list[Document]
    """Those with content."""
    place: int
    """Of the first of them in ``pieces``."""

    @classmethod
    def read(cls, tree: str, data: bytes) -> "_State":
        try:
            pieces, documents = read_file(data)
        except YamlError as error:
            raise UnreadableFile(_FILE, tree, error) from None
        places = [place for place, document in enumerate(documents) if document.data is not None]
        return cls(data, pieces, [documents[place] for place in places], 2 * places[0] if places else 0)

    def text(self) -> str | None:
        """Return the text of the document, None when there is none."""
        return self.pieces[self.place] if self.documents else None

    def with_text(self, text: str | None) -> bytes:
        """Return the file with another text of its document; empty without one."""
        if text is None:
            return b""
        return "".join((*self.pieces[: self.place], text, *self.pieces[self.place + 1 :])).encode()


def _merged_resources(states: list[_State], lists: ListKeys) -> tuple[bytes, tuple[Conflict, ...]]:
    trees = ({_FILE: File(state.data)} if state.documents else {} for state in states)
    merged = merge_resources(*trees, lists=lists)
    file = merged.files.get(_FILE)
    return (file.data if file else b""), merged.conflicts


def _definitions(text: bytes) -> list[Any]:
    try:
        return read_documents(text)
    except YamlError as error:
        raise UnreadableFile("definitions", "crd", error) from None


def _is_kptfile(state: _State) -> bool:
    if len(state.documents) != 1 or not isinstance(state.documents[0].data, dict):
        return False
    data = state.documents[0].data
    return data.get("kind") == "Kptfile" and str(data.get("apiVersion")).startswith("kpt.dev/")

"""Three-way merge of one file that holds one resource or a Kptfile, by the rules of what it holds.

For who has three files and no package around them. Source: ``kpt.md`` 3.5–3.7.
"""

from collections.abc import Iterable
from typing import Any

from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.conflicts import Conflict
from krm.package.merge.document_merge import merge_documents
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.merge.resource_files import UnreadableFile
from krm.package.yaml_reader import YamlError, decoded, read_document, read_documents


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

    A file without content is a state without the resource. A local document of kind Kptfile is merged as one,
    for which alone ``update_upstream`` counts. ``crds`` are files with CustomResourceDefinitions,
    whose list keys hold besides those of Kubernetes. ``infer`` says whether lists whose elements all have a
    name are matched by it where no schema says so; None means: if the document has no apiVersion, so
    that it cannot have a schema.

    Raises:
        UnreadableFile: a file is not one YAML document.
        KptfileError: a Kptfile cannot be read.
    """
    texts = {"origin": origin, "updated": updated, "local": local}
    states = [_read(tree, text) for tree, text in texts.items()]
    if isinstance(states[2], dict) and _is_kptfile(states[2]):
        merged = merge_kptfiles(
            origin if states[0] is not None else None,
            updated if states[1] is not None else None,
            local,
            update_upstream=update_upstream,
        )
        return merged.data, merged.conflicts
    definitions = [definition for text in crds for definition in _definitions(text)]
    if infer is None:
        infer = not any(isinstance(state, dict) and state.get("apiVersion") for state in states)
    lists = ListKeys.of_resources((*definitions, *states), infer=infer)
    result = merge_documents(*map(decoded, (origin, updated, local)), lists=lists)
    return (result.text or "").encode(), result.conflicts


def _read(tree: str, text: bytes) -> Any:
    try:
        return read_document(text)
    except YamlError as error:
        raise UnreadableFile("document", tree, error) from None


def _definitions(text: bytes) -> list[Any]:
    try:
        return read_documents(text)
    except YamlError as error:
        raise UnreadableFile("document", "definitions", error) from None


def _is_kptfile(document: dict[str, Any]) -> bool:
    return document.get("kind") == "Kptfile" and str(document.get("apiVersion")).startswith("kpt.dev/")

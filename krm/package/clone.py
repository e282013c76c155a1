"""What a clone changes in the package it copies: its Kptfile, its context, its merge keys — nothing else.

Source: ``porch-api.md`` 3.3, ``kpt.md`` 3.3.
"""

import re
from collections.abc import Mapping
from typing import Any

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.documents import Document, read_file
from krm.package.kptfile_edit import KptfileEdit, edit_kptfile
from krm.package.kptfile_error import KptfileError
from krm.package.package_context import with_package_context
from krm.package.resource_identity import UPSTREAM_IDENTIFIER, Identity, identity_of, merge_comment
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import YamlError, read_document, same

_METADATA_LINE = re.compile(r"^metadata:[ \t]*(?=\r?$)", re.MULTILINE)
_METADATA_BLOCK = re.compile(r"^metadata:[^\n]*\n(?:[ \t]+[^\n]*\n)+", re.MULTILINE)
"""The section and its indented lines, complete ones only."""
_ALIAS = re.compile(r"[&*]")


def clone_package(
    contents: Contents,
    *,
    name: str,
    upstream: Mapping[str, Any],
    upstream_lock: Mapping[str, Any],
    context_path: str | None,
) -> dict[str, File]:
    """Return the clone of a package.

    ``name`` is the new Kptfile's; ``upstream`` and ``upstream_lock`` replace its sections (with them goes
    the update strategy). ``context_path`` is the package's path for the context of a deployment
    repository, None elsewhere. Merge keys are added as far as files can be read; a file that cannot
    be read is copied as it is.

    Raises:
        KptfileError: there is no Kptfile, or it cannot be edited.
    """
    kptfile = contents.get("Kptfile")
    if kptfile is None:
        raise KptfileError("Kptfile", f'package "{name}" is missing Kptfile')
    edit = KptfileEdit(name=name, upstream=_without_strategy(upstream), upstream_lock=upstream_lock)
    clone = {**contents, "Kptfile": File(edit_kptfile(kptfile.data, edit), kptfile.mode)}
    if context_path is not None:
        clone = with_package_context(clone, name, context_path)
    return add_merge_keys(clone)


def add_merge_keys(contents: Contents) -> dict[str, File]:
    """Record in every resource the identity it has now, unless an earlier clone did.

    A line comment ``kpt-merge`` on ``metadata``, which later renames do not touch, and the annotation
    made from it; the Kptfile has only the annotation.
    """
    return {path: _keyed(path, file) for path, file in contents.items()}


def _without_strategy(upstream: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in upstream.items() if key != "updateStrategy"}


def _keyed(path: str, file: File) -> File:
    base = path.rpartition("/")[2]
    if file.mode not in (REGULAR, EXECUTABLE) or not (base == "Kptfile" or base.endswith((".yaml", ".yml"))):
        return file
    try:
        pieces, documents = read_file(file.data)
        for place, document in enumerate(documents):
            pieces[2 * place] = _keyed_document(document, with_comment=base != "Kptfile")
    except YamlError:
        return file
    data = "".join(pieces).encode()
    return file if data == file.data else File(data, file.mode)


def _keyed_document(document: Document, *, with_comment: bool) -> str:
    data = document.data
    if not isinstance(data, dict) or not data.get("kind") or not _has_identity(data.get("metadata")):
        return document.text
    now = identity_of(data)
    comment = merge_comment(document.text) if with_comment else None
    namespace, name = comment or (now.namespace, now.name)
    metadata = data["metadata"]
    annotations = metadata.get("annotations")
    identifier = str(Identity(now.group, now.kind, namespace or "default", name))
    wanted = {
        **metadata,
        "annotations": {**(annotations if isinstance(annotations, dict) else {}), UPSTREAM_IDENTIFIER: identifier},
    }
    text = _with_metadata(document, wanted)
    if with_comment and comment is None:
        text = _METADATA_LINE.sub(lambda _: f"metadata: # kpt-merge: {now.namespace}/{now.name}", text, count=1)
    return text


def _with_metadata(document: Document, metadata: dict[str, Any]) -> str:
    """Change a document's metadata; apart from the rest of the text where possible, as CRDs are large."""
    found = _METADATA_BLOCK.search(document.text)
    if found is not None and not _ALIAS.search(found[0]):
        before = {"metadata": document.data["metadata"]}
        try:
            is_whole = same(read_document(found[0]), before)
        except YamlError:
            is_whole = False
        if is_whole:
            block = edit_document(found[0], {"metadata": metadata}, before)
            return document.text[: found.start()] + block + document.text[found.end() :]
    return edit_document(document.text, {**document.data, "metadata": metadata}, document.data)


def _has_identity(metadata: Any) -> bool:
    return isinstance(metadata, dict) and bool(
        metadata.get("name") or metadata.get("namespace") or metadata.get("labels")
    )

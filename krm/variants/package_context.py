"""A variant's keys in the package context.

Source: ``variants.md`` 2.9.1, C-28, C-29, C-38; seed 000, "Package context injection".
"""

from collections.abc import Mapping
from typing import Any

from krm.package.documents import Document, read_file
from krm.package.resource_identity import identity_of
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import YamlError, read_document
from krm.variants.mutation_error import MutationError
from krm.variants.string_map import with_strings
from krm.variants.variant import Variant
from krm.variants.vocabulary import CONTEXT_FILE, CONTEXT_NAME

_KIND = "ConfigMap"
_SUFFIXES = (".yaml", ".yml")


def context_edits(variant: Variant, named: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the file that the variant's context changes, by path; nothing when it says all of it already.

    Keys that are there keep their places, new ones follow in sorted order; a key both set and removed is gone.

    Args:
        variant: The variant.
        named: The package revision, ``namespace/name``, for messages.
        texts: The package's files.

    Raises:
        MutationError: the package has no context, or one without a map of data.
    """
    if not variant.context_data and not variant.context_remove:
        return {}
    path, pieces, place, document = _find(texts, named)
    text = _data(read_document(document.text, as_text=True), named)
    wanted = {key: variant.context_data.get(key, value) for key, value in text.items()}
    wanted |= {key: variant.context_data[key] for key in sorted(variant.context_data.keys() - text.keys())}
    for key in variant.context_remove:
        wanted.pop(key, None)
    if wanted == text:
        return {}
    edited = {**document.data, "data": with_strings(document.data["data"], text, wanted)}
    pieces[2 * place] = edit_document(document.text, edited, document.data)
    return {path: "".join(pieces)}


def _find(texts: Mapping[str, str], named: str) -> tuple[str, list[str], int, Document]:
    """Return the context's path, the pieces of that file, and which of its documents the context is."""
    for path in _candidates(texts):
        try:
            pieces, documents = read_file(texts[path].encode())
        except YamlError as error:
            raise MutationError(f"{path}: {error}") from None
        maps = [
            one for one in enumerate(documents) if isinstance(one[1].data, dict) and one[1].data.get("kind") == _KIND
        ]
        for place, document in maps:
            if identity_of(document.data).name == CONTEXT_NAME:
                return path, pieces, place, document
        if path == CONTEXT_FILE:
            missing = f'resource named "{CONTEXT_NAME}"' if maps else f'kind "{_KIND}"'
            raise MutationError(f"\"{path}\" does not contain {missing} in PackageRevisionResources '{named}'")
    raise MutationError(f"\"{CONTEXT_FILE}\" not found in PackageRevisionResources '{named}'")


def _candidates(texts: Mapping[str, str]) -> list[str]:
    """Return the files of the root package that may hold the context: the usual one alone if it is there."""
    if CONTEXT_FILE in texts:
        return [CONTEXT_FILE]
    return sorted(
        path for path, text in texts.items() if "/" not in path and path.endswith(_SUFFIXES) and CONTEXT_NAME in text
    )


def _data(context: Any, named: str) -> dict[str, Any]:
    data = context.get("data")
    if data is None:
        raise MutationError(f"PackageRevisionResources {named} PackageContext no data field found")
    if not isinstance(data, dict):
        form = "a list" if isinstance(data, list) else "a scalar"
        raise MutationError(f"PackageRevisionResources {named} PackageContext invalid data field: {form}, not a map")
    return data

"""The package context: the ConfigMap that tells functions what the package is called and where it lies.

Source: ``kpt.md`` 1.9, ``porch-api.md`` 3.3, ``decisions.md`` 16.
"""

from typing import Any

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.documents import read_file
from krm.package.yaml_edit_text import edit_document, new_document
from krm.package.yaml_reader import YamlError, plain_copy

CONTEXT_PATH = "package-context.yaml"
CONTEXT_NAME = "kptfile.kpt.dev"
"""The ConfigMap's name, wherever it lies."""


def new_package_context(data: dict[str, str]) -> str:
    """Write a package context with ``data``."""
    return new_document(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONTEXT_NAME, "annotations": {"config.kubernetes.io/local-config": "true"}},
            "data": data,
        }
    )


def is_package_context(data: Any) -> bool:
    """Say whether a document is a package context."""
    if not isinstance(data, dict) or data.get("kind") != "ConfigMap" or data.get("apiVersion") != "v1":
        return False
    metadata = data.get("metadata")
    return isinstance(metadata, dict) and metadata.get("name") == CONTEXT_NAME


def with_package_context(contents: Contents, name: str, package_path: str) -> dict[str, File]:
    """Set name and package path in the root package's context, creating it when there is none.

    Other keys and comments of an existing context stay, and so do the contexts of subpackages.
    """
    new = dict(contents)
    wanted = {"name": name, "package-path": package_path}
    for path in _candidates(contents):
        file = contents[path]
        edited = _with_context(file.data, wanted)
        if edited is not None:
            new[path] = File(edited, file.mode)
            return new
    # A file of that name that holds something else is written over, as upstream's generator does.
    new[CONTEXT_PATH] = File(new_package_context(wanted).encode())
    return new


def package_path(contents: Contents) -> str:
    """Return the package path that the root package's context names, "" where there is none."""
    for path in _candidates(contents):
        try:
            _, documents = read_file(contents[path].data)
        except YamlError:
            continue
        for document in documents:
            if is_package_context(document.data):
                data = plain_copy(document.data).get("data")
                return str(data.get("package-path") or "") if isinstance(data, dict) else ""
    return ""


def _candidates(contents: Contents) -> list[str]:
    """Return the root package's files that may hold the context, the usual one first."""
    named = [
        path
        for path, file in contents.items()
        if "/" not in path
        and path.endswith((".yaml", ".yml"))
        and file.mode in (REGULAR, EXECUTABLE)
        and CONTEXT_NAME.encode() in file.data
    ]
    return sorted(named, key=lambda path: (path != CONTEXT_PATH, path))


def _with_context(data: bytes, wanted: dict[str, str]) -> bytes | None:
    try:
        pieces, documents = read_file(data)
    except YamlError:
        return None
    found = False
    for place, document in enumerate(documents):
        if is_package_context(document.data):
            found = True
            context: dict[str, Any] = plain_copy(document.data)
            old = context.get("data")
            context["data"] = {**(old if isinstance(old, dict) else {}), **wanted}
            pieces[2 * place] = edit_document(document.text, context, document.data)
    return "".join(pieces).encode() if found else None

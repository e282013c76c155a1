"""Putting a function into a Kptfile's pipeline, comments and order kept. Source: ``kpt.md`` 2.16."""

from typing import Any

from krm.functions.images import DEFAULT_PREFIX, parse_image
from krm.package.documents import read_file
from krm.package.kptfile import Function, Selector
from krm.package.kptfile_error import KptfileError
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import YamlError, plain_copy

_AFTER_PIPELINE = ("inventory", "status")
"""Sections of a Kptfile that follow the pipeline."""


def save_function(data: bytes, function: Function, kind: str, *, prefix: str = DEFAULT_PREFIX) -> tuple[bytes, bool]:
    """Add ``function`` to the list ``kind`` (``mutators`` or ``validators``) of a Kptfile.

    An entry of the same image, whatever its tag, or of the same command is replaced, but for its name. Returns
    the Kptfile, and whether an entry was replaced; doing it again changes nothing.

    Raises:
        KptfileError: the file is no Kptfile whose pipeline could be changed.
    """
    try:
        pieces, documents = read_file(data)
        present = [place for place, document in enumerate(documents) if document.data is not None]
        if len(present) != 1 or not isinstance(documents[present[0]].data, dict):
            raise KptfileError("Kptfile", "a Kptfile is one document that is a mapping")
        document = documents[present[0]]
        wanted = plain_copy(document.data)
        is_update = _put(wanted, _entry(function), kind, prefix)
        pieces[2 * present[0]] = edit_document(document.text, wanted, document.data)
    except YamlError as error:
        raise KptfileError("Kptfile", str(error), line=error.line) from None
    return "".join(pieces).encode(), is_update


def _put(kptfile: dict[str, Any], entry: dict[str, Any], kind: str, prefix: str) -> bool:
    if not kptfile.get("pipeline"):
        following = {key: kptfile.pop(key) for key in _AFTER_PIPELINE if key in kptfile}
        kptfile.pop("pipeline", None)
        kptfile.update({"pipeline": {}, **following})
    pipeline = kptfile["pipeline"]
    functions = pipeline.get(kind) or [] if isinstance(pipeline, dict) else None
    if not isinstance(functions, list):
        raise KptfileError("Kptfile", f"the {kind} are not a list", key=f"pipeline.{kind}")
    pipeline[kind] = functions
    for place, old in enumerate(functions):
        if isinstance(old, dict) and _identity(old, prefix) == _identity(entry, prefix):
            functions[place] = {**entry, **({"name": old["name"]} if old.get("name") else {})}
            return True
    functions.append(entry)
    return False


def _identity(entry: dict[str, Any], prefix: str) -> tuple[str, str]:
    image = entry.get("image")
    try:
        return (parse_image(image, prefix=prefix).name if isinstance(image, str) else ""), str(entry.get("exec") or "")
    except ValueError:
        return str(image), ""


def _entry(function: Function) -> dict[str, Any]:
    fields = {
        "image": function.image,
        "exec": function.exec,
        "configPath": function.config_path,
        "configMap": function.config_map,
        "selectors": list(map(_selector, function.selectors)),
        "exclude": list(map(_selector, function.exclude)),
    }
    return {key: value for key, value in fields.items() if value}


def _selector(selector: Selector) -> dict[str, Any]:
    fields = {
        "apiVersion": selector.api_version,
        "kind": selector.kind,
        "name": selector.name,
        "namespace": selector.namespace,
        "labels": dict(selector.labels),
        "annotations": dict(selector.annotations),
    }
    return {key: value for key, value in fields.items() if value}

"""Changing a Kptfile without touching what is not meant: comments, order and layout stay.

Source: ``kpt.md`` 1.1 and 2.12 for the fields, ``decisions.md`` 11 for the way.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from krm.package.documents import Document, read_file
from krm.package.kptfile_error import KptfileError
from krm.package.kptfile_schema import SECTIONS
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import YamlError, plain_copy, read_document

_METADATA_ORDER = ("name", "namespace", "labels", "annotations")
_INFO_ORDER = ("site", "emails", "license", "licenseFile", "description", "keywords", "man", "readinessGates")
_PIPELINE_ORDER = ("mutators", "validators")
_CONDITION_ORDER = ("type", "status", "reason", "message")
_LOCATOR_ORDER = ("type", "git", "generic", "updateStrategy", "repo", "directory", "ref", "commit")


@dataclass(frozen=True, slots=True)
class RenderedStatus:
    """What rendering leaves in the root Kptfile: the ``Rendered`` condition and ``status.renderStatus``."""

    succeeded: bool = True
    message: str = ""
    """Of a failure: the chain of errors."""
    render_status: Mapping[str, Any] | None = None
    """Steps and results; None when no function ran, which removes the field."""

    def condition(self) -> dict[str, str]:
        """Return the condition."""
        if self.succeeded:
            return {"type": "Rendered", "status": "True", "reason": "RenderSuccess"}
        return {"type": "Rendered", "status": "False", "reason": "RenderFailed", "message": self.message}


@dataclass(frozen=True, slots=True)
class KptfileEdit:
    """The changes to make; None leaves a field as it is."""

    name: str | None = None
    upstream: Mapping[str, Any] | None = None
    """Replaces the section; an empty one removes it."""
    upstream_lock: Mapping[str, Any] | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    replace_metadata: bool = False
    """Whether ``labels`` and ``annotations`` are the whole maps, or added to what is there."""
    readiness_gates: Sequence[str] | None = None
    """Replaces the list."""
    conditions: Sequence[Mapping[str, str]] | None = None
    """Replaces the list."""
    pipeline: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    """Replaces the lists named (mutators, validators); lists without functions go, and so does an empty section."""
    rendered: RenderedStatus | None = None


def edit_kptfile(data: bytes, edit: KptfileEdit) -> bytes:
    """Apply ``edit``; the very same bytes come back when it changes nothing.

    Raises:
        KptfileError: the file is not one YAML mapping, or a section to be changed is not a mapping.
    """
    try:
        pieces, documents = read_file(data)
        present = [place for place, document in enumerate(documents) if document.data is not None]
        if len(present) != 1 or not isinstance(documents[present[0]].data, dict):
            raise KptfileError("Kptfile", "a Kptfile is one document that is a mapping")
        document = documents[present[0]]
        wanted = _edited(document.data, _AsText(document), edit)
        pieces[2 * present[0]] = edit_document(document.text, wanted, document.data)
    except YamlError as error:
        raise KptfileError("Kptfile", str(error), line=error.line) from None
    return "".join(pieces).encode()


def _edited(data: dict[str, Any], as_text: "_AsText", edit: KptfileEdit) -> dict[str, Any]:
    """Return the wanted data; ``as_text`` is what typed fields decode to, so equal text is no change."""
    wanted: dict[str, Any] = plain_copy(data)
    metadata = _Section(wanted, as_text, "metadata", _METADATA_ORDER)
    if edit.name is not None and metadata.text.get("name") != edit.name:
        metadata.put("name", edit.name)
    for key, values in (("labels", edit.labels), ("annotations", edit.annotations)):
        if values is not None:
            _put_map(metadata, key, values, replace=edit.replace_metadata)
    for key, locator in (("upstream", edit.upstream), ("upstreamLock", edit.upstream_lock)):
        if locator is not None and as_text.get(key) != locator:
            wanted = _with(wanted, key, _ordered(locator, _LOCATOR_ORDER), SECTIONS)
    if edit.readiness_gates is not None:
        info = _Section(wanted, as_text, "info", _INFO_ORDER)
        info.put("readinessGates", [{"conditionType": gate} for gate in edit.readiness_gates])
        wanted = info.root
    if edit.pipeline is not None:
        pipeline = _Section(wanted, as_text, "pipeline", _PIPELINE_ORDER)
        pipeline.put_lists(edit.pipeline)
        wanted = pipeline.root
    return _with_status(wanted, as_text, edit)


def _with_status(wanted: dict[str, Any], as_text: "_AsText", edit: KptfileEdit) -> dict[str, Any]:
    if edit.conditions is None and edit.rendered is None:
        return wanted
    status = _Section(wanted, as_text, "status", ("conditions", "renderStatus"))
    conditions = status.text.get("conditions") or []
    if edit.conditions is not None:
        known = set(map(_canonical, conditions))
        conditions = [one if _canonical(one) in known else _ordered(one, _CONDITION_ORDER) for one in edit.conditions]
    if edit.rendered is not None:
        condition = edit.rendered.condition()
        if [old for old in conditions if old and old.get("type") == "Rendered"] != [condition]:
            conditions = [old for old in conditions if not old or old.get("type") != "Rendered"] + [condition]
        status.put("renderStatus", plain_copy(dict(edit.rendered.render_status or {})), compare_text=False)
    status.put("conditions", conditions)
    return status.root


class _AsText:
    """What a Kptfile's typed fields decode to; read only when a section that exists is asked for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._data: dict[str, Any] | None = None

    def get(self, name: str) -> Any:
        """Return a section, None when it is absent."""
        if name not in self._document.data:
            return None
        if self._data is None:
            data: dict[str, Any] = read_document(self._document.text, as_text=True)
            self._data = data
        return self._data.get(name)


class _Section:
    """A top-level mapping of the wanted data, beside its text form, that is put in place on first use."""

    def __init__(self, root: dict[str, Any], as_text: "_AsText", name: str, order: Sequence[str]) -> None:
        value = root.get(name)
        if value is not None and not isinstance(value, dict):
            raise KptfileError("Kptfile", "the section is not a mapping", key=name)
        self.root = root
        self.text: dict[str, Any] = as_text.get(name) or {}
        self._name = name
        self._order = order

    def put(self, key: str, value: Any, *, compare_text: bool = True) -> None:
        """Set a field, or remove it when ``value`` is empty, unless its text says the same already."""
        if compare_text and (self.text.get(key) or None) == (value or None):
            return
        section = self.root.get(self._name) or {}
        if isinstance(value, list):
            value = _as_written(value, section.get(key), self.text.get(key))
        data = _with(section, key, value, self._order)
        changed = _with(self.root, self._name, data, SECTIONS)
        # In place: callers hold the root.
        self.root.clear()
        self.root.update(changed)

    def put_lists(self, lists: Mapping[str, Sequence[Any]]) -> None:
        """Set lists; when that changes anything, empty ones are left nowhere in the section."""
        for key in self._order:
            if not isinstance(self.text.get(key) or [], list):
                raise KptfileError("Kptfile", "the section is not a list", key=f"{self._name}.{key}")
        if all((self.text.get(key) or []) == list(items) for key, items in lists.items()):
            return
        for key in self._order:
            items = list(lists.get(key, self.text.get(key)) or ())
            self.put(key, items, compare_text=bool(items))


def _as_written(items: list[Any], data: Any, text: Any) -> list[Any]:
    """Return ``items``, those that read as an item of the list there is (``text``) as that is written (``data``)."""
    if not data or not isinstance(text, list):
        return items
    written: dict[str, list[Any]] = {}
    for item, value in zip(reversed(text), reversed(data), strict=True):
        written.setdefault(_canonical(item), []).append(value)
    return [values.pop() if (values := written.get(_canonical(item))) else item for item in items]


def _canonical(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _put_map(metadata: _Section, key: str, values: Mapping[str, str], *, replace: bool) -> None:
    old: dict[str, Any] = metadata.text.get(key) or {}
    if replace:
        kept = {name: values[name] for name in old if name in values}
        new = {**kept, **values}
    else:
        new = {**old, **values}
    if new != old:
        current = (metadata.root.get("metadata") or {}).get(key) or {}
        metadata.put(
            key, {name: current[name] if name in old and old[name] == new[name] else new[name] for name in new}
        )


def _with(mapping: dict[str, Any], key: str, value: Any, order: Sequence[str]) -> dict[str, Any]:
    """Return ``mapping`` with ``key`` set, or without it when ``value`` is empty; new keys go by ``order``."""
    if not value:
        return {name: item for name, item in mapping.items() if name != key}
    if key in mapping:
        return {**mapping, key: value}
    before = order[: order.index(key)]
    place = max((i + 1 for i, name in enumerate(mapping) if name in before), default=0)
    items = list(mapping.items())
    items.insert(place, (key, value))
    return dict(items)


def _ordered(mapping: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """Copy with the keys in ``order``, and without empty values."""
    names = sorted(mapping, key=lambda name: order.index(name) if name in order else len(order))
    return {
        name: _ordered(mapping[name], order) if isinstance(mapping[name], dict) else mapping[name]
        for name in names
        if mapping[name]
    }

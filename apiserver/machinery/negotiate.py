"""Which form a client wants its answer in: JSON or YAML, as the object, a Table or metadata only.

Source: ``kube-api.md`` 1.8.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from krm.meta.errors import NotAcceptable

META_GROUP = "meta.k8s.io"
_META_VERSIONS = ("v1", "v1beta1")
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_MAX_CLAUSES = 32
"""Accept clauses looked at; kubectl sends three."""


class View(StrEnum):
    """What of an object is shown."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


class Shape(StrEnum):
    """What an answer holds, which decides the transforms it allows."""

    ITEM = "item"
    LIST = "list"
    WATCH = "watch"


@dataclass(frozen=True, slots=True)
class Form:
    """The form agreed on; ``meta_version`` is the version of meta.k8s.io asked for."""

    view: View = View.OBJECT
    yaml: bool = False
    pretty: bool = False
    meta_version: str = "v1"


@dataclass(frozen=True, slots=True)
class _Clause:
    media_type: str
    parameters: dict[str, str]
    quality: float

    @property
    def specificity(self) -> int:
        if self.media_type == "*/*":
            return 0
        return 1 if self.media_type.endswith("/*") else 2


def negotiate(accept: str, shape: Shape, *, pretty: str = "", agent: str = "") -> Form:
    """Choose the form for an ``Accept`` header; ``pretty`` is the query parameter, ``agent`` the User-Agent.

    Raises:
        NotAcceptable: nothing that the client takes can be served.
    """
    form = _chosen(accept, shape)
    if shape is Shape.WATCH or pretty in ("false", "0"):
        return form
    if pretty or agent.startswith(_PRETTY_AGENTS):
        return Form(form.view, form.yaml, True, form.meta_version)
    return form


@lru_cache(maxsize=512)
def _chosen(accept: str, shape: Shape) -> Form:
    if not accept.strip():
        return Form()
    clauses = [_clause(text) for text in accept.split(",")[:_MAX_CLAUSES]]
    clauses.sort(key=lambda clause: (-clause.quality, -clause.specificity))
    for clause in clauses:
        if clause.quality > 0 and (form := _match(clause, shape)) is not None:
            return form
    formats = ["application/json"] if shape is Shape.WATCH else ["application/json", "application/yaml"]
    suffix = ";stream=watch" if shape is Shape.WATCH else ""
    names = ", ".join(name + suffix for name in formats)
    raise NotAcceptable(f"only the following media types are accepted: {names}")


def _clause(text: str) -> _Clause:
    media_type, *rest = text.split(";")
    parameters: dict[str, str] = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 1.0
    return _Clause(media_type.strip().lower(), parameters, quality)


def _match(clause: _Clause, shape: Shape) -> Form | None:
    if clause.media_type in ("application/json", "application/*", "*/*"):
        yaml = False
    elif clause.media_type == "application/yaml" and shape is not Shape.WATCH:
        yaml = True
    else:
        return None
    if clause.parameters.get("stream", "watch") != "watch":
        return None
    view = _view(clause.parameters, shape)
    if view is None:
        return None
    version = clause.parameters.get("v", "v1") if view is not View.OBJECT else "v1"
    return Form(view, yaml, clause.parameters.get("pretty") == "1", version)


def _view(parameters: dict[str, str], shape: Shape) -> View | None:
    """Return the view a clause asks for, or None if that cannot be had here."""
    wanted = parameters.get("as", "")
    if not wanted:
        return View.OBJECT
    if parameters.get("g") != META_GROUP or parameters.get("v") not in _META_VERSIONS:
        return None
    if wanted == "Table":
        return View.TABLE
    metadata = "PartialObjectMetadataList" if shape is Shape.LIST else "PartialObjectMetadata"
    return View.METADATA if wanted == metadata else None

"""Reading a Kptfile: what the server needs to know of it, strictly decoded.

Changing one is ``kptfile_edit``'s business. Source: ``kpt.md`` 1.1–1.4.
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from krm.package.kptfile_edit import KptfileEdit, RenderedStatus, edit_kptfile
from krm.package.kptfile_error import KptfileError
from krm.package.kptfile_schema import decoder_message, find_faults, lines_of
from krm.package.yaml_reader import DuplicateKey, YamlError, read_documents

__all__ = [
    "Function",
    "Kptfile",
    "KptfileEdit",
    "KptfileError",
    "RenderedStatus",
    "Selector",
    "edit_kptfile",
    "parse_kptfile",
]

_MOST_FAULTS = 20
"""That one message names."""
_OLD_VERSIONS = ("kpt.dev/v1alpha1", "kpt.dev/v1alpha2")


@dataclass(frozen=True, slots=True)
class Selector:
    """Which resources a function sees: all fields that are given must match, exactly."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Function:
    """One step of a pipeline."""

    image: str = ""
    exec: str = ""
    config_path: str | None = None
    config_map: dict[str, str] | None = None
    name: str = ""
    tag: str = ""
    selectors: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()


@dataclass(frozen=True, slots=True)
class Kptfile:
    """A decoded Kptfile; all scalars are text."""

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    upstream: dict[str, Any] | None
    upstream_lock: dict[str, Any] | None
    info: dict[str, Any]
    readiness_gates: tuple[str, ...]
    conditions: tuple[dict[str, str], ...]
    mutators: tuple[Function, ...]
    validators: tuple[Function, ...]
    raw: dict[str, Any]
    """The whole document; scalars are text, nulls are None."""


def parse_kptfile(data: bytes, path: str = "Kptfile") -> Kptfile:
    """Decode a Kptfile; ``path`` is where it stands, for messages.

    Raises:
        KptfileError: not YAML, another kind or an old version, an unknown key or a wrong type.
    """
    raw = _decode(data, path)
    metadata = raw.get("metadata") or {}
    info = raw.get("info") or {}
    pipeline = raw.get("pipeline") or {}
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return Kptfile(
        name=metadata.get("name") or "",
        labels=_text_map(metadata.get("labels")),
        annotations=_text_map(metadata.get("annotations")),
        upstream=raw.get("upstream"),
        upstream_lock=raw.get("upstreamLock"),
        info=info,
        readiness_gates=tuple(gate.get("conditionType") or "" for gate in info.get("readinessGates") or () if gate),
        conditions=tuple(_condition(condition) for condition in conditions if condition),
        mutators=tuple(_function(function or {}) for function in pipeline.get("mutators") or ()),
        validators=tuple(_function(function or {}) for function in pipeline.get("validators") or ()),
        raw=raw,
    )


def _decode(data: bytes, path: str) -> dict[str, Any]:
    try:
        documents = read_documents(data, as_text=True)
    except DuplicateKey as error:
        # A typed decoder finds it, as it finds unknown keys.
        raise KptfileError(path, decoder_message([(error.line, error.problem)]), line=error.line) from None
    except YamlError as error:
        raise KptfileError(path, str(error), line=error.line) from None
    if len(documents) != 1:
        raise KptfileError(path, f"a Kptfile is one document, this file has {len(documents)}")
    raw = documents[0]
    if not isinstance(raw, dict):
        raise KptfileError(path, "the document is not a mapping")
    version, kind = raw.get("apiVersion"), raw.get("kind")
    if version != "kpt.dev/v1" or kind != "Kptfile":
        raise KptfileError(path, _version_problem(version, kind), key="apiVersion" if kind == "Kptfile" else "kind")
    if faults := list(islice(find_faults(raw), _MOST_FAULTS)):
        lines = lines_of(faults, data)
        problem = decoder_message(zip(lines, (fault.problem for fault in faults), strict=True))
        raise KptfileError(path, problem, key=_dotted(faults[0].path), line=lines[0])
    return raw


def _version_problem(version: Any, kind: Any) -> str:
    if kind == "Kptfile" and version in _OLD_VERSIONS:
        old = version.removeprefix("kpt.dev/")
        return f'Kptfile has an old version ("{old}") of the Kptfile schema; upgrade it to kpt.dev/v1'
    return f'unknown resource type: apiVersion "{version or ""}", kind "{kind or ""}"; expected kpt.dev/v1, Kptfile'


def _dotted(path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _text_map(data: dict[str, Any] | None) -> dict[str, str]:
    return {key: value or "" for key, value in data.items()} if data else {}


def _condition(data: dict[str, Any]) -> dict[str, str]:
    condition = _text_map(data)
    if "status" in condition:
        condition["status"] = condition_status(condition["status"])
    return condition


def condition_status(text: str) -> str:
    """Return ``True``, ``False`` or ``Unknown`` for any spelling; what is no status is Unknown."""
    word = text.capitalize()
    return word if word in ("True", "False") else "Unknown"


def _function(data: dict[str, Any]) -> Function:
    config_map = data.get("configMap")
    return Function(
        image=data.get("image") or "",
        exec=data.get("exec") or "",
        config_path=data.get("configPath"),
        config_map=None if config_map is None else _text_map(config_map),
        name=data.get("name") or "",
        tag=data.get("tag") or "",
        selectors=tuple(_selector(selector or {}) for selector in data.get("selectors") or ()),
        exclude=tuple(_selector(selector or {}) for selector in data.get("exclude") or ()),
    )


def _selector(data: dict[str, Any]) -> Selector:
    return Selector(
        api_version=data.get("apiVersion") or "",
        kind=data.get("kind") or "",
        name=data.get("name") or "",
        namespace=data.get("namespace") or "",
        labels=_text_map(data.get("labels")),
        annotations=_text_map(data.get("annotations")),
    )

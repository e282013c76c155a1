"""Definitions of the core kinds: ConfigMap, Secret, Namespace, Event; their columns and their rules.

Source: ``kube-api.md`` 2.6, 2.14 and 2.16.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from krm.api.core import ConfigMap, Event, Namespace, Secret
from krm.meta.errors import Cause, forbidden_value, invalid_value, required_value

MAX_DATA_BYTES: Final = 1024 * 1024
"""All values of a ConfigMap or Secret together, decoded."""
MAX_KEY_LENGTH: Final = 253
NAMESPACE_FINALIZER: Final = "kubernetes"
"""Holds a namespace until everything in it is gone."""
NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label by which selectors can tell namespaces; always the name."""

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_OPAQUE: Final = "Opaque"
_REQUIRED_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}


def core_definitions() -> list[Definition]:
    """Return the definitions of the core kinds, Namespace first."""
    return [namespace_definition(), config_map_definition(), secret_definition(), event_definition()]


def path_value(*path: str) -> Callable[[Json], Any]:
    """Return an extractor of the value at a path; None where anything on the way is missing."""

    def extract(obj: Json) -> Any:
        value: Any = obj
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return extract


def path_text(*path: str) -> Callable[[Json], str]:
    """Return an extractor of the text at a path, "" where it is missing; for field selectors."""
    extract = path_value(*path)
    return lambda obj: str(extract(obj) or "")


AGE: Final = Column("Age", "date", path_value("metadata", "creationTimestamp"), "Time since the object was created.")


def config_map_definition() -> Definition:
    """Define ConfigMap."""
    return Definition(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        singular="configmap",
        short_names=("cm",),
        schema=structural_schema(ConfigMap),
        columns=(Column("Data", "string", _count("data", "binaryData"), "Number of keys."), AGE),
        strategic=True,
        unconditional_update=True,
        generation=False,
        validate=_validate_config_map,
    )


def secret_definition() -> Definition:
    """Define Secret; its bodies are sealed where they are stored."""
    return Definition(
        group="",
        version="v1",
        kind="Secret",
        plural="secrets",
        singular="secret",
        schema=structural_schema(Secret),
        columns=(
            Column("Type", "string", path_value("type"), "What kind of secret it is."),
            Column("Data", "string", _count("data"), "Number of keys."),
            AGE,
        ),
        selectable={"type": path_text("type")},
        strategic=True,
        unconditional_update=True,
        generation=False,
        sealed=True,
        prepare=_prepare_secret,
        validate=_validate_secret,
    )


def namespace_definition() -> Definition:
    """Define Namespace; its life is in ``namespaces.py``."""
    return Definition(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        singular="namespace",
        namespaced=False,
        short_names=("ns",),
        schema=structural_schema(Namespace),
        columns=(Column("Status", "string", path_value("status", "phase"), "Active or Terminating."), AGE),
        status=True,
        selectable={"status.phase": path_text("status", "phase")},
        strategic=True,
        merge_keys={"status.conditions": "type"},
        unconditional_update=True,
        generation=False,
        label_name=True,
        delete_collection=False,
        prepare=_prepare_namespace,
    )


def event_definition() -> Definition:
    """Define Event."""
    involved = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    selectable = {f"involvedObject.{name}": path_text("involvedObject", name) for name in involved}
    selectable |= {name: path_text(name) for name in ("reason", "reportingComponent", "type")}
    selectable["source"] = _event_source
    return Definition(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        short_names=("ev",),
        schema=structural_schema(Event),
        columns=(
            Column("Last Seen", "date", _last_seen, "Time since it last happened."),
            Column("Type", "string", path_value("type"), "Normal or Warning."),
            Column("Reason", "string", path_value("reason"), "What happened, as one word."),
            Column("Object", "string", _event_object, "What it happened to."),
            Column("Message", "string", path_value("message"), "What happened."),
        ),
        selectable=selectable,
        strategic=True,
        unconditional_update=True,
        create_on_update=True,
        generation=False,
        validate=_validate_event,
    )


def _count(*fields: str) -> Callable[[Json], int]:
    return lambda obj: sum(len(obj.get(name) or ()) for name in fields)


# --- ConfigMap and Secret ---------------------------------------------------------------------


def _validate_config_map(new: Json, old: Json | None) -> list[Cause]:
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    causes = [*_key_problems("data", data), *_key_problems("binaryData", binary)]
    causes += [
        invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + _decoded_size(binary)
    causes += _size_problems("", size)
    return causes + _immutable_problems(new, old, ("data", "binaryData"))


def _prepare_secret(new: Json, old: Json | None) -> None:
    texts = new.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        new["data"] = {**(new.get("data") or {}), **encoded}
    if not new.get("type"):
        new["type"] = (old or {}).get("type") or _OPAQUE


def _validate_secret(new: Json, old: Json | None) -> list[Cause]:
    data = new.get("data") or {}
    causes = [*_key_problems("data", data), *_size_problems("data", _decoded_size(data))]
    detail = f"a Secret of type {new['type']} needs this key"
    needed = _REQUIRED_KEYS.get(new["type"], ())
    causes += [required_value(f"data[{key}]", detail) for key in needed if key not in data]
    if new["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        causes += [required_value(f"data[{key}]") for key in ("username", "password")]
    if old is not None and old.get("type") != new["type"]:
        causes.append(invalid_value("type", new["type"], "field is immutable"))
    return causes + _immutable_problems(new, old, ("data",))


def _key_problems(field: str, data: Json) -> Iterator[Cause]:
    for key in data:
        if len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key) or key in (".", "..") or key.startswith(".."):
            detail = f"a key is at most {MAX_KEY_LENGTH} letters, digits, '-', '_' or '.', and does not start with '..'"
            yield invalid_value(f"{field}[{key[:MAX_KEY_LENGTH]}]", key[:MAX_KEY_LENGTH], detail)


def _decoded_size(data: Mapping[str, str]) -> int:
    return sum(len(value) * 3 // 4 for value in data.values())


def _size_problems(field: str, size: int) -> list[Cause]:
    if size <= MAX_DATA_BYTES:
        return []
    return [Cause("FieldValueTooLong", f"Too long: may not be more than {MAX_DATA_BYTES} bytes", field)]


def _immutable_problems(new: Json, old: Json | None, fields: Sequence[str]) -> list[Cause]:
    if old is None or not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    causes = [] if new.get("immutable") else [forbidden_value("immutable", detail)]
    changed = [name for name in fields if (new.get(name) or {}) != (old.get(name) or {})]
    return causes + [forbidden_value(name, detail) for name in changed]


# --- Namespace --------------------------------------------------------------------------------


def _prepare_namespace(new: Json, old: Json | None) -> None:
    metadata = new["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}
    if old is None:
        new["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        new["status"] = {"phase": "Active"}
    else:
        # Only the finalize subresource may change what holds a namespace.
        new["spec"] = old.get("spec") or {}


# --- Event ------------------------------------------------------------------------------------


def _event_source(event: Json) -> str:
    source = event.get("source") or {}
    return str(source.get("component") or event.get("reportingComponent") or "")


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or {}
    return f"{str(involved.get('kind') or '').lower()}/{involved.get('name') or ''}"


def _last_seen(event: Json) -> str | None:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(time) for time in times if time), event["metadata"].get("creationTimestamp"))


def _validate_event(new: Json, _old: Json | None) -> list[Cause]:
    namespace = new["metadata"].get("namespace") or ""
    involved = (new.get("involvedObject") or {}).get("namespace") or ""
    if involved == namespace or (not involved and namespace == "default"):
        return []
    return [invalid_value("involvedObject.namespace", involved, "does not match event.namespace")]

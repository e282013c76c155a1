"""Definitions of ConfigMap, Secret and Namespace, their columns and their rules; the list of all core kinds.

Source: ``kube-api.md`` 2.6, 2.14 and 2.16. The sentences of causes are those that Kubernetes' clients know.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import BUILT_IN_AGE, count_of, path_text, path_value
from apiserver.resources.event_kinds import event_definition
from apiserver.resources.leases import lease_definition
from apiserver.resources.object_metadata import finalizer_name_problem
from apiserver.resources.service_accounts import service_account_definition
from krm.api.core import ConfigMap, Namespace, Secret
from krm.meta.errors import Cause, forbidden_value, invalid_value, required_value

MAX_DATA_BYTES: Final = 1024 * 1024
"""All values of a ConfigMap or Secret together, decoded."""
MAX_KEY_LENGTH: Final = 253
NAMESPACE_FINALIZER: Final = "kubernetes"
"""Holds a namespace until everything in it is gone."""
NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label by which selectors can tell namespaces; always the name."""
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
"""Annotation of a token Secret that names its service account."""

_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_BAD_KEY: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_OPAQUE: Final = "Opaque"
_BASIC_AUTH: Final = "kubernetes.io/basic-auth"
_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - the name of a type
_SSH_KEY: Final = "ssh-privatekey"
_REQUIRED_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")


def core_definitions() -> list[Definition]:
    """Return the definitions of the core kinds and of Lease, Namespace first."""
    return [
        namespace_definition(),
        config_map_definition(),
        secret_definition(),
        service_account_definition(),
        lease_definition(),
        event_definition(),
    ]


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
        columns=(Column("Data", "string", count_of("data", "binaryData"), "Number of keys."), BUILT_IN_AGE),
        strategic=True,
        unconditional_update=True,
        generation=False,
        prepare=_prepare_config_map,
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
            Column("Data", "string", count_of("data"), "Number of keys."),
            BUILT_IN_AGE,
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
        columns=(Column("Status", "string", path_value("status", "phase"), "Active or Terminating."), BUILT_IN_AGE),
        status=True,
        selectable={"status.phase": path_text("status", "phase")},
        strategic=True,
        merge_keys={"status.conditions": "type"},
        unconditional_update=True,
        generation=False,
        label_name=True,
        delete_collection=False,
        initial={"spec": {"finalizers": [NAMESPACE_FINALIZER]}, "status": {}},
        prepare=_prepare_namespace,
        validate=_validate_namespace,
    )


# --- ConfigMap and Secret ---------------------------------------------------------------------


def _prepare_config_map(new: Json, _old: Json | None) -> None:
    _omit_empty(new, "data", "binaryData")


def _omit_empty(new: Json, *fields: str) -> None:
    """Write "no data" in one form, as Kubernetes does for its own kinds."""
    for name in fields:
        if name in new and not new[name]:
            del new[name]


def _validate_config_map(new: Json, old: Json | None) -> list[Cause]:
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    causes = _immutable_problems(new, old, ("data", "binaryData"))
    causes += [*_key_problems("data", data), *_key_problems("binaryData", binary)]
    causes += [
        invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data if key in binary
    ]
    size = sum(len(value.encode()) for value in data.values()) + _decoded_size(binary)
    # An empty path is written like this; there is no field that is too large by itself.
    return causes + _size_problems("[]", size)


def _prepare_secret(new: Json, old: Json | None) -> None:
    _omit_empty(new, "data")
    texts = new.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        new["data"] = {**(new.get("data") or {}), **encoded}
    if not new.get("type"):
        new["type"] = (old or {}).get("type") or _OPAQUE


def _validate_secret(new: Json, old: Json | None) -> list[Cause]:
    data, type_ = new.get("data") or {}, new["type"]
    causes = []
    if old is not None and old.get("type") != type_:
        causes.append(invalid_value("type", type_, "field is immutable"))
    causes += _immutable_problems(new, old, ("data",))
    causes += [*_key_problems("data", data), *_size_problems("data", _decoded_size(data))]
    causes += [required_value(f"data[{key}]") for key in _REQUIRED_KEYS.get(type_, ()) if key not in data]
    if type_ == _BASIC_AUTH and not {"username", "password"} & set(data):
        causes += [required_value(f"data[{key}]") for key in ("username", "password")]
    if type_ == "kubernetes.io/ssh-auth" and not data.get(_SSH_KEY):
        causes.append(required_value(f"data[{_SSH_KEY}]"))
    if type_ == _TOKEN and not (new["metadata"].get("annotations") or {}).get(ACCOUNT_NAME):
        causes.append(required_value(f"metadata.annotations[{ACCOUNT_NAME}]"))
    if type_ in _REQUIRED_KEYS:
        causes += [*_json_problems(data)]
    return causes


def _json_problems(data: Json) -> Iterator[Cause]:
    """Check that registry credentials are a JSON object; what they hold is not shown."""
    for key in _JSON_KEYS:
        if key in data:
            try:
                decoded = json.loads(base64.b64decode(data[key]))
            except (ValueError, RecursionError):
                decoded = None
            if not isinstance(decoded, dict):
                yield invalid_value(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")


def _key_problems(field: str, data: Json) -> Iterator[Cause]:
    for key in data:
        shown = key[:MAX_KEY_LENGTH]
        for problem in _key_problem(key):
            yield invalid_value(f"{field}[{shown}]", shown, problem)


def _key_problem(key: str) -> Iterator[str]:
    if len(key) > MAX_KEY_LENGTH:
        yield f"must be no more than {MAX_KEY_LENGTH} characters"
    if not _KEY.fullmatch(key):
        yield _BAD_KEY
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def _decoded_size(data: Mapping[str, str]) -> int:
    return sum(len(value) * 3 // 4 - value[-2:].count("=") for value in data.values())


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
    if old is not None:
        # Only the finalize subresource may change what holds a namespace.
        new["spec"] = old.get("spec") or {}
        return
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers = [*finalizers, NAMESPACE_FINALIZER]
    new["spec"], new["status"] = {"finalizers": finalizers}, {"phase": "Active"}


def _validate_namespace(new: Json, old: Json | None) -> list[Cause]:
    if old is None:
        return list(spec_finalizer_problems(new))
    phase, wanted = (new.get("status") or {}).get("phase") or "", "Active"
    detail = "may only be 'Active' if `deletionTimestamp` is empty"
    if new["metadata"].get("deletionTimestamp"):
        wanted, detail = "Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"
    return [] if phase == wanted else [invalid_value("status.Phase", phase, detail)]


def spec_finalizer_problems(namespace: Json, *, numbered: bool = False) -> Iterator[Cause]:
    """Check the names of what holds a namespace; ``numbered`` tells which one is wrong, as finalize does."""
    for index, name in enumerate((namespace.get("spec") or {}).get("finalizers") or ()):
        if problem := finalizer_name_problem(name):
            field = f"spec.finalizers[{index}]" if numbered else "spec.finalizers"
            yield invalid_value(field, name[:512], problem)

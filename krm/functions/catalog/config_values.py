"""What the functions' configurations have in common. Source: ``kpt.md`` 4.4."""

from dataclasses import dataclass
from typing import Any, TypeGuard

from krm.functions.runner import FunctionConfig

FN_GROUP = "fn.kpt.dev"
_GENERATED_NAME = "function-input"
"""Of the ConfigMap that stands for no configuration."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigKind:
    """Kind and group of a configuration object."""

    kind: str
    group: str
    version: str

    @classmethod
    def of(cls, config: FunctionConfig) -> "ConfigKind":
        """Return the kind of ``config``."""
        group, _, version = str(config.data.get("apiVersion") or "").rpartition("/")
        return cls(str(config.data.get("kind") or ""), group, version)

    @property
    def is_config_map(self) -> bool:
        """Whether it is a core ConfigMap."""
        return self.kind == "ConfigMap" and self.group == ""


def is_given(config: FunctionConfig | None) -> TypeGuard[FunctionConfig]:
    """Say whether there is a configuration, and not only what a runner sends when there is none."""
    if config is None:
        return False
    metadata = config.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name == _GENERATED_NAME and ConfigKind.of(config).is_config_map:
        return bool(config.data.get("data"))
    return bool(config.data.get("kind") or name)


def unknown_kind(config: FunctionConfig, own: str) -> str:
    """Say what is wrong with the kind of a configuration that must be a ConfigMap or of kind ``own``, if anything."""
    kind = ConfigKind.of(config)
    if kind.is_config_map or (kind.kind, kind.group) == (own, FN_GROUP):
        return ""
    shown = f"{kind.kind}.{kind.group or kind.version}"
    return f"unknown FunctionConfig `{shown}`, expect `{own}.{FN_GROUP}` or `ConfigMap.v1`"


def text_map(config: FunctionConfig, key: str) -> dict[str, str]:
    """Return a string map of the configuration, empty when absent; what is no text is left out."""
    values = config.data.get(key)
    if not isinstance(values, dict):
        return {}
    return {name: value or "" for name, value in values.items() if value is None or isinstance(value, str)}


def config_result(message: str, config: FunctionConfig | None) -> dict[str, Any]:
    """Return an error result that points at the configuration."""
    if config is None:
        return {"message": message, "severity": "error", "resourceRef": {}, "file": {"index": -1}}
    file: dict[str, Any] = {"path": config.path} if config.path else {"index": -1}
    return {"message": message, "severity": "error", "resourceRef": reference_of(config.data), "file": file}


def reference_of(data: dict[str, Any]) -> dict[str, Any]:
    """Return a result's ``resourceRef`` of an object; what the object lacks is left out."""
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    reference = {
        "apiVersion": data.get("apiVersion"),
        "kind": data.get("kind"),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
    }
    return {key: value for key, value in reference.items() if value}


def file_of(path: str, index: int | None) -> dict[str, Any]:
    """Return a result's ``file``; the first document's index goes without saying."""
    return {"path": path, "index": index} if index else {"path": path}

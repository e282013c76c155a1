"""``set-image`` up to v0.1.1, which follows kustomize's image filter. Source: ``kpt.md`` 4.13 B."""

from dataclasses import dataclass
from typing import Any

from krm.functions.catalog.config_values import ConfigKind, file_of, reference_of
from krm.functions.catalog.field_paths import shown_path
from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FieldSpecs, FoundField, read_field_specs
from krm.functions.catalog.patterns import Pattern, PatternError
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import identity_of

_KEYS = ("name", "newName", "newTag", "digest")
_EXCEPT = "CustomResourceDefinition"
_FIELDS = tuple(
    FieldSpec(f"{pod}/{containers}/image")
    for pod in ("spec", "spec/template/spec")
    for containers in ("containers", "initContainers")
)


class _ConfigError(Exception):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class _Change:
    resource: Resource
    field: str
    old: str
    new: str

    @property
    def order(self) -> tuple[str, int, str, str]:
        return self.resource.path, self.resource.index or 0, self.field, self.old

    def result(self) -> dict[str, Any]:
        """Return what is reported, also of a change that changes nothing."""
        return {
            "message": f"set image from {self.old} to {self.new}",
            "severity": "info",
            "resourceRef": reference_of(self.resource.data),
            "field": {"path": self.field, "currentValue": self.old, "proposedValue": self.new},
            "file": file_of(self.resource.path, self.resource.index),
        }


def set_image_by_filter(resources: ResourceList) -> FunctionResult:
    """Run the function; a bad configuration is told on stderr only."""
    try:
        image = _image_fields(resources.config)
        more = read_field_specs(resources.config, "additionalImageFields") if resources.config else []
        specs = FieldSpecs([*_FIELDS, *more])
        pattern = Pattern(f"^(?:{image['name']})(@sha256)?(:[a-zA-Z0-9_.{{}}-]*)?$")
        changes = [change for item in resources.items for change in _update(item, specs, pattern, image)]
    except (_ConfigError, FieldSpecError, PatternError) as error:
        return FunctionResult.failure(resources, [], str(error))
    results = [change.result() for change in sorted(changes, key=lambda change: change.order)]
    return FunctionResult(resources.items, results or [{"message": "no images changed", "severity": "info"}])


def _image_fields(config: FunctionConfig | None) -> dict[str, str]:
    kind = ConfigKind.of(config) if config else None
    if config is None or kind is None or not (kind.is_config_map or kind.kind == "SetImage"):
        raise _ConfigError("failed to configure function: `functionConfig` must be a `ConfigMap` or `SetImage`")
    given = config.data.get("data" if kind.is_config_map else "image") or {}
    if not isinstance(given, dict) or any(isinstance(value, (dict, list)) for value in given.values()):
        raise _ConfigError(f"failed to configure function: the image must be a map of {', '.join(_KEYS)}")
    fields = {key: given.get(key) or "" for key in _KEYS}
    if not fields["name"]:
        raise _ConfigError("missing image name")
    if not (fields["newName"] or fields["newTag"] or fields["digest"]):
        raise _ConfigError("missing image newName, newTag, or digest")
    if fields["newTag"] and fields["digest"]:
        raise _ConfigError("image newTag and digest both set")
    return fields


def _update(resource: Resource, specs: FieldSpecs, pattern: Pattern, image: dict[str, str]) -> list[_Change]:
    if identity_of(resource.data).kind == _EXCEPT:
        return []
    changes = (_change(resource, found, pattern, image) for found in specs.fields_of(resource.data))
    return [change for change in changes if change is not None]


def _change(resource: Resource, found: FoundField, pattern: Pattern, image: dict[str, str]) -> _Change | None:
    old = found.value
    if not isinstance(old, str) or pattern.search(old) is None:
        return None
    name, suffix = _split(old)
    if image["newTag"]:
        suffix = f":{image['newTag']}"
    elif image["digest"]:
        suffix = f"@{image['digest']}"
    new = (image["newName"] or name) + suffix
    found.set(new)
    return _Change(resource, shown_path(found.path), old, new)


def _split(image: str) -> tuple[str, str]:
    """Return the name of an image, and its tag or digest with the sign before it."""
    name, at, digest = image.partition("@")
    if at:
        return name, at + digest
    colon = image.rfind(":", image.find("/") + 1)
    return (image[:colon], image[colon:]) if colon >= 0 else (image, "")

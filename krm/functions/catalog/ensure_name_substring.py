"""``ensure-name-substring``: names that contain a text, and references that follow. Source: ``kpt.md`` 4.14."""

from dataclasses import dataclass

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import ConfigKind, text_map
from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FieldSpecs, read_field_specs
from krm.functions.catalog.renaming import Renames
from krm.functions.catalog.unique_resources import TwinError, refuse_twins
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import Identity, identity_of

_KINDS = ("EnsureNameSubstring",)
_EXCEPT = ("APIService", "CustomResourceDefinition", "Kptfile", "Namespace")
_PREPEND, _APPEND = "prepend", "append"
_NAME = FieldSpec("metadata/name")


class _ConfigError(Exception):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """What every name must contain, and where it goes when it does not."""

    substring: str
    mode: str
    specs: FieldSpecs

    def applied_to(self, name: str) -> str:
        """Return the name with the text in it."""
        if self.substring in name:
            return name
        return self.substring + name if self.mode == _PREPEND else name + self.substring


def ensure_name_substring(resources: ResourceList) -> FunctionResult:
    """Run the function; names that contain the text already stay, so doing it again changes nothing."""
    try:
        edit = _configure(resources.config)
        refuse_twins(resources.items)
        renamed = _rename(resources.items, edit)
    except (_ConfigError, FieldSpecError, TwinError) as error:
        message = str(error)
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    Renames(renamed).fix(resources.items)
    return FunctionResult(resources.items)


def _configure(config: FunctionConfig | None) -> _Edit:
    kind = ConfigKind.of(config) if config else None
    if config is None or kind is None or not (kind.is_config_map or kind.kind in _KINDS):
        raise _ConfigError(
            "failed to configure function: `functionConfig` must be a `ConfigMap` or `EnsureNameSubstring`"
        )
    if kind.is_config_map:
        substring, mode = _inline(config)
        specs: list[FieldSpec] = []
    else:
        substring, mode = (str(config.data.get(key) or "") for key in ("substring", "editMode"))
        specs = read_field_specs(config, "additionalNameFields", "fieldSpecs")
    mode = mode or _PREPEND
    if mode not in (_PREPEND, _APPEND):
        raise _ConfigError(f"unknown editMode: {mode}, only {_PREPEND} and {_APPEND} are allowed")
    if not substring:
        raise _ConfigError("substring must not be empty")
    return _Edit(substring, mode, FieldSpecs([_NAME, *specs]))


def _inline(config: FunctionConfig) -> tuple[str, str]:
    """Return the text and the mode that a ConfigMap gives as its only entry."""
    data = text_map(config, "data")
    if len(data) != 1:
        raise _ConfigError(f"only 1 entry is allowed in the ConfigMap, but got: {len(data)}")
    ((mode, substring),) = data.items()
    return substring, mode


def _rename(items: list[Resource], edit: _Edit) -> dict[Identity, str]:
    renamed = {}
    for item in items:
        before = identity_of(item.data)
        if before.kind in _EXCEPT:
            continue
        for found in edit.specs.fields_of(item.data):
            if isinstance(found.value, str):
                found.set(edit.applied_to(found.value))
        after = identity_of(item.data).name
        if after != before.name:
            renamed[before] = after
    return renamed


FUNCTION = Builtin(
    name="ensure-name-substring",
    run=lambda resources, *_: ensure_name_substring(resources),
    summary="Makes every name contain a text, and changes the references to what it renames.",
    source="kpt.md 4.14",
    tags=("v0.1.0", "v0.1.1", "v0.2.0"),
    config_kinds=("ConfigMap", "EnsureNameSubstring.fn.kpt.dev"),
    options=(
        Option("data.prepend", "ConfigMap: the text, put before names that lack it"),
        Option("data.append", "ConfigMap: the text, put behind names that lack it"),
        Option("substring", "EnsureNameSubstring: the text", required=True),
        Option("editMode", "EnsureNameSubstring: prepend (also when absent) or append"),
        Option("additionalNameFields", "EnsureNameSubstring: list of {group, version, kind, path}"),
    ),
)

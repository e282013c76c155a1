"""``set-image``: another name, tag or digest for one image, wherever containers run it.

Source: ``kpt.md`` 4.13. The older rule set, with other fields and results, is in ``set_image_filter``.
"""

from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import ConfigKind, config_result, is_given, unknown_kind
from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FieldSpecs, read_field_specs
from krm.functions.catalog.patterns import Pattern, PatternError
from krm.functions.catalog.set_image_filter import set_image_by_filter
from krm.functions.images import Version
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList

_COUNTING: Version = (0, 1, 2)
"""From here on the function reports a sum and no single changes."""
_FAILURE = "failed to evaluate function: error: function failure"
_KEYS = ("name", "newName", "newTag", "digest")
_TEXT = "[a-zA-Z0-9_.{}-]*"
_POD_FIELDS = (
    FieldSpec("spec/{}/image", version="v1", kind="Pod"),
    *(FieldSpec("spec/template/spec/{}/image", kind=kind) for kind in ("Deployment", "StatefulSet")),
    *(FieldSpec("spec/template/spec/{}/image", kind=kind) for kind in ("ReplicaSet", "DaemonSet")),
    FieldSpec("template/spec/{}/image", version="v1", kind="PodTemplate"),
)
_FIELDS = tuple(
    FieldSpec(spec.path.format(containers), spec.group, spec.version, spec.kind)
    for spec in _POD_FIELDS
    for containers in ("containers", "initContainers")
)


class _ConfigError(Exception):
    """The configuration cannot be used."""


class _Incomplete(Exception):
    """The image that is asked for is not fully described."""


@dataclass(frozen=True, slots=True)
class _NewImage:
    """Which image to look for and what to make of it."""

    pattern: Pattern
    new_name: str
    suffix: str
    """The new tag or digest with its sign; empty to keep the old ones."""

    def applied_to(self, image: str) -> str | None:
        """Return the new text of ``image``, None when it is another image."""
        found = self.pattern.search(image)
        if found is None:
            return None
        old_tag, old_digest = found[-2] or "", found[-1] or ""
        old_name = image[: len(image) - len(old_tag) - len(old_digest)]
        return (self.new_name or old_name) + (self.suffix or old_tag + old_digest)


def set_image(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function; local configuration is not left out."""
    if version < _COUNTING:
        return set_image_by_filter(resources)
    config = resources.config if is_given(resources.config) else None
    notes = [] if config else [{"message": "`FunctionConfig` is not given", "severity": "info"}]
    if config and (problem := unknown_kind(config, "SetImage")):
        return FunctionResult.failure(resources, [config_result(problem, config)], _FAILURE)
    try:
        image = _new_image(_image_fields(config))
        specs = FieldSpecs([*_FIELDS, *(read_field_specs(config, "additionalImageFields") if config else ())])
        count = sum(_update(item.data, specs, image) for item in resources.items)
    except (_ConfigError, FieldSpecError, PatternError) as error:
        return FunctionResult.failure(resources, [*notes, {"message": str(error), "severity": "error"}], _FAILURE)
    except _Incomplete as error:
        ended = f"function is terminated: {error}"
        errors = [{"message": text, "severity": "error"} for text in (str(error), ended)]
        return FunctionResult.failure(resources, notes + errors, f"failed to evaluate function: {ended}")
    summary = {"message": f"summary: updated a total of {count} image(s)", "severity": "info"}
    return FunctionResult(resources.items, [*notes, summary])


def _image_fields(config: FunctionConfig | None) -> dict[str, str]:
    if config is None:
        return {}
    is_config_map = ConfigKind.of(config).is_config_map
    given = config.data.get("data" if is_config_map else "image") or {}
    unknown = [key for key in given if key not in _KEYS] if is_config_map and isinstance(given, dict) else []
    if unknown:
        raise _ConfigError(f"ConfigMap has wrong field name {unknown[0]}")
    if not isinstance(given, dict) or any(isinstance(value, (dict, list)) for value in given.values()):
        raise _ConfigError(f"the image must be a map of {', '.join(_KEYS)}, each of them text")
    return {key: given.get(key) or "" for key in _KEYS}


def _new_image(fields: dict[str, str]) -> _NewImage:
    if not fields.get("name"):
        raise _Incomplete("must specify `name`")
    if not (fields["newName"] or fields["newTag"] or fields["digest"]):
        raise _Incomplete("must specify one of `newName`, `newTag`, or `digest`")
    suffix = f"@{fields['digest']}" if fields["digest"] else f":{fields['newTag']}" if fields["newTag"] else ""
    pattern = Pattern(f"^(?:{fields['name']})(:{_TEXT})?(@sha256:{_TEXT})?$")
    return _NewImage(pattern, fields["newName"], suffix)


def _update(data: dict[str, Any], specs: FieldSpecs, image: _NewImage) -> int:
    """Change the images of a resource and return how many became others."""
    count = 0
    for found in specs.fields_of(data):
        new = image.applied_to(found.value) if isinstance(found.value, str) else None
        if new is not None and new != found.value:
            found.set(new)
            count += 1
    return count


FUNCTION = Builtin(
    name="set-image",
    run=lambda resources, _, version: set_image(resources, version),
    summary="Gives one image another name, tag or digest wherever containers run it.",
    source="kpt.md 4.13",
    tags=("v0.1.0", "v0.1.1", "v0.1.2"),
    config_kinds=("ConfigMap", "SetImage.fn.kpt.dev"),
    options=(
        Option("name", "the image to look for (in `data` of a ConfigMap, `image` of a SetImage)", required=True),
        Option("newName", "its new name"),
        Option("newTag", "its new tag"),
        Option("digest", "its new digest; stands before newTag"),
        Option("additionalImageFields", "SetImage: list of {group, version, kind, path}"),
    ),
    behaviours=(
        Behaviour("up to v0.1.1", "containers of all kinds but CustomResourceDefinition; one result per image"),
        Behaviour(
            "v0.1.2 and later, latest", "pods and workloads; a digest with a tag is allowed; the result is a sum"
        ),
    ),
)

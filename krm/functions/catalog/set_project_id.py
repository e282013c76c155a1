"""``set-project-id``: the Google Cloud project, as a setter and on Config Connector's resources.

Source: ``kpt.md`` 4.16.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import text_map
from krm.functions.images import parse_image
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import identity_of

_SETTER = "project-id"
_ANNOTATION = "cnrm.cloud.google.com/project-id"
_CONNECTOR = re.compile(r"(?P<service>[^./]+)\.cnrm\.cloud\.google\.com")
_APPLY_SETTERS = "apply-setters"
_APPLY_SETTERS_IMAGE = "gcr.io/kpt-fn/apply-setters:v0.2"


class _ProjectError(Exception):
    """The project cannot be set."""


def set_project_id(resources: ResourceList) -> FunctionResult:
    """Run the function; what names a project already keeps it."""
    try:
        project = _project(resources.config)
        files = {(item.package, item.path): item for item in resources.items if not item.index}
        for item in resources.items:
            now = identity_of(item.data)
            if (now.group, now.kind) == ("kpt.dev", "Kptfile"):
                _add_setter(item, project, files)
            elif (found := _CONNECTOR.fullmatch(now.group)) and found["service"] != "core":
                _annotate(item.data, project)
    except _ProjectError as error:
        return FunctionResult.failure(resources, [{"message": str(error), "severity": "error"}], f"[error]: {error}")
    return FunctionResult(resources.items)


def _project(config: FunctionConfig | None) -> str:
    project = text_map(config, "data").get(_SETTER) if config else ""
    if not project:
        raise _ProjectError(f"`data.{_SETTER}` should not be empty")
    return project


def _add_setter(kptfile: Resource, project: str, files: Mapping[tuple[str, str], Resource]) -> None:
    """Give the first ``apply-setters`` step the project, where it has none, or add such a step."""
    mutators = _child(_child(kptfile.data, "pipeline", {}), "mutators", [])
    for step in mutators:
        if isinstance(step, dict) and _is_apply_setters(step.get("image")):
            _set_in_step(kptfile, step, project, files)
            return
    mutators.append({"image": _APPLY_SETTERS_IMAGE, "configMap": {_SETTER: project}})


def _is_apply_setters(image: Any) -> bool:
    try:
        return isinstance(image, str) and parse_image(image).base == _APPLY_SETTERS
    except ValueError:
        return False


def _set_in_step(
    kptfile: Resource, step: dict[str, Any], project: str, files: Mapping[tuple[str, str], Resource]
) -> None:
    path = step.get("configPath")
    if not isinstance(path, str):
        setters = _child(step, "configMap", {})
    elif config := files.get((kptfile.package, posixpath.normpath(path))):
        setters = _child(config.data, "data", {})
    else:
        raise _ProjectError(f"the setters of {kptfile.path} are in {path}, which is not among the resources")
    if not setters.get(_SETTER):
        setters[_SETTER] = project


def _annotate(data: dict[str, Any], project: str) -> None:
    annotations = _child(_child(data, "metadata", {}), "annotations", {})
    annotations.setdefault(_ANNOTATION, project)


def _child(data: dict[str, Any], key: str, empty: Any) -> Any:
    """Return a field, made when it is absent."""
    if data.get(key) is None:
        data[key] = empty
    if type(data[key]) is not type(empty):
        raise _ProjectError(f"field {key} is not a {'map' if isinstance(empty, dict) else 'list'}")
    return data[key]


FUNCTION = Builtin(
    name="set-project-id",
    run=lambda resources, *_: set_project_id(resources),
    summary="Sets the Google Cloud project as a setter and on Config Connector's resources.",
    source="kpt.md 4.16",
    tags=("v0.1.0", "v0.2.0", "v0.2.1"),
    config_kinds=("ConfigMap",),
    options=(Option(f"data.{_SETTER}", "the project's identifier", required=True),),
)

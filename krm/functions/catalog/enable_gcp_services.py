"""``enable-gcp-services``: one Config Connector ``Service`` for each service that a set names.

Source: ``kpt.md`` 4.16.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Builtin
from krm.functions.catalog.config_values import file_of, reference_of
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.meta.names import subdomain_problem
from krm.package.resource_identity import Identity, annotations_of, identity_of

_SET_GROUP, _SET_KIND = "blueprints.cloud.google.com", "ProjectServiceSet"
_MANAGED = f"{_SET_GROUP}/managed-by-enable-gcp-services"
_SERVICE_GROUP, _SERVICE_KIND = "serviceusage.cnrm.cloud.google.com", "Service"
_SERVICE_VERSION = f"{_SERVICE_GROUP}/v1beta1"
_DOMAIN = ".googleapis.com"


class _SetError(Exception):
    """A ProjectServiceSet is not what it should be."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What tells the services of one package and set from others."""

    package: str
    directory: str
    identity: Identity


def enable_gcp_services(resources: ResourceList) -> FunctionResult:
    """Run the function; services that no set names any more, though one made them, go."""
    try:
        wanted = {_key(service): service for item in resources.items for service in _services(item)}
    except _SetError as error:
        return FunctionResult.failure(resources, [{"message": str(error), "severity": "error"}], f"[error]: {error}")
    items: list[Resource] = []
    results = []
    for item in resources.items:
        if not _is_managed(item.data):
            items.append(item)
        elif service := wanted.pop(_key(item), None):
            _update(item.data, service.data)
            items.append(item)
            results.append(_result("recreated service", item))
        else:
            results.append(_result("pruned service", item))
    results += [_result("generated service", service) for service in wanted.values()]
    return FunctionResult([*items, *wanted.values()], results)


def _services(item: Resource) -> Iterator[Resource]:
    """Yield the services of a set, each to be put into a file beside it."""
    now = identity_of(item.data)
    if (now.group, now.kind) != (_SET_GROUP, _SET_KIND):
        return
    spec = item.data.get("spec")
    services = spec.get("services") if isinstance(spec, dict) else None
    if (
        not isinstance(spec, dict)
        or not isinstance(services, list)
        or not all(isinstance(name, str) for name in services)
    ):
        raise _SetError(f"{_SET_KIND} {now.name}: spec.services must be a list of names such as compute{_DOMAIN}")
    project = spec.get("projectID")
    if isinstance(project, (dict, list)):
        raise _SetError(f"{_SET_KIND} {now.name}: spec.projectID must be text")
    for service in dict.fromkeys(services):
        name = f"{now.name}-{service.removesuffix(_DOMAIN)}"
        if problem := subdomain_problem(name):
            raise _SetError(
                f"{_SET_KIND} {now.name}: service {service!r} would be named {name!r}, but a name {problem}"
            )
        metadata = {"name": name, **({"namespace": now.namespace} if now.namespace else {})}
        data = {
            "apiVersion": _SERVICE_VERSION,
            "kind": _SERVICE_KIND,
            "metadata": {**metadata, "annotations": {_MANAGED: now.name}},
            "spec": {"resourceID": service, **({"projectRef": {"external": str(project)}} if project else {})},
        }
        path = posixpath.join(posixpath.dirname(item.path), f"service_{name}.yaml")
        yield Resource(data, path, 0, item.package)


def _is_managed(data: dict[str, Any]) -> bool:
    now = identity_of(data)
    return (now.group, now.kind) == (_SERVICE_GROUP, _SERVICE_KIND) and _MANAGED in annotations_of(data)


def _key(item: Resource) -> _Key:
    return _Key(item.package, posixpath.dirname(item.path), identity_of(item.data))


def _update(data: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Bring a service up to date; annotations of others stay."""
    annotations_of(data)[_MANAGED] = wanted["metadata"]["annotations"][_MANAGED]
    data["apiVersion"], data["spec"] = wanted["apiVersion"], wanted["spec"]


def _result(message: str, item: Resource) -> dict[str, Any]:
    return {
        "message": message,
        "severity": "info",
        "resourceRef": reference_of(item.data),
        "file": file_of(item.path, item.index),
    }


FUNCTION = Builtin(
    name="enable-gcp-services",
    run=lambda resources, *_: enable_gcp_services(resources),
    summary="Expands each ProjectServiceSet to Config Connector's Service resources.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
)

"""The fields of resources that hold a namespace. Source: ``kpt.md`` 4.6 step 2, and 4.6 B and C."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from krm.functions.catalog.scope import is_namespaced
from krm.functions.resource import Resource
from krm.package.resource_identity import Identity, annotations_of, identity_of

DEPENDS_ON = "config.kubernetes.io/depends-on"
_CRD_SERVICE = ("spec", "conversion", "webhook", "clientConfig", "service")
_API_SERVICE = ("spec", "service")
_NAMESPACED_DEPENDENCY = 5
"""Parts of ``group/namespaces/namespace/kind/name``."""


@dataclass(frozen=True, slots=True)
class NamespaceField:
    """One place that holds a namespace."""

    resource: Resource
    owner: dict[str, Any]
    """The map that the field is in."""
    key: str

    @property
    def value(self) -> str:
        """The namespace now, empty when absent."""
        return str(self.owner.get(self.key) or "")

    def set(self, namespace: str) -> None:
        """Write a namespace."""
        self.owner[self.key] = namespace


@dataclass(frozen=True, slots=True)
class Reach:
    """Which fields a version of set-namespace visits."""

    role_bindings: bool
    """Subjects of RoleBindings, not only those of ClusterRoleBindings."""
    unnamed_services: bool
    """Services of webhooks and API services that have no name, and webhooks that convert nothing."""
    by_scope: bool = True
    """Whether known kinds are namespaced by their definition, not because they have a namespace."""


@dataclass(frozen=True, slots=True)
class NamespaceFields:
    """The fields of some resources that hold a namespace; none is there that its object lacks, but for metadata."""

    special: list[NamespaceField]
    """Of objects that live in no namespace: names of Namespaces, services, subjects."""
    ordinary: list[NamespaceField]
    """``metadata.namespace``."""


def namespace_fields(resources: Iterable[Resource], reach: Reach) -> NamespaceFields:
    """Return the fields that hold a namespace."""
    found = NamespaceFields([], [])
    for resource in resources:
        now = identity_of(resource.data)
        found.special.extend(_special(resource, now, reach))
        metadata = resource.data.get("metadata")
        if isinstance(metadata, dict) and _is_namespaced(now, metadata, reach):
            found.ordinary.append(NamespaceField(resource, metadata, "namespace"))
    return found


def rewrite_dependency(resource: Resource, target: str, is_moved: Callable[[Identity], bool]) -> list[str]:
    """Let ``depends-on`` references to moved objects of other namespaces point to ``target``; return the old ones."""
    annotation = annotations_of(resource.data).get(DEPENDS_ON)
    if not isinstance(annotation, str):
        return []
    old = []
    references = annotation.split(",")
    for place, reference in enumerate(references):
        parts = reference.strip().split("/")
        if len(parts) != _NAMESPACED_DEPENDENCY or parts[1] != "namespaces" or parts[2] == target:
            continue
        if is_moved(Identity(parts[0], parts[3], parts[2], parts[4])):
            old.append(parts[2])
            references[place] = "/".join([parts[0], parts[1], target, *parts[3:]])
    if old:
        annotations_of(resource.data)[DEPENDS_ON] = ",".join(references)
    return old


def _is_namespaced(now: Identity, metadata: dict[str, Any], reach: Reach) -> bool:
    known = is_namespaced(now.group, now.kind) if reach.by_scope else None
    return metadata.get("namespace") is not None if known is None else known


def _special(resource: Resource, now: Identity, reach: Reach) -> Iterator[NamespaceField]:
    data = resource.data
    match now.group, now.kind:
        case "", "Namespace" if now.name:
            yield NamespaceField(resource, data["metadata"], "name")
        case "apiextensions.k8s.io", "CustomResourceDefinition":
            conversion = _map_at(data, _CRD_SERVICE[:2])
            if reach.unnamed_services or (conversion is not None and conversion.get("strategy") == "Webhook"):
                yield from _service(resource, _CRD_SERVICE, reach)
        case "apiregistration.k8s.io", "APIService":
            yield from _service(resource, _API_SERVICE, reach)
        case "rbac.authorization.k8s.io", "ClusterRoleBinding":
            yield from _subjects(resource)
        case "rbac.authorization.k8s.io", "RoleBinding" if reach.role_bindings:
            yield from _subjects(resource)


def _service(resource: Resource, path: tuple[str, ...], reach: Reach) -> Iterator[NamespaceField]:
    service = _map_at(resource.data, path)
    if service is not None and (reach.unnamed_services or service.get("name")):
        yield NamespaceField(resource, service, "namespace")


def _subjects(resource: Resource) -> Iterator[NamespaceField]:
    subjects = resource.data.get("subjects")
    for subject in subjects if isinstance(subjects, list) else []:
        if isinstance(subject, dict) and subject.get("namespace") is not None:
            yield NamespaceField(resource, subject, "namespace")


def _map_at(data: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    for name in path:
        value = data.get(name)
        if not isinstance(value, dict):
            return None
        data = value
    return data

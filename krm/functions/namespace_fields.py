"""The fields of resources that hold a namespace. Source: ``kpt.md`` 4.6 step 2, and 4.6 B and C."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from krm.functions.resource import Resource
from krm.functions.scope import is_namespaced
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


def namespace_fields(
    resources: Iterable[Resource], *, create_services: bool, role_bindings: bool
) -> list[NamespaceField]:
    """Return the fields of cluster-scoped objects, then those of objects that live in a namespace.

    ``create_services`` brings v0.4.0's way with webhook services: visited even where they are absent;
    else only those of services with a name. ``role_bindings`` visits their subjects too, not only those of
    ClusterRoleBindings.
    """
    special: list[NamespaceField] = []
    ordinary: list[NamespaceField] = []
    for resource in resources:
        now = identity_of(resource.data)
        special += _special(resource, now, create_services=create_services, role_bindings=role_bindings)
        metadata = resource.data.get("metadata")
        if isinstance(metadata, dict) and _is_namespaced(now, metadata):
            ordinary.append(NamespaceField(resource, metadata, "namespace"))
    return special + ordinary


def rewrite_dependency(resource: Resource, rewrite: dict[Identity, str]) -> list[str]:
    """Move the ``depends-on`` references named in ``rewrite`` to new namespaces; return the old ones."""
    annotation = annotations_of(resource.data).get(DEPENDS_ON)
    if not isinstance(annotation, str):
        return []
    old = []
    references = annotation.split(",")
    for place, reference in enumerate(references):
        parts = reference.strip().split("/")
        if len(parts) != _NAMESPACED_DEPENDENCY or parts[1] != "namespaces":
            continue
        target = rewrite.get(Identity(parts[0], parts[3], parts[2], parts[4]))
        if target is not None and target != parts[2]:
            old.append(parts[2])
            references[place] = "/".join([parts[0], parts[1], target, *parts[3:]])
    if old:
        annotations_of(resource.data)[DEPENDS_ON] = ",".join(references)
    return old


def _is_namespaced(now: Identity, metadata: dict[str, Any]) -> bool:
    known = is_namespaced(now.group, now.kind)
    return metadata.get("namespace") is not None if known is None else known


def _special(
    resource: Resource, now: Identity, *, create_services: bool, role_bindings: bool
) -> Iterator[NamespaceField]:
    data = resource.data
    match now.group, now.kind:
        case "", "Namespace":
            yield NamespaceField(resource, data["metadata"], "name")
        case "apiextensions.k8s.io", "CustomResourceDefinition":
            webhook = _map_at(data, ("spec", "conversion"), create=False)
            if create_services or (webhook is not None and webhook.get("strategy") == "Webhook"):
                yield from _service(resource, _CRD_SERVICE, create=create_services)
        case "apiregistration.k8s.io", "APIService":
            yield from _service(resource, _API_SERVICE, create=create_services)
        case "rbac.authorization.k8s.io", "ClusterRoleBinding":
            yield from _subjects(resource)
        case "rbac.authorization.k8s.io", "RoleBinding" if role_bindings:
            yield from _subjects(resource)


def _service(resource: Resource, path: tuple[str, ...], *, create: bool) -> Iterator[NamespaceField]:
    service = _map_at(resource.data, path, create=create)
    if service is not None and (create or service.get("name")):
        yield NamespaceField(resource, service, "namespace")


def _subjects(resource: Resource) -> Iterator[NamespaceField]:
    subjects = resource.data.get("subjects")
    for subject in subjects if isinstance(subjects, list) else []:
        if isinstance(subject, dict) and subject.get("namespace") is not None:
            yield NamespaceField(resource, subject, "namespace")


def _map_at(data: dict[str, Any], path: tuple[str, ...], *, create: bool) -> dict[str, Any] | None:
    for name in path:
        value = data.get(name)
        if value is None and create:
            value = data[name] = {}
        if not isinstance(value, dict):
            return None
        data = value
    return data

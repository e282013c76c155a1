"""The CustomResourceDefinitions of this project's own kinds, made from their models.

From here come the files in ``charts/porch/files/crds`` for clusters, what a standalone server stores and lists, and the
built-in definition of Repository: so all of them agree. Source: ``porch-api.md`` 1.9, ``variants.md`` 1.1 to 1.7.
"""

import copy
from typing import Final

from pydantic import BaseModel

from apiserver.machinery.definition import Json, Schema
from apiserver.machinery.schema import structural_schema
from krm.api.config import Repository
from krm.api.variant_sets import PackageVariantSet
from krm.api.variants import PackageVariant
from krm.api.variants_v1alpha1 import PackageVariantSetV1Alpha1
from krm.meta.names import LABEL_LENGTH

GROUP: Final = "config.porch.kpt.dev"

_ENVELOPE: Final[Json] = {
    "apiVersion": {"type": "string", "description": "Group and version of this representation of the object."},
    "kind": {"type": "string", "description": "Kind of the object, in CamelCase."},
    "metadata": {"type": "object"},
}
_AGE: Final[Json] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "Time since the object was created.",
}


def repository_crd() -> Json:
    """Return the definition of Repository."""
    schema = _schema(Repository)
    spec = schema["properties"]["spec"]["properties"]
    _immutable(schema["properties"]["spec"], "spec", "type")
    for name in ("repo", "branch", "directory"):
        _immutable(spec["git"], "spec.git", name)
    _immutable(spec["oci"], "spec.oci", "registry")
    schema["x-kubernetes-validations"] = [
        {
            "rule": "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "message": "metadata.name must conform to the RFC1123 DNS label standard",
        },
        {
            "rule": f"self.metadata.name.size() <= {LABEL_LENGTH}",
            "message": f"metadata.name must be no more than {LABEL_LENGTH} characters",
        },
    ]
    columns = [
        _column("Type", ".spec.type", "git or oci."),
        _column("Content", ".spec.content", "What it holds."),
        _column("Sync schedule", ".spec.sync.schedule", "When it is read in full."),
        _column("Deployment", ".spec.deployment", "Whether its packages are deployed.", "boolean"),
        _column("Ready", _status_of("Ready"), "Whether it can be read and written."),
        _column("Address", ".spec['git','oci']['repo','registry']", "Where it is."),
        _column("Branch", ".spec.git.branch", "Branch that is published to."),
        _AGE,
    ]
    return _crd("repositories", "Repository", "repo", [_version("v1alpha1", schema, columns)])


def package_variant_crd() -> Json:
    """Return the definition of PackageVariant."""
    columns = [
        _column("Upstream", ".spec.upstream.package", "The source package."),
        _column("Uprev", ".status.upstream.revision", "Revision of the source.", "integer"),
        _column("Repo", ".spec.downstream.repo", "Repository of the target."),
        _column("Package", ".spec.downstream.package", "The target package."),
        _column("Target", ".status.downstreamTargets[0].name", "The package revision that is kept."),
        *_health(),
    ]
    return _crd("packagevariants", "PackageVariant", "pkgvar", [_version("v1alpha1", _schema(PackageVariant), columns)])


def package_variant_set_crd() -> Json:
    """Return the definition of PackageVariantSet, with the version that is no longer served."""
    columns = [
        _column("Upstream", ".spec.upstream.package", "The source package."),
        _column("Targets", ".status.targets.total", "Number of targets.", "integer"),
        _column("Ready-targets", ".status.targets.ready", "Number of targets that are up to date.", "integer"),
        *_health(),
    ]
    old = _version("v1alpha1", _schema(PackageVariantSetV1Alpha1), [], served=False)
    current = _version("v1alpha2", _schema(PackageVariantSet), columns)
    return _crd("packagevariantsets", "PackageVariantSet", "pkgvarset", [old, current])


def own_definitions() -> dict[str, Json]:
    """Return all definitions by name."""
    every = (repository_crd(), package_variant_crd(), package_variant_set_crd())
    return {crd["metadata"]["name"]: crd for crd in every}


def _crd(plural: str, kind: str, short_name: str, versions: list[Json]) -> Json:
    names = {
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [short_name],
        "kind": kind,
        "listKind": f"{kind}List",
    }
    spec = {
        "group": GROUP,
        "names": names,
        "scope": "Namespaced",
        "versions": versions,
        "conversion": {"strategy": "None"},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": spec,
    }


def _version(name: str, schema: Schema, columns: list[Json], *, served: bool = True) -> Json:
    version: Json = {
        "name": name,
        "served": served,
        "storage": served,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {**version, "additionalPrinterColumns": columns} if columns else version


def _schema(model: type[BaseModel]) -> Schema:
    schema = copy.deepcopy(structural_schema(model))
    properties = {name: child for name, child in schema["properties"].items() if name not in _ENVELOPE}
    schema["properties"] = {**_ENVELOPE, **properties}
    return schema


def _immutable(schema: Schema, path: str, name: str) -> None:
    """Refuse a change or the removal of a field, in place; a field that was not there before may be set."""
    rule = {
        "rule": f"!has(oldSelf.{name}) || (has(self.{name}) && self.{name} == oldSelf.{name})",
        "message": f"{path}.{name} is immutable",
        "fieldPath": f".{name}",
    }
    schema.setdefault("x-kubernetes-validations", []).append(rule)


def _column(name: str, path: str, description: str, type_: str = "string") -> Json:
    return {"name": name, "type": type_, "jsonPath": path, "description": description}


def _status_of(condition: str) -> str:
    return f".status.conditions[?(@.type=='{condition}')].status"


def _health() -> list[Json]:
    return [
        _column("Ready", _status_of("Ready"), "Whether it is up to date."),
        _column("Stalled", _status_of("Stalled"), "Whether it cannot be worked on."),
        _AGE,
    ]

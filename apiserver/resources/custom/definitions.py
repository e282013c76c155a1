"""``customresourcedefinitions``: stored objects whose deletion waits until everything they define is gone.

Source: ``kube-api.md`` 2.15.
"""

from typing import Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import path_value
from apiserver.resources.custom.validation import definition_causes
from apiserver.resources.objects import StoredObjects
from apiserver.resources.writing import has_finalizers, is_terminating
from krm.api.apiextensions import CustomResourceDefinition
from krm.meta.conditions import Condition, find_condition, set_condition
from storage.interfaces import ObjectStore

GROUP: Final = "apiextensions.k8s.io"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer that holds a definition until its instances are gone."""


def crd_definition() -> Definition:
    """Define CustomResourceDefinition."""
    return Definition(
        group=GROUP,
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        schema=structural_schema(CustomResourceDefinition),
        columns=(
            Column(
                "Created At",
                "string",
                path_value("metadata", "creationTimestamp"),
                "When the definition was created.",
                told_type="date",
            ),
        ),
        status=True,
        prepare=_prepare,
        validate=definition_causes,
    )


class CustomResourceDefinitions(StoredObjects):
    """The ``customresourcedefinitions`` resource."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(crd_definition(), store, held=_is_held, marked=_mark)


def _is_held(crd: Json) -> bool:
    """A first delete only marks: the instances go before their definition."""
    return not is_terminating(crd) or has_finalizers(crd)


def _mark(crd: Json) -> None:
    """Let the definition wait for its instances, from the moment its deletion begins."""
    status = crd.setdefault("status", {})
    conditions = status.setdefault("conditions", [])
    if find_condition(conditions, "Terminating") is not None:
        return
    finalizers = crd["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(
        conditions, Condition(type="Terminating", status="True", reason="InstanceDeletionPending", message=message)
    )


def _prepare(new: Json, _old: Json | None) -> None:
    """Fill in, in place, what follows from the rest: names, conversion, and the versions that may be stored."""
    spec = new.get("spec") or {}
    names = spec.get("names") or {}
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names["singular"] = names["singular"] or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    if spec and not (spec.get("conversion") or {}).get("strategy"):
        spec["conversion"] = {**(spec.get("conversion") or {}), "strategy": "None"}
    status = new.setdefault("status", {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}})
    stored = status.setdefault("storedVersions", [])
    for version in spec.get("versions") or ():
        if version.get("storage") and version.get("name") and version["name"] not in stored:
            stored.append(version["name"])

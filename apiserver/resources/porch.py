"""Definitions of the kinds of ``porch.kpt.dev``: columns and selectable fields.

Source: ``porch-api.md`` 1.4 to 1.8.
"""

from typing import Any

from apiserver.machinery.definition import Column, Definition
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import path_value
from apiserver.resources.revision_selectors import SELECTABLE, SELECTABLE_OF_PACKAGES
from apiserver.rules.managed_labels import LATEST
from krm.api.porch import PackageRevision, PackageRevisionResources, PorchPackage
from krm.meta.errors import ResourceName

Json = dict[str, Any]

GROUP, VERSION = "porch.kpt.dev", "v1alpha1"


def package_revision_definition() -> Definition:
    """Define PackageRevision."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PackageRevision",
        plural="packagerevisions",
        singular="packagerevision",
        schema=structural_schema(PackageRevision),
        columns=(
            *_first_columns(),
            Column("Latest", "boolean", _is_latest, "Whether it is the latest published revision of its package."),
            Column("Lifecycle", "string", lambda obj: obj["spec"].get("lifecycle", ""), "Where it is in its life."),
            Column("Repository", "string", lambda obj: obj["spec"].get("repository", ""), "Name of its Repository."),
        ),
        selectable=dict.fromkeys(SELECTABLE, _never_extracted),
        generation=False,
        strategic_unlisted=True,
    )


def package_revision_resources_definition() -> Definition:
    """Define PackageRevisionResources."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PackageRevisionResources",
        plural="packagerevisionresources",
        singular="packagerevisionresources",
        schema=structural_schema(PackageRevisionResources),
        columns=(
            *_first_columns(),
            Column("Repository", "string", lambda obj: obj["spec"].get("repository", ""), "Name of its Repository."),
            Column("Files", "integer", lambda obj: len(obj["spec"].get("resources") or {}), "Number of text files."),
        ),
        selectable=dict.fromkeys(SELECTABLE, _never_extracted),
        generation=False,
        strategic_unlisted=True,
    )


def porch_package_definition() -> Definition:
    """Define PorchPackage: a view of package revisions, with no objects of its own."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PorchPackage",
        plural="packages",
        singular="package",
        schema=structural_schema(PorchPackage),
        columns=(
            Column("Name", "string", path_value("metadata", "name"), "Name of the package."),
            Column("Package", "string", path_value("spec", "packageName"), "Path of the package."),
            Column("Repository", "string", path_value("spec", "repository"), "Name of its Repository."),
            Column(
                "Latest Revision",
                "integer",
                _latest_revision,
                "Its latest published revision, 0 if none is.",
                told_type="int",
            ),
        ),
        selectable=dict.fromkeys(SELECTABLE_OF_PACKAGES, _never_extracted),
        stored_as=ResourceName("packagerevisions", GROUP),
        delete_collection=False,
        generation=False,
        strategic_unlisted=True,
    )


def _latest_revision(obj: Json) -> int:
    return obj["status"].get("latestRevision", 0)  # type: ignore[no-any-return]


def _first_columns() -> tuple[Column, ...]:
    return (
        Column("Name", "string", lambda obj: obj["metadata"]["name"], "Name of the package revision."),
        Column("Package", "string", lambda obj: obj["spec"].get("packageName", ""), "Path of the package."),
        Column("WorkspaceName", "string", lambda obj: obj["spec"].get("workspaceName", ""), "Line of edits."),
        Column(
            "Revision",
            "integer",
            lambda obj: obj["spec"].get("revision", 0),
            "0 until published, -1 for a branch.",
            told_type="int",
        ),
    )


def _is_latest(obj: Json) -> bool:
    return (obj["metadata"].get("labels") or {}).get(LATEST) == "true"


def _never_extracted(_obj: Json) -> str:
    """Stand for an extractor: these fields are in the package index."""
    return ""

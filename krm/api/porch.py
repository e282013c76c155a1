"""``porch.kpt.dev/v1alpha1``: PackageRevision, PackageRevisionResources and PorchPackage.

The models describe the wire for schemas and documentation. Source: ``porch-api.md`` 1.4 to 1.6.
"""

from typing import Any

from pydantic import Field

from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by


class NameRef(WireModel):
    """Names an object in the same namespace."""

    name: str = Field(default="", description="Name of the object; required.")


class ReadinessGate(WireModel):
    """A condition that has to be True before the revision may be proposed and approved."""

    condition_type: str = Field(
        default="", description="Type of a condition in status.conditions, whose status has to be True; required."
    )


class PackageMetadata(WireModel):
    """Labels and annotations of the package's Kptfile."""

    labels: dict[str, str] | None = Field(
        default=None, description="Labels in the Kptfile's metadata; field selectors find them."
    )
    annotations: dict[str, str] | None = Field(default=None, description="Annotations in the Kptfile's metadata.")


class GitPackage(WireModel):
    """A package in some Git repository."""

    repo: str = Field(default="", description="Address of the repository: https, http, ssh or file; required.")
    ref: str = Field(
        default="",
        description="Tag, branch or commit; required. Looked for below the directory's name first, so that v1 finds the "
        "tag directory/v1.",
    )
    directory: str = Field(
        default="", description="Directory of the package in the repository; a slash at its ends does not count."
    )
    secret_ref: NameRef | None = Field(
        default=None,
        description="Secret in the same namespace with credentials, of the types that a Repository takes; none if unset.",
    )


class OciPackage(WireModel):
    """A package in an OCI registry."""

    image: str = Field(default="", description="Address of the image; clones from OCI registries are refused.")


class UpstreamPackage(WireModel):
    """Where a clone comes from; exactly one of the sources."""

    type: str | None = Field(default=None, description="git or oci; may be left out, the source that is set counts.")
    git: GitPackage | None = Field(default=None, description="A package in a Git repository.")
    oci: OciPackage | None = Field(default=None, description="A package in an OCI registry.")
    upstream_ref: NameRef | None = Field(
        default=None, description="A package revision in the same namespace, but for one that follows a branch."
    )


class InitTask(WireModel):
    """Begin with an empty package."""

    subpackage: str | None = Field(
        default=None,
        description="Directory in the package where an empty subpackage is made, too; the other fields describe it.",
    )
    description: str | None = Field(default=None, description="What the package is for; into its Kptfile.")
    keywords: list[str] | None = Field(default=None, description="Words to find the package by; into its Kptfile.")
    site: str | None = Field(default=None, description="Address of the package's site; into its Kptfile.")


class CloneTask(WireModel):
    """Begin with the content of an upstream package and remember where it came from."""

    upstream_ref: UpstreamPackage | None = Field(default=None, description="The upstream package; required.")


class EditTask(WireModel):
    """Begin with the content of an earlier revision of the same package."""

    source_ref: NameRef | None = Field(default=None, description="A published revision of the same package; required.")


class UpstreamRevisionRef(WireModel):
    """Names an upstream package: a package revision in the same namespace, or a package in some Git repository."""

    name: str | None = Field(default=None, description="Name of a package revision; or git is set instead.")
    git: GitPackage | None = Field(
        default=None, description="A package in a Git repository, registered or not; or name is set instead."
    )


class UpgradeTask(WireModel):
    """Begin with the local package merged with the changes between two upstream revisions.

    Appended to the tasks of a draft, with the draft itself as the local revision, it upgrades the draft in place.
    """

    old_upstream_ref: UpstreamRevisionRef | None = Field(
        default=None, description="The upstream that the local package was made from."
    )
    new_upstream_ref: UpstreamRevisionRef | None = Field(
        default=None, description="The upstream to upgrade to; as a package revision, no one that follows a branch."
    )
    local_package_revision_ref: NameRef | None = Field(
        default=None, description="The revision to upgrade: a published one of the package, or the draft itself."
    )
    strategy: str | None = Field(
        default=None,
        description="How local edits meet upstream's changes: resource-merge (default; both are kept, field by field), "
        "fast-forward (only if there are no local edits), force-delete-replace (upstream's files) or copy-merge "
        "(upstream's files over the local ones).",
    )


class Task(WireModel):
    """How the content of a revision came to be."""

    type: str = Field(default="", description="init, clone, edit or upgrade; required.")
    init: InitTask | None = Field(default=None, description="What the new package says of itself; for type init.")
    clone: CloneTask | None = Field(default=None, description="What is cloned; for type clone.")
    edit: EditTask | None = Field(default=None, description="What is copied; for type edit.")
    upgrade: UpgradeTask | None = Field(default=None, description="What is merged; for type upgrade.")


class PackageRevisionSpec(WireModel):
    """What its author wants one package revision to be."""

    package_name: str | None = Field(
        default=None,
        description="Path of the package below the repository's directory; may contain slashes. Required; part of the "
        "object's name.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    repository: str | None = Field(
        default=None,
        description="Name of the Repository object in the same namespace. Required; part of the object's name.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    workspace_name: str | None = Field(
        default=None,
        description="Name of the line of edits, unique within the package. Required; part of the object's name.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    revision: int | None = Field(
        default=None,
        description="Left out (0) until the revision is published, then its number: 1, 2, and so on. -1 follows the head of "
        "the branch, or has a tag that is no number. Read-only.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    parent: NameRef | None = Field(
        default=None,
        description="Deprecated: a revision whose package path is put in front of this one's in its package context. Not "
        "kept.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    lifecycle: str | None = Field(
        default=None,
        description="Draft (default), Proposed, Published or DeletionProposed. Proposing, and proposing a deletion, is an "
        "update of the revision; Published is reached through its approval subresource only.",
        json_schema_extra=written_by(Writer.CLIENTS),
    )
    tasks: list[Task] | None = Field(
        default=None,
        description="The one task that created the revision: init if unset at creation; empty where Git does not say. An "
        "update of a draft may append one upgrade of the draft itself, which then takes its place; other changes are "
        "ignored.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    readiness_gates: list[ReadinessGate] | None = Field(
        default=None,
        description="Conditions that must be True before the revision is proposed and approved: PackagePipelinePassed, "
        "which the server adds, and those of the Kptfile. Writing the list edits the Kptfile; left out, it is kept.",
        json_schema_extra=written_by(Writer.DRAFT),
    )
    package_metadata: PackageMetadata | None = Field(
        default=None,
        description="Labels and annotations of the Kptfile. At creation they are added to it, an update replaces them; what "
        "is left out is kept.",
        json_schema_extra=written_by(Writer.DRAFT),
    )


class GitLock(WireModel):
    """An exact commit of a package."""

    repo: str | None = Field(default=None, description="Address of the repository.")
    directory: str | None = Field(
        default=None, description="Directory of the package in the repository, from its root."
    )
    commit: str | None = Field(default=None, description="The commit's full id.")
    ref: str | None = Field(default=None, description="Branch or tag that the commit was found by.")


class Lock(WireModel):
    """Where content was found, exactly."""

    type: str | None = Field(default=None, description="Always git; left out with the rest where there is none.")
    git: GitLock | None = Field(default=None, description="Which commit, where; for type git.")


class PackageCondition(WireModel):
    """A condition of a package: one observation, by whoever set it."""

    type: str = Field(default="", description="What the condition is about; required, unique in the list.")
    status: str = Field(default="", description="True, False or Unknown; required.")
    reason: str | None = Field(default=None, description="Why, as one word in CamelCase.")
    message: str | None = Field(default=None, description="Why, as a sentence for people.")


class PackageRevisionStatus(WireModel):
    """What the server knows of a package revision."""

    upstream_lock: Lock | None = Field(
        default=None, description="The upstream commit that the content came from; empty where it has no upstream."
    )
    self_lock: Lock | None = Field(default=None, description="Where the content is in its own repository.")
    published_by: str | None = Field(
        default=None, description="The user who approved it; left out until it is published."
    )
    publish_timestamp: str | None = Field(
        default=None,
        description="When it was published (RFC 3339, UTC); null until then.",
        json_schema_extra={"format": "date-time", "nullable": True},
    )
    deployment: bool | None = Field(default=None, description="Whether its repository is a deployment repository.")
    conditions: list[PackageCondition] | None = Field(
        default=None,
        description="PackagePipelinePassed, which is the server's and tells whether the last render passed, then the "
        "conditions of the Kptfile. Writing the list edits the Kptfile; left out, it is kept. Those that readiness gates name "
        "hold the proposal and the approval.",
        json_schema_extra=written_by(Writer.DRAFT),
    )


class PackageRevision(WireModel):
    """One version of a package, from its draft to its publication in Git and its deletion."""

    metadata: ObjectMeta = Field(
        default_factory=ObjectMeta,
        description="Standard object metadata. The name is made by the server: repository.package.workspace, the package's slashes as dots.",
        json_schema_extra=written_by(Writer.CLIENTS),
    )
    spec: PackageRevisionSpec | None = Field(default=None, description="What its author wants it to be.")
    status: PackageRevisionStatus | None = Field(
        default=None, description="What the server knows of it.", json_schema_extra=written_by(Writer.SERVER)
    )


class PackageRevisionResourcesSpec(WireModel):
    """The files of a package revision."""

    package_name: str | None = Field(
        default=None, description="Path of the package below the repository's directory. Read-only."
    )
    workspace_name: str | None = Field(default=None, description="Name of the line of edits. Read-only.")
    revision: int | None = Field(
        default=None, description="Number of the revision, left out while it is not published. Read-only."
    )
    repository: str | None = Field(
        default=None, description="Name of the Repository object in the same namespace. Read-only."
    )
    resources: dict[str, str] | None = Field(
        default=None,
        description="Text files: path in the package, with slashes, to content. An update replaces the whole package: a file "
        "that is not named is removed, but for files that are not text (annotation porch.kpt.dev/binary-files). Then "
        "the package is rendered, and the answer shows it as it was stored.",
        json_schema_extra=written_by(Writer.DRAFT),
    )


class RenderStatus(WireModel):
    """What the function pipeline said in the update that this object answers."""

    result: dict[str, Any] | None = Field(
        default=None,
        description="The FunctionResultList of the render: exitCode, 0 when all functions passed, and one item for each "
        "function that ran, with its image, exitCode, stderr and results.",
    )
    error: str = Field(default="", description="Why the render failed; empty when it passed.")


class PackageRevisionResourcesStatus(WireModel):
    """How the last update was rendered; only filled in the answer to an update."""

    render_status: RenderStatus | None = Field(
        default=None, description="Results of the function pipeline; without any in answers to other requests."
    )


class PackageRevisionResources(WireModel):
    """The files of a package revision, read and written as a whole."""

    metadata: ObjectMeta = Field(
        default_factory=ObjectMeta,
        description="Standard object metadata: that of the package revision of the same name, without its labels, owners and finalizers.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    spec: PackageRevisionResourcesSpec | None = Field(
        default=None,
        description="The files, and which revision they are of.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    status: PackageRevisionResourcesStatus | None = Field(
        default=None,
        description="Results of the render that an update made.",
        json_schema_extra=written_by(Writer.SERVER),
    )


class PorchPackageSpec(WireModel):
    """Which package it is."""

    package_name: str | None = Field(
        default=None, description="Path of the package below the repository's directory. Read-only."
    )
    repository: str | None = Field(
        default=None, description="Name of the Repository object in the same namespace. Read-only."
    )


class PorchPackageStatus(WireModel):
    """What the server knows of a package."""

    latest_revision: int | None = Field(
        default=None,
        description="Number of its latest published revision; left out while none is published. Read-only.",
    )


class PorchPackage(WireModel):
    """One package of a repository: what its revisions are revisions of. It exists while it has one, and is read-only."""

    metadata: ObjectMeta = Field(
        default_factory=ObjectMeta,
        description="Standard object metadata. The name is repository.package, the package's slashes as dots.",
        json_schema_extra=written_by(Writer.SERVER),
    )
    spec: PorchPackageSpec | None = Field(
        default=None, description="Which package it is.", json_schema_extra=written_by(Writer.SERVER)
    )
    status: PorchPackageStatus | None = Field(
        default=None, description="What the server knows of it.", json_schema_extra=written_by(Writer.SERVER)
    )

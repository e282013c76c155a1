"""``porch.kpt.dev/v1alpha1``: PackageRevision and PackageRevisionResources.

The models describe the wire for schemas and documentation. Source: ``porch-api.md`` 1.4 and 1.5.
"""

from typing import Any

from pydantic import Field

from krm.meta.objects import ObjectMeta, WireModel


class NameRef(WireModel):
    """Names an object in the same namespace."""

    name: str = Field(default="", description="Name of the object.")


class ReadinessGate(WireModel):
    """A condition that has to be True before the revision may be proposed and approved."""

    condition_type: str = Field(default="", description="Type of the condition in status.conditions.")


class PackageMetadata(WireModel):
    """Labels and annotations of the package's Kptfile."""

    labels: dict[str, str] | None = Field(default=None, description="Labels in the Kptfile's metadata.")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations in the Kptfile's metadata.")


class GitPackage(WireModel):
    """A package in some Git repository."""

    repo: str = Field(default="", description="Address of the repository.")
    ref: str = Field(default="", description="Tag, branch or commit; looked for below the directory's name first.")
    directory: str = Field(default="", description="Directory of the package in the repository.")
    secret_ref: NameRef | None = Field(default=None, description="Secret with basic-auth credentials.")


class OciPackage(WireModel):
    """A package in an OCI registry."""

    image: str = Field(default="", description="Address of the image.")


class UpstreamPackage(WireModel):
    """Where a clone comes from; exactly one of the sources."""

    type: str | None = Field(default=None, description="git or oci; may be left out.")
    git: GitPackage | None = Field(default=None, description="A package in a Git repository.")
    oci: OciPackage | None = Field(default=None, description="A package in an OCI registry.")
    upstream_ref: NameRef | None = Field(default=None, description="A package revision in the same namespace.")


class InitTask(WireModel):
    """Begin with an empty package."""

    subpackage: str | None = Field(default=None, description="Directory of a subpackage to begin instead.")
    description: str | None = Field(default=None, description="What the package is for.")
    keywords: list[str] | None = Field(default=None, description="Words to find the package by.")
    site: str | None = Field(default=None, description="Address of the package's site.")


class CloneTask(WireModel):
    """Begin with the content of an upstream package and remember where it came from."""

    upstream_ref: UpstreamPackage | None = Field(default=None, description="The upstream package.")


class EditTask(WireModel):
    """Begin with the content of an earlier revision of the same package."""

    source_ref: NameRef | None = Field(default=None, description="A published revision of the same package.")


class UpgradeTask(WireModel):
    """Begin with the local package merged with the changes between two upstream revisions."""

    old_upstream_ref: NameRef | None = Field(default=None, description="The upstream revision that was cloned.")
    new_upstream_ref: NameRef | None = Field(default=None, description="The upstream revision to upgrade to.")
    local_package_revision_ref: NameRef | None = Field(default=None, description="The revision to upgrade.")
    strategy: str | None = Field(
        default=None, description="resource-merge, fast-forward, force-delete-replace or copy-merge."
    )


class Task(WireModel):
    """How the content of a revision came to be."""

    type: str = Field(default="", description="init, clone, edit or upgrade.")
    init: InitTask | None = Field(default=None, description="Set for type init.")
    clone: CloneTask | None = Field(default=None, description="Set for type clone.")
    edit: EditTask | None = Field(default=None, description="Set for type edit.")
    upgrade: UpgradeTask | None = Field(default=None, description="Set for type upgrade.")


class PackageRevisionSpec(WireModel):
    """What its author wants one package revision to be."""

    package_name: str | None = Field(
        default=None, description="Path of the package below the repository's directory; may contain slashes."
    )
    repository: str | None = Field(default=None, description="Name of the Repository object in the same namespace.")
    workspace_name: str | None = Field(
        default=None, description="Name of the line of edits; unique within the package."
    )
    revision: int | None = Field(
        default=None, description="0 until published, then 1, 2, and so on; -1 follows the branch's head."
    )
    parent: NameRef | None = Field(default=None, description="Deprecated: a revision whose package path is a prefix.")
    lifecycle: str | None = Field(default=None, description="Draft, Proposed, Published or DeletionProposed.")
    tasks: list[Task] | None = Field(
        default=None, description="The one task that created the revision; empty for packages that came from Git."
    )
    readiness_gates: list[ReadinessGate] | None = Field(
        default=None, description="Conditions that must be True before the revision is proposed and approved."
    )
    package_metadata: PackageMetadata | None = Field(
        default=None, description="Labels and annotations of the Kptfile; writing them edits the Kptfile of a draft."
    )


class GitLock(WireModel):
    """An exact commit of a package."""

    repo: str | None = Field(default=None, description="Address of the repository.")
    directory: str | None = Field(default=None, description="Directory of the package in the repository.")
    commit: str | None = Field(default=None, description="Full commit id.")
    ref: str | None = Field(default=None, description="Branch or tag that the commit was found by.")


class Lock(WireModel):
    """Where content was found, exactly."""

    type: str | None = Field(default=None, description="git.")
    git: GitLock | None = Field(default=None, description="Set for type git.")


class PackageCondition(WireModel):
    """A condition in the package's Kptfile."""

    type: str = Field(default="", description="What the condition is about; unique in the list.")
    status: str = Field(default="", description="True, False or Unknown.")
    reason: str | None = Field(default=None, description="Why, as one word.")
    message: str | None = Field(default=None, description="Why, as a sentence.")


class PackageRevisionStatus(WireModel):
    """What the server knows of a package revision."""

    upstream_lock: Lock | None = Field(default=None, description="The upstream commit that the content came from.")
    self_lock: Lock | None = Field(default=None, description="Where the content is in its own repository.")
    published_by: str | None = Field(default=None, description="Who approved it.")
    publish_timestamp: str | None = Field(
        default=None,
        description="When it was published (RFC 3339).",
        json_schema_extra={"format": "date-time", "nullable": True},
    )
    deployment: bool | None = Field(default=None, description="Whether its repository is a deployment repository.")
    conditions: list[PackageCondition] | None = Field(
        default=None, description="Conditions of the package; those that readiness gates name hold its proposal."
    )


class PackageRevision(WireModel):
    """One version of a package, from its draft to its publication in Git and its deletion."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: PackageRevisionSpec | None = Field(default=None, description="What its author wants it to be.")
    status: PackageRevisionStatus | None = Field(default=None, description="What the server knows of it.")


class PackageRevisionResourcesSpec(WireModel):
    """The files of a package revision."""

    package_name: str | None = Field(default=None, description="Path of the package.")
    workspace_name: str | None = Field(default=None, description="Name of the line of edits.")
    revision: int | None = Field(default=None, description="The revision's number.")
    repository: str | None = Field(default=None, description="Name of the Repository object.")
    resources: dict[str, str] | None = Field(
        default=None, description="Path in the package to file content; an update replaces the whole package."
    )


class RenderStatus(WireModel):
    """What the function pipeline said in the update that this object answers."""

    result: dict[str, Any] | None = Field(default=None, description="The FunctionResultList of the render.")
    error: str = Field(default="", description="Why the render failed; empty when it did not.")


class PackageRevisionResourcesStatus(WireModel):
    """How the last update was rendered; only filled in the answer to an update."""

    render_status: RenderStatus | None = Field(default=None, description="Results of the function pipeline.")


class PackageRevisionResources(WireModel):
    """The files of a package revision, read and written as a whole."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: PackageRevisionResourcesSpec | None = Field(default=None, description="The files.")
    status: PackageRevisionResourcesStatus | None = Field(default=None, description="Results of the last render.")

"""``config.porch.kpt.dev/v1alpha1``: Repository, a registered Git (or OCI) repository of packages.

Source: ``porch-api.md`` 1.9.
"""

from pydantic import Field

from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by


class SecretRef(WireModel):
    """Names a Secret in the same namespace."""

    name: str = Field(description="Name of the Secret; required.")


class GitRepository(WireModel):
    """Where a Git repository is, and which part of it holds packages."""

    repo: str = Field(
        description="Address of the repository: https, http, ssh or file, or user@host:path; required, immutable.",
        min_length=1,
        json_schema_extra=written_by(Writer.CREATION),
    )
    branch: str | None = Field(
        default=None,
        min_length=1,
        description="Branch that packages are published to; main if not said; immutable.",
        json_schema_extra=written_by(Writer.CREATION, **{"x-default": "main"}),
    )
    create_branch: bool | None = Field(
        default=None,
        description="Whether to create the branch, with a first commit, when it is missing; false if unset.",
    )
    directory: str | None = Field(
        default=None,
        description="Directory under which packages are looked for; the root if not said; immutable.",
        json_schema_extra=written_by(Writer.CREATION),
    )
    secret_ref: SecretRef | None = Field(
        default=None,
        description="Credentials: a Secret in the same namespace, of type kubernetes.io/basic-auth, kubernetes.io/ssh-auth, or Opaque with bearerToken.",
    )
    author: str | None = Field(default=None, description="Name of the commits' author; that of the user if unset.")
    email: str | None = Field(default=None, description="Mail address of the commits' author; the user if unset.")


class OciRepository(WireModel):
    """Where an OCI registry is."""

    registry: str = Field(
        description="Address of the registry; required, immutable.",
        min_length=1,
        json_schema_extra=written_by(Writer.CREATION),
    )
    secret_ref: SecretRef | None = Field(default=None, description="Credentials: a Secret in the same namespace.")


class RepositorySync(WireModel):
    """When the repository is read in full."""

    schedule: str | None = Field(
        default=None,
        description="When to read it in full: a cron expression of five fields, a word like @hourly or @every 10m; in UTC "
        "unless it begins with TZ=. If unset, the server's own intervals apply.",
    )
    run_once_at: str | None = Field(
        default=None,
        description="A single full read at this time (RFC 3339), at once for one in the past. The server removes it when it is "
        "done.",
        json_schema_extra={"format": "date-time"},
    )


class RepositorySpec(WireModel):
    """Which repository is registered, and how it is used."""

    description: str | None = Field(default=None, description="What the repository is for, for people.")
    deployment: bool | None = Field(
        default=None,
        description="Whether its packages are meant to be applied to a cluster as they are: clones get a package context, and "
        "injection gates bind. False if unset.",
    )
    type: str | None = Field(
        default=None,
        description="git or oci; immutable. If unset, the one of the two whose block is given.",
        json_schema_extra=written_by(Writer.CREATION, enum=["git", "oci"]),
    )
    content: str | None = Field(
        default=None, description="Deprecated: Package is the only value.", json_schema_extra={"x-default": "Package"}
    )
    sync: RepositorySync | None = Field(default=None, description="When the repository is read in full.")
    git: GitRepository | None = Field(default=None, description="Where it is in Git; required for type git.")
    oci: OciRepository | None = Field(
        default=None, description="Where it is in a registry; required for type oci, which is accepted and never Ready."
    )


class RepositoryStatus(WireModel):
    """What the server last saw of the repository."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="Ready tells whether the repository was read; Writable is there, and False, while its remote refuses "
        "pushes.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    last_full_sync_time: str | None = Field(
        default=None,
        description="When the last full read ended (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )
    next_full_sync_time: str | None = Field(
        default=None,
        description="When the next full read is due (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )
    observed_generation: int | None = Field(default=None, description="The generation that the status was made from.")
    observed_run_once_at: str | None = Field(
        default=None,
        description="The spec.sync.runOnceAt that was last done.",
        json_schema_extra={"format": "date-time"},
    )
    package_count: int | None = Field(default=None, description="Number of package revisions found in it.")
    git_commit_hash: str | None = Field(default=None, description="Commit at the head of the registered branch.")


class Repository(WireModel):
    """A repository of packages that the server reads and writes."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: RepositorySpec | None = Field(default=None, description="Which repository, and how it is used.")
    status: RepositoryStatus | None = Field(
        default=None, description="What the server last saw of it.", json_schema_extra=written_by(Writer.SERVER)
    )

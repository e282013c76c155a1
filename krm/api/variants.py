"""``config.porch.kpt.dev/v1alpha1`` PackageVariant: keeps one downstream package in step with an upstream one.

Some lists take several shapes, as the examples of the design documents write them; those stay untyped on the wire and are
checked by the controller. Source: ``variants.md`` 1.1 to 1.3, 6.3, 6.4, 6.7 and 6.8.
"""

from typing import Any, Final

from pydantic import Field, JsonValue

from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by

INT_OR_STRING: Final[dict[str, JsonValue]] = {"x-kubernetes-int-or-string": True}
BY_TYPE: Final[dict[str, JsonValue]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class Upstream(WireModel):
    """Which package revision is the source."""

    repo: str | None = Field(default=None, description="Name of the Repository of the source, in the same namespace.")
    package: str | None = Field(default=None, description="Name of the source package; it may contain slashes.")
    revision: int | str | None = Field(
        default=None,
        description="Revision of the source: a number (1, v1), latest, or -1 for the branch itself; the latest if unset.",
        json_schema_extra=INT_OR_STRING,
    )
    workspace_name: str | None = Field(default=None, description="Workspace of the source; it wins over the revision.")
    tag: str | None = Field(
        default=None, description="Floating tag of the source; cannot be combined with revision and workspaceName."
    )
    allow_downgrade: bool | None = Field(
        default=None, description="Whether to follow when the latest revision becomes a lower one."
    )


class Downstream(WireModel):
    """Which package is kept."""

    repo: str | None = Field(default=None, description="Name of the Repository of the target, in the same namespace.")
    package: str | None = Field(default=None, description="Name of the target package; it may contain slashes.")


class FunctionSelector(WireModel):
    """Which resources of a package a function works on; all that is given must match."""

    api_version: str | None = Field(default=None, description="Group and version of the resources.")
    kind: str | None = Field(default=None, description="Kind of the resources.")
    name: str | None = Field(default=None, description="Name of the resources.")
    namespace: str | None = Field(default=None, description="Namespace of the resources.")
    labels: dict[str, str] | None = Field(default=None, description="Labels that the resources have.")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations that the resources have.")


class Function(WireModel):
    """A function of a Kptfile's pipeline."""

    image: str | None = Field(default=None, description="Container image of the function.")
    tag: str | None = Field(default=None, description="Tag of the image, or a range of tags.")
    exec: str | None = Field(default=None, description="Path of an executable, in place of an image.")
    config_path: str | None = Field(
        default=None, description="File of the package that configures the function, relative to the Kptfile."
    )
    config_map: dict[str, str] | None = Field(default=None, description="Keys and values that configure the function.")
    name: str | None = Field(default=None, description="Name of the function, for people; without dots.")
    selectors: list[FunctionSelector] | None = Field(
        default=None, description="The function works on resources that match any of these; on all if unset."
    )
    exclude: list[FunctionSelector] | None = Field(
        default=None, description="The function does not work on resources that match any of these."
    )


class Pipeline(WireModel):
    """Functions that are put in front of those of the package."""

    mutators: list[Function] | None = Field(default=None, description="Functions that change resources, in order.")
    validators: list[Function] | None = Field(default=None, description="Functions that check resources, in order.")


class PackageContext(WireModel):
    """Changes of the ConfigMap that tells a package about itself."""

    data: dict[str, str] | None = Field(
        default=None, description="Keys to set; name and package-path belong to the server."
    )
    remove_keys: list[str] | None = Field(
        default=None, description="Keys to remove; name and package-path belong to the server."
    )


class Approval(WireModel):
    """Which steps of a package revision's life are taken without a person."""

    propose: str | None = Field(
        default=None, description="When a draft is proposed: Never (if unset), or WhenReady: when all its gates are."
    )
    publish: str | None = Field(
        default=None,
        description="When what is proposed is published: Never (if unset), Initial (while the package has no published "
        "revision) or Always.",
    )
    delay: str | None = Field(
        default=None,
        description="How long a package revision exists before it is published, as in 90s, 10m or 1h30m; nothing if unset.",
    )
    approve_deletion: str | None = Field(
        default=None, description="Whether a proposed deletion is carried out: Never (if unset) or Always."
    )


class PackageVariantSpec(WireModel):
    """Which package is kept as a variant of which other one, and what is added to it."""

    upstream: Upstream | None = Field(default=None, description="The source; required.")
    downstream: Downstream | None = Field(default=None, description="The target; required.")
    adoption_policy: str | None = Field(
        default=None,
        description="What to do about package revisions of the target that nobody owns: adoptNone (if unset) or adoptExisting.",
    )
    deletion_policy: str | None = Field(
        default=None,
        description="What becomes of the target's package revisions with the variant: delete (if unset) or orphan.",
    )
    labels: dict[str, str] | None = Field(
        default=None, description="Labels for package revisions, set when they are created or adopted."
    )
    annotations: dict[str, str] | None = Field(
        default=None, description="Annotations for package revisions, set when they are created or adopted."
    )
    package_context: PackageContext | None = Field(default=None, description="Changes of the package's context.")
    pipeline: Pipeline | None = Field(default=None, description="Functions put in front of the package's own.")
    injectors: Any = Field(
        default=None,
        description="Objects of the cluster whose spec or data is copied into the package, in order: a list of name "
        "(required), group, version and kind (each any if unset).",
    )
    suspend: bool | None = Field(
        default=None,
        description="Whether nothing is written but the status; what would change is still reported. Deletion still works.",
    )
    drift_policy: str | None = Field(
        default=None,
        description="What to do when the target is no longer what the variant made of it: Report (if unset), which is "
        "the only policy yet.",
    )
    approval: Approval | None = Field(
        default=None, description="Which steps of the target's package revisions are taken without a person."
    )


class RenderResult(WireModel):
    """What the functions of a package answered."""

    exit_code: int = Field(description="0 when all of them succeeded.")
    items: list[dict[str, Any]] | None = Field(default=None, description="What each function answered.")


class RenderStatus(WireModel):
    """The outcome of the last rendering of a target."""

    error: str = Field(description="What failed; empty when nothing did.")
    result: RenderResult | None = Field(default=None, description="What the functions answered.")


class DownstreamTarget(WireModel):
    """A package revision that the variant keeps."""

    name: str | None = Field(default=None, description="Name of the package revision.")
    render_status: RenderStatus | None = Field(default=None, description="The outcome of its last rendering.")
    lifecycle: str | None = Field(default=None, description="The lifecycle last seen.")
    operation: str | None = Field(default=None, description="How it came to be: clone, edit, upgrade or adopted.")


class ResolvedUpstream(WireModel):
    """The package revision that the upstream stands for now."""

    name: str | None = Field(default=None, description="Name of the package revision.")
    revision: int | None = Field(default=None, description="Number of that package revision.")
    workspace_name: str | None = Field(default=None, description="Workspace of that package revision.")
    tag: str | None = Field(default=None, description="The floating tag that led to it.")
    commit: str | None = Field(default=None, description="The Git commit that its contents come from.")


class ChangedFiles(WireModel):
    """Files of a package that differ, by path."""

    added: list[str] | None = Field(default=None, description="Paths that are new.")
    modified: list[str] | None = Field(default=None, description="Paths whose contents differ.")
    removed: list[str] | None = Field(default=None, description="Paths that are gone.")


class ChangedResource(WireModel):
    """A resource of a package that differs."""

    kind: str | None = Field(default=None, description="Kind of the resource.")
    name: str | None = Field(default=None, description="Name of the resource.")
    change: str | None = Field(default=None, description="conflict, added, modified or removed.")
    detail: str | None = Field(default=None, description="What a conflict is about.")


class PendingChange(WireModel):
    """Why there is a draft, or would be one, and what it changes."""

    draft: str | None = Field(
        default=None, description="Name of the package revision with the change; empty while the variant is paused."
    )
    base: str | None = Field(
        default=None, description="Name of the package revision that it is compared with; empty for a new package."
    )
    trigger: str | None = Field(
        default=None, description="What led to it: Initial, UpstreamChanged, SpecChanged or InjectionChanged."
    )
    trigger_detail: str | None = Field(
        default=None, description="The same in more detail, such as the revisions of the source before and after."
    )
    files: ChangedFiles | None = Field(default=None, description="The files that differ.")
    resources: list[ChangedResource] | None = Field(
        default=None, description="The resources that differ, at most 50, conflicts of an upgrade first."
    )
    omitted: int | None = Field(default=None, ge=0, description="Number of files and resources that are not listed.")


class Drift(WireModel):
    """How the target differs from what the variant asks for, without a draft that would change it."""

    upstream_behind: int | None = Field(
        default=None, ge=0, description="Number of published revisions of the source after the one that is named."
    )
    newest_upstream: str | None = Field(
        default=None, description="Name of the newest published package revision of the source."
    )
    files: list[str] | None = Field(
        default=None, description="Paths of files that are no longer what the variant made of them, at most 20."
    )
    since: str | None = Field(
        default=None,
        description="When the drift was first seen (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )


class PackageVariantStatus(WireModel):
    """What the controller made of the variant."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="Stalled tells whether the variant can be worked on, Ready whether its target is up to date, Paused "
        "whether nothing is written because a user said so, Drifted whether the target is no longer what was asked for.",
        json_schema_extra=BY_TYPE,
    )
    downstream_targets: list[DownstreamTarget] | None = Field(
        default=None, description="The package revisions that the variant keeps now."
    )
    upstream: ResolvedUpstream | None = Field(default=None, description="What the upstream stands for now.")
    observed_generation: int | None = Field(default=None, description="The generation that was last worked on.")
    pending_change: PendingChange | None = Field(
        default=None, description="Why the drafts of the variant exist, and what they change."
    )
    drift: Drift | None = Field(default=None, description="How the target differs from what the variant asks for.")


class PackageVariant(WireModel):
    """Keeps a package in step with another one that it is a variant of."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: PackageVariantSpec | None = Field(default=None, description="Which variant of which package.")
    status: PackageVariantStatus | None = Field(
        default=None, description="What the controller made of it.", json_schema_extra=written_by(Writer.CONTROLLER)
    )

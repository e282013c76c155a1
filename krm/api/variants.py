"""``config.porch.kpt.dev``: PackageVariant v1alpha1 and PackageVariantSet v1alpha2.

A PackageVariant keeps one downstream package in step with an upstream one; a PackageVariantSet makes variants for many
targets. Some lists take several shapes, as the examples of the design documents write them; those stay untyped on
the wire and are checked by their controllers. Source: ``variants.md`` 1.1 to 1.6, 6.2 to 6.4, 6.6 to 6.8 and 6.11.
"""

from typing import Any

from pydantic import Field, JsonValue

from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by

_INT_OR_STRING: dict[str, JsonValue] = {"x-kubernetes-int-or-string": True}
_BY_TYPE: dict[str, JsonValue] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class Upstream(WireModel):
    """Which package revision is the source."""

    repo: str | None = Field(default=None, description="Name of the Repository of the source, in the same namespace.")
    package: str | None = Field(default=None, description="Name of the source package; it may contain slashes.")
    revision: int | str | None = Field(
        default=None,
        description="Revision of the source: a number (1, v1), latest, or -1 for the branch itself; the latest if unset.",
        json_schema_extra=_INT_OR_STRING,
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
        json_schema_extra=_BY_TYPE,
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


class LabelRequirement(WireModel):
    """One condition on one label."""

    key: str = Field(description="Key of the label.")
    operator: str = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: list[str] | None = Field(default=None, description="Values for In and NotIn.")


class LabelRequirements(WireModel):
    """What the labels of an object must be; nothing selects everything."""

    match_labels: dict[str, str] | None = Field(default=None, description="Labels and values that all must be there.")
    match_expressions: list[LabelRequirement] | None = Field(default=None, description="Conditions that all must hold.")


class RepositorySelector(LabelRequirements):
    """Selects Repositories of the namespace by their labels."""

    label_selector: LabelRequirements | None = Field(
        default=None, description="The same as matchLabels and matchExpressions beside it; all of them must hold."
    )
    package_names: list[str] | None = Field(
        default=None, description="Package names in each target; the upstream's if unset."
    )


class ObjectSelector(RepositorySelector):
    """Selects any objects of the namespace by kind, labels and name."""

    api_version: str | None = Field(default=None, description="Group and version of the objects; required.")
    kind: str | None = Field(default=None, description="Kind of the objects; required.")
    name: str | None = Field(default=None, description="Name of the object; any if unset.")


class RepositoryTarget(WireModel):
    """A Repository that gets a variant."""

    name: str = Field(description="Name of the Repository.")
    package_names: list[str] | None = Field(
        default=None, description="Package names in the target; the upstream's if unset."
    )


class DownstreamTemplate(WireModel):
    """Which package a target gets."""

    repo: str | None = Field(default=None, description="Name of the Repository; cannot be combined with repoExpr.")
    repo_expr: str | None = Field(default=None, description="CEL expression of the Repository's name.")
    package: str | None = Field(default=None, description="Name of the package; cannot be combined with packageExpr.")
    package_expr: str | None = Field(default=None, description="CEL expression of the package's name.")


_MAP_EXPRESSIONS = "a list of key or keyExpr with value or valueExpr; the expressions are CEL."


class PackageContextTemplate(PackageContext):
    """Changes of the package's context for a target."""

    data_exprs: Any = Field(default=None, description=f"Keys to set on top of data: {_MAP_EXPRESSIONS}")
    remove_key_exprs: list[str] | None = Field(default=None, description="CEL expressions of further keys to remove.")


class FunctionTemplate(Function):
    """A function for a target's pipeline."""

    config_map_exprs: Any = Field(default=None, description=f"Keys on top of configMap: {_MAP_EXPRESSIONS}")


class PipelineTemplate(WireModel):
    """Functions that are put in front of those of the package."""

    mutators: list[FunctionTemplate] | None = Field(
        default=None, description="Functions that change resources, in order."
    )
    validators: list[FunctionTemplate] | None = Field(
        default=None, description="Functions that check resources, in order."
    )


class VariantTemplate(WireModel):
    """What the PackageVariant of a target says."""

    downstream: DownstreamTemplate | None = Field(default=None, description="Which package the target gets.")
    adoption_policy: str | None = Field(default=None, description="As in a PackageVariant: adoptNone or adoptExisting.")
    deletion_policy: str | None = Field(default=None, description="As in a PackageVariant: delete or orphan.")
    labels: dict[str, str] | None = Field(default=None, description="Labels for package revisions.")
    label_exprs: Any = Field(default=None, description=f"Labels on top of labels: {_MAP_EXPRESSIONS}")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations for package revisions.")
    annotation_exprs: Any = Field(default=None, description=f"Annotations on top of annotations: {_MAP_EXPRESSIONS}")
    package_context: PackageContextTemplate | None = Field(
        default=None, description="Changes of the package's context."
    )
    pipeline: PipelineTemplate | None = Field(default=None, description="Functions put in front of the package's own.")
    injectors: Any = Field(
        default=None,
        description="Objects copied into the package: a list of name or nameExpr (CEL), with group, version and kind.",
    )
    injector_exprs: Any = Field(default=None, description="The same as injectors, which these follow.")
    approval: Approval | None = Field(default=None, description="As in a PackageVariant: what needs no person.")


class VariantTarget(WireModel):
    """What gets variants; exactly one of repositories, repositorySelector and objectSelector."""

    repositories: list[RepositoryTarget] | None = Field(default=None, description="Repositories by name.")
    repository_selector: RepositorySelector | None = Field(default=None, description="Repositories by their labels.")
    object_selector: ObjectSelector | None = Field(default=None, description="Any objects, by kind and labels.")
    package_names: list[str] | None = Field(
        default=None, description="Package names in each target; the upstream's if unset."
    )
    template: VariantTemplate | None = Field(default=None, description="What the PackageVariants of the targets say.")


class WaveGate(WireModel):
    """What must hold of a wave before the next one begins."""

    min_settled_percent: int | None = Field(
        default=None, ge=0, le=100, description="Share of the wave's variants that must be settled; 100 if unset."
    )
    soak: str | None = Field(
        default=None, description="How long that must have been so, as in 90s, 10m or 1h30m; not at all if unset."
    )
    manual: bool | None = Field(
        default=None,
        description="Whether the next wave also waits for the annotation config.porch.kpt.dev/approve-wave of the set: "
        "<wave>@<changeId>.",
    )


class Wave(WireModel):
    """Targets that change together."""

    name: str | None = Field(default=None, description="Name of the wave; required.")
    match: str | None = Field(
        default=None,
        description="CEL expression over the variables of templates that is true of the targets of the wave; all "
        "targets that no earlier wave has, if unset.",
    )
    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants of the wave that change at a time, a number or a percentage of the wave; that of the "
        "rollout if unset.",
        json_schema_extra=_INT_OR_STRING,
    )
    gate: WaveGate | None = Field(default=None, description="What must hold before the next wave begins.")


class Rollback(WireModel):
    """What is different when the source goes back to an earlier revision."""

    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants that change at a time, a number or a percentage; as otherwise if unset.",
        json_schema_extra=_INT_OR_STRING,
    )


class Rollout(WireModel):
    """In which order, and how many at a time, the variants of a set change."""

    strategy: str | None = Field(
        default=None,
        description="AllAtOnce (if unset), Rolling (maxInFlight at a time) or Waves (wave after wave, at most "
        "maxInFlight at a time).",
    )
    max_in_flight: int | str | None = Field(
        default=None,
        description="Most variants that change at a time: a number, or a percentage of all; 1 if unset.",
        json_schema_extra=_INT_OR_STRING,
    )
    settle_on: str | None = Field(
        default=None,
        description="When a change of a variant is settled: DraftReady (if unset), or Published, when a person or an "
        "approval policy has published it.",
    )
    on_failure: str | None = Field(
        default=None, description="What more failures than failureThreshold do: Pause (if unset) or Continue."
    )
    failure_threshold: int | str | None = Field(
        default=None,
        description="Variants that may fail before the rollout pauses: a number, or a percentage of all; none if unset.",
        json_schema_extra=_INT_OR_STRING,
    )
    waves: list[Wave] | None = Field(
        default=None, description="The waves, in order; targets that none of them matches come last, as one more."
    )
    rollback: Rollback | None = Field(
        default=None, description="What is different when the source goes back to an earlier revision."
    )


class Guards(WireModel):
    """What a set does not do by mistake."""

    max_deletions: int | str | None = Field(
        default=None,
        description="Most variants that one pass deletes: a number, or a percentage of those that exist; beyond it none "
        "is deleted, unless the annotation config.porch.kpt.dev/allow-deletions names the generation of the set.",
        json_schema_extra=_INT_OR_STRING,
    )
    on_empty_selection: str | None = Field(
        default=None,
        description="What becomes of the variants of a target that selects nothing any more: Delete or Keep.",
    )


class PackageVariantSetSpec(WireModel):
    """One source, and all that gets variants of it."""

    upstream: Upstream | None = Field(default=None, description="The source; required.")
    targets: list[VariantTarget] | None = Field(default=None, description="What gets variants; at least one.")
    error_policy: str | None = Field(
        default=None,
        description="What happens when the variants of some targets cannot be rendered: nothing is written at all "
        "(FailFast, if unset), or the others are written (BestEffort).",
    )
    guards: Guards | None = Field(default=None, description="What the set does not do by mistake.")
    rollout: Rollout | None = Field(
        default=None, description="In which order the variants change; all at once if unset."
    )
    suspend: bool | None = Field(
        default=None, description="Whether nothing is written but the status. Deletion still works."
    )


class TargetCounts(WireModel):
    """How far the targets are."""

    total: int | None = Field(default=None, description="Targets that there are.")
    ready: int | None = Field(default=None, description="Targets whose PackageVariant is Ready.")
    stalled: int | None = Field(default=None, description="Targets whose PackageVariant is Stalled.")
    in_flight: int | None = Field(default=None, description="Targets whose PackageVariant is neither.")
    failed: int | None = Field(default=None, description="Targets whose PackageVariant cannot be rendered or written.")
    created: int | None = Field(default=None, description="PackageVariants made in the last pass.")
    updated: int | None = Field(default=None, description="PackageVariants changed in the last pass.")
    deleted: int | None = Field(default=None, description="PackageVariants deleted in the last pass.")


class TargetFailure(WireModel):
    """A target that is not as it should be, and why."""

    repo: str | None = Field(default=None, description="Repository of the target.")
    package: str | None = Field(default=None, description="Package of the target.")
    stage: str | None = Field(
        default=None,
        description="What failed: render (working out what its PackageVariant says), apply (writing it) or variant (the "
        "PackageVariant itself is stalled).",
    )
    message: str | None = Field(default=None, description="What is wrong, for people.")


class WaveStatus(WireModel):
    """How far a wave is."""

    name: str | None = Field(default=None, description="Name of the wave.")
    outdated: int | None = Field(default=None, description="Variants that are not changed yet.")
    in_flight: int | None = Field(default=None, description="Variants that are changed and not settled.")
    settled: int | None = Field(default=None, description="Variants that are settled.")
    failed: int | None = Field(default=None, description="Variants that are changed and stalled.")
    settled_at: str | None = Field(
        default=None,
        description="Since when enough variants are settled (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )


class RolloutStatus(WireModel):
    """How far the change of all variants is."""

    change_id: str | None = Field(default=None, description="What all variants say when the change is done, as a hash.")
    phase: str | None = Field(default=None, description="Progressing, Waiting, Paused or Complete.")
    message: str | None = Field(default=None, description="What it waits for, for people.")
    wave: str | None = Field(default=None, description="The wave that changes now.")
    outdated: int | None = Field(default=None, description="Variants that are not changed yet.")
    in_flight: int | None = Field(default=None, description="Variants that are changed and not settled.")
    settled: int | None = Field(default=None, description="Variants that are settled.")
    failed: int | None = Field(default=None, description="Variants that are changed and stalled.")
    rollback: bool | None = Field(default=None, description="Whether the source goes back to an earlier revision.")
    started_at: str | None = Field(
        default=None,
        description="When the change began (RFC 3339, UTC).",
        json_schema_extra={"format": "date-time"},
    )
    waves: list[WaveStatus] | None = Field(default=None, description="How far each wave is, in order.")


class PackageVariantSetStatus(WireModel):
    """What the controller made of the set."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="Stalled tells whether the set can be worked on, Ready whether all its variants are there, "
        "ReadyTargets whether all of them are Ready, Paused whether nothing is written because a user said so.",
        json_schema_extra=_BY_TYPE,
    )
    observed_generation: int | None = Field(default=None, description="The generation that was last worked on.")
    targets: TargetCounts | None = Field(default=None, description="How far the targets are.")
    failures: list[TargetFailure] | None = Field(
        default=None, description="Targets that are not as they should be, at most 50."
    )
    rollout: RolloutStatus | None = Field(default=None, description="How far the change of all variants is.")
    upstream: ResolvedUpstream | None = Field(default=None, description="What the upstream stands for now.")


class PackageVariantSet(WireModel):
    """Makes PackageVariants of one package for many targets."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: PackageVariantSetSpec | None = Field(default=None, description="One source and its targets.")
    status: PackageVariantSetStatus | None = Field(
        default=None, description="What the controller made of it.", json_schema_extra=written_by(Writer.CONTROLLER)
    )

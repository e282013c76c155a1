"""``config.porch.kpt.dev/v1alpha2`` PackageVariantSet: makes PackageVariants of one package for many targets.

Some lists take several shapes, as in :mod:`krm.api.variants`. Source: ``variants.md`` 1.4 to 1.6, 6.6, 6.7 and 6.11.
"""

from typing import Any

from pydantic import Field

from krm.api.rollouts import Rollout, RolloutStatus
from krm.api.variants import BY_TYPE, INT_OR_STRING, Approval, Function, PackageContext, ResolvedUpstream, Upstream
from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by


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


class Guards(WireModel):
    """What a set does not do by mistake."""

    max_deletions: int | str | None = Field(
        default=None,
        description="Most variants that one pass deletes: a number, or a percentage of those that exist; beyond it none "
        "is deleted, unless the annotation config.porch.kpt.dev/allow-deletions names the generation of the set.",
        json_schema_extra=INT_OR_STRING,
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


class PackageVariantSetStatus(WireModel):
    """What the controller made of the set."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="Stalled tells whether the set can be worked on, Ready whether all its variants are there, "
        "ReadyTargets whether all of them are Ready, Paused whether nothing is written because a user said so.",
        json_schema_extra=BY_TYPE,
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

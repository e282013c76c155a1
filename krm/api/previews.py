"""``porch.kpt.dev/v1alpha1`` PackageVariantSetPreview: what a set would do, answered when it is created and never stored.

Source: ``variants.md`` 6.1, 6.2, 6.6, 6.7 and 6.11.
"""

from typing import Any

from pydantic import Field

from krm.api.rollouts import RolloutStatus
from krm.api.variant_sets import Guards, PackageVariantSetSpec
from krm.api.variants import BY_TYPE, Downstream, PackageVariantSpec, ResolvedUpstream
from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel
from krm.meta.written_by import Writer, written_by


class PreviewedMetadata(WireModel):
    """Of the metadata of a set what counts for a preview."""

    name: str | None = Field(default=None, description="Name of the set.")
    namespace: str | None = Field(default=None, description="That of the preview, or nothing.")
    labels: dict[str, str] | None = Field(default=None, description="Labels, added to those of the stored set.")
    annotations: dict[str, str] | None = Field(
        default=None, description="Annotations, added to those of the stored set."
    )


class PreviewedSet(WireModel):
    """A PackageVariantSet as a file has it, whether it is stored or not."""

    api_version: str | None = Field(default=None, description="config.porch.kpt.dev/v1alpha2, or nothing.")
    kind: str | None = Field(default=None, description="PackageVariantSet, or nothing.")
    metadata: PreviewedMetadata | None = Field(
        default=None,
        description="Name, labels and annotations of the set; everything else is ignored.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    spec: PackageVariantSetSpec | None = Field(default=None, description="One source and its targets.")
    status: Any = Field(default=None, description="Ignored: what is stored counts.")


class PackageVariantSetPreviewSpec(WireModel):
    """Which set is previewed: a stored one as it is, or as it would be."""

    name: str | None = Field(
        default=None, description="Name of the set, in the namespace of the preview; that of the set in it, if unset."
    )
    set_: PreviewedSet | None = Field(
        default=None,
        alias="set",
        description="The set as it would be applied, over the stored one of the name if there is one; the stored one as "
        "it is, if unset.",
    )
    guard_defaults: Guards | None = Field(
        default=None,
        description="What the controllers' settings say for sets without guards of their own; 100% and Delete, if unset.",
    )
    upstream_identity: bool | None = Field(
        default=None,
        description="Whether the controllers' settings let expressions see which package and revision the upstream is.",
    )


class ObjectReference(WireModel):
    """Names an object that a target selected."""

    api_version: str | None = Field(default=None, description="Group and version of the object.")
    kind: str | None = Field(default=None, description="Kind of the object.")
    namespace: str | None = Field(default=None, description="Its namespace; none for one of the cluster as a whole.")
    name: str | None = Field(default=None, description="Name of the object.")


class TargetInputs(WireModel):
    """What a PackageVariant is rendered from."""

    target_index: int | None = Field(default=None, description="Place in spec.targets, from 0.")
    repo: str | None = Field(default=None, description="repoDefault of expressions.")
    package: str | None = Field(default=None, description="packageDefault of expressions.")
    object: ObjectReference | None = Field(default=None, description="What was selected; none for a named repository.")


class FieldDifference(WireModel):
    """A field of a PackageVariant that changes."""

    path: str | None = Field(default=None, description='The field, as in spec.labels["example.com/tier"].')
    old: Any = Field(default=None, description="Its value now; missing if it has none.")
    new: Any = Field(default=None, description="Its value afterwards; missing if it has none.")


class TargetPreview(WireModel):
    """What becomes of one target, or of a PackageVariant that no target wants any more."""

    inputs: TargetInputs | None = Field(
        default=None, description="What it is rendered from; nothing for a PackageVariant that no target wants."
    )
    downstream: Downstream | None = Field(
        default=None, description="Repository and package of the PackageVariant; the inputs', if it cannot be rendered."
    )
    name: str | None = Field(default=None, description="Name of the PackageVariant.")
    action: str | None = Field(
        default=None, description="create, update, delete or unchanged; nothing where there is an error."
    )
    admitted: bool | None = Field(
        default=None, description="Of a create, update or delete: whether the next pass of the controller does it."
    )
    reason: str | None = Field(default=None, description="Why it does not, for people.")
    error: str | None = Field(default=None, description="Why the target gets no PackageVariant, for people.")
    wave: str | None = Field(default=None, description="The wave of the rollout that it is in, if there are several.")
    diff: list[FieldDifference] | None = Field(default=None, description="Of an update: what changes, at most 100.")
    spec: PackageVariantSpec | None = Field(default=None, description="What the PackageVariant says, as rendered.")


class PreviewSummary(WireModel):
    """PackageVariants by what becomes of them."""

    create: int | None = Field(default=None, description="PackageVariants that are to be made.")
    update: int | None = Field(default=None, description="PackageVariants that are to change.")
    delete: int | None = Field(default=None, description="PackageVariants that nobody wants any more.")
    unchanged: int | None = Field(default=None, description="PackageVariants that are as they should be.")
    admitted: int | None = Field(default=None, description="Of those to write, how many the next pass writes.")
    failed: int | None = Field(default=None, description="Targets with an error.")
    omitted: int | None = Field(
        default=None, description="Entries of targets that were left out of the answer, which is at most 16 MiB."
    )


class PreviewWarning(WireModel):
    """What is no error and may surprise."""

    reason: str | None = Field(default=None, description="Reason of the Event that the controller writes.")
    message: str | None = Field(default=None, description="What it is, for people.")


class PackageVariantSetPreviewStatus(WireModel):
    """What the next pass of the controller would do and say."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="Stalled and Ready (Paused where a user paused it) as the set would have them afterwards, but for "
        "failures of the writes themselves.",
        json_schema_extra=BY_TYPE,
    )
    summary: PreviewSummary | None = Field(default=None, description="The targets in numbers.")
    upstream: ResolvedUpstream | None = Field(default=None, description="What the upstream stands for now.")
    rollout: RolloutStatus | None = Field(default=None, description="How far the change would be.")
    warnings: list[PreviewWarning] | None = Field(default=None, description="What is no error and may surprise.")
    targets: list[TargetPreview] | None = Field(
        default=None, description="Every target in order, then the PackageVariants that no target wants any more."
    )


class PackageVariantSetPreview(WireModel):
    """Asks what a PackageVariantSet would do; creating it answers, and nothing is written."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata; nothing is stored.")
    spec: PackageVariantSetPreviewSpec = Field(
        default_factory=PackageVariantSetPreviewSpec, description="Which set is previewed."
    )
    status: PackageVariantSetPreviewStatus | None = Field(
        default=None,
        description="The answer: what would be done and said.",
        json_schema_extra=written_by(Writer.SERVER),
    )

"""PackageVariantSet v1alpha1, which nobody serves any more: kept so that old manifests can be read and converted.

Source: ``variants.md`` 1.7.
"""

from pydantic import Field

from krm.api.variant_sets import LabelRequirement
from krm.meta.conditions import Condition
from krm.meta.objects import ObjectMeta, WireModel


class PackageName(WireModel):
    """A package by repository and name."""

    repo: str | None = Field(default=None, description="Name of the Repository.")
    name: str | None = Field(default=None, description="Name of the package.")


class OldUpstream(WireModel):
    """Which package revision is the source."""

    package: PackageName | None = Field(default=None, description="The source package.")
    revision: str | None = Field(default=None, description="Revision of the source.")
    ref: str | None = Field(default=None, description="Tag of the source.")


class ValueOrField(WireModel):
    """A text, given or read from the target."""

    value: str | None = Field(default=None, description="The text.")
    from_field: str | None = Field(default=None, description="Field of the target that holds the text.")


class OldPackageName(WireModel):
    """How the target package is named."""

    base_name: ValueOrField | None = Field(default=None, description="The name; the upstream's if unset.")
    name_prefix: ValueOrField | None = Field(default=None, description="What stands before it.")
    name_suffix: ValueOrField | None = Field(default=None, description="What stands after it.")


class Labels(WireModel):
    """Selects objects by their labels."""

    match_labels: dict[str, str] | None = Field(default=None, description="Labels and values that all must be there.")
    match_expressions: list[LabelRequirement] | None = Field(default=None, description="Conditions that all must hold.")


class OldSelector(WireModel):
    """Selects objects."""

    api_version: str | None = Field(default=None, description="Group and version of the objects.")
    kind: str | None = Field(default=None, description="Kind of the objects.")
    name: str | None = Field(default=None, description="Name of the object.")
    namespace: str | None = Field(default=None, description="Namespace of the objects.")
    label_selector: Labels | None = Field(default=None, description="Labels of the objects.")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations of the objects.")


class OldObjects(WireModel):
    """Objects that get variants."""

    selectors: list[OldSelector] | None = Field(default=None, description="Which objects.")
    repo_name: ValueOrField | None = Field(default=None, description="Name of the Repository for each of them.")


class OldTarget(WireModel):
    """What gets variants."""

    package: PackageName | None = Field(default=None, description="One package.")
    repositories: Labels | None = Field(default=None, description="Repositories by their labels.")
    objects: OldObjects | None = Field(default=None, description="Any objects.")
    package_name: OldPackageName | None = Field(default=None, description="How the target package is named.")


class OldSetSpec(WireModel):
    """One source, and all that gets variants of it."""

    upstream: OldUpstream | None = Field(default=None, description="The source.")
    targets: list[OldTarget] | None = Field(default=None, description="What gets variants.")
    adoption_policy: str | None = Field(default=None, description="adoptNone or adoptExisting.")
    deletion_policy: str | None = Field(default=None, description="delete or orphan.")
    labels: dict[str, str] | None = Field(default=None, description="Labels for package revisions.")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations for package revisions.")


class OldSetStatus(WireModel):
    """What the controller made of the set."""

    conditions: list[Condition] | None = Field(
        default=None,
        description="What is observed of the set.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


class PackageVariantSetV1Alpha1(WireModel):
    """Makes PackageVariants of one package for many targets, in the form that v1alpha2 replaced."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: OldSetSpec | None = Field(default=None, description="One source and its targets.")
    status: OldSetStatus | None = Field(default=None, description="What the controller made of it.")

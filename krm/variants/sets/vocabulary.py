"""The names that sets write into objects and look for there. Source: ``variants.md`` 0.1, 6.2 and 6.11."""

from typing import Final

KIND: Final = "PackageVariantSet"
API_VERSION: Final = "config.porch.kpt.dev/v1alpha2"
REPOSITORY: Final = ("config.porch.kpt.dev/v1alpha1", "Repository")
"""API version and kind of what a ``repositorySelector`` selects."""

SET_LABEL: Final = "config.porch.kpt.dev/packagevariantset"
"""On variants that a set made; the value is the set's UID."""
ALLOW_DELETIONS: Final = "config.porch.kpt.dev/allow-deletions"
"""Annotation of sets: the generation in which more variants may be deleted than ``maxDeletions`` says."""
SPEC_HASH: Final = "config.porch.kpt.dev/spec-hash"
"""Annotation of variants of a set with a rollout: the digest of the spec that the set wrote."""
APPROVE_WAVE: Final = "config.porch.kpt.dev/approve-wave"
"""Annotation of sets: ``<wave>@<changeId>``, the wave whose gate a person has opened."""

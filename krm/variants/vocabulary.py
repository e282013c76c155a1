"""The names that variants write into objects and look for there. Source: ``variants.md`` 0.1."""

from typing import Final

GROUP: Final = "config.porch.kpt.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "PackageVariant"

FINALIZER: Final = "config.porch.kpt.dev/packagevariants"
WORKSPACE_PREFIX: Final = "packagevariant-"
"""Of drafts; a decimal number follows."""
FUNCTION_PREFIX: Final = "PackageVariant"
"""Of names of functions in a Kptfile's pipeline."""
OPERATIONS_GATE: Final = "PVOperationsComplete"
INJECTION_CONDITION: Final = "config.injection"
"""Prefix of condition types: ``config.injection.<Kind>.<name>``, of the resource in the package."""

MARKER_LABEL: Final = "config.porch.kpt.dev/packagevariant-uid"
"""On package revisions that a variant created or adopted; the value is the variant's UID."""
APPLIED_INPUTS: Final = "config.porch.kpt.dev/applied-inputs"
"""Annotation of package revisions: ``sha256:<hex>`` of what the mutations were computed from."""
PAUSED: Final = "config.porch.kpt.dev/paused"
"""Annotation of variants and sets; ``"true"`` pauses."""
CHANGE_SUMMARY: Final = "config.porch.kpt.dev/change-summary"
"""Annotation of drafts: compact JSON that says why the draft exists, at most 4 KiB."""
TAG_LABEL_PREFIX: Final = "tags.porch.kpt.dev/"
"""Of labels on upstream package revisions: a floating tag follows, any value."""

CONFIG_INJECTION: Final = "kpt.dev/config-injection"
"""Annotation of injection points in packages: required or optional."""
INJECTED_NAME: Final = "kpt.dev/injected-resource-name"
"""Annotation of injected resources: the name of the object they were copied from."""
INJECTED_NAME_OF_UPSTREAM: Final = "kpt.dev/injected-resource"
"""The key that upstream's controller writes; kept true where it is there already (C-12)."""

CONTEXT_FILE: Final = "package-context.yaml"
CONTEXT_NAME: Final = "kptfile.kpt.dev"
RESERVED_CONTEXT_KEYS: Final = ("name", "package-path")
LATEST_LABEL: Final = "kpt.dev/latest-revision"
"""Of package revisions; the server's, so that no variant may set it."""
UPGRADE_STRATEGY: Final = "resource-merge"

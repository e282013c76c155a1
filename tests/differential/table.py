"""All cases, by area."""

import cases_access
import cases_apply
import cases_bodies
import cases_custom
import cases_definitions
import cases_deletion
import cases_discovery
import cases_kinds
import cases_lists
import cases_objects
import cases_patches
import cases_watches
from conversation import Case

AREAS: dict[str, list[Case]] = {
    "access": cases_access.CASES,
    "apply": cases_apply.CASES,
    "bodies": cases_bodies.CASES,
    "custom": cases_custom.CASES,
    "definitions": cases_definitions.CASES,
    "deletion": cases_deletion.CASES,
    "discovery": cases_discovery.CASES,
    "kinds": cases_kinds.CASES,
    "lists": cases_lists.CASES,
    "objects": cases_objects.CASES,
    "patches": cases_patches.CASES,
    "watches": cases_watches.CASES,
}

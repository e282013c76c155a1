"""Definition of ``config.porch.kpt.dev/v1alpha1`` Repository: that of its CustomResourceDefinition, and more checks.

Source: ``porch-api.md`` 1.9.
"""

import re
from dataclasses import replace
from typing import Final

from apiserver.machinery.definition import Definition, Json
from apiserver.resources.custom.kinds import served_definitions
from apiserver.resources.custom.own import repository_crd
from krm.meta.errors import Cause, invalid_value, required_value

_CRON_FIELD: Final = re.compile(r"[-*/?,#A-Za-z0-9]{1,64}")
_CRON_FIELDS: Final = 5
_CRON_MACRO: Final = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9hms.]{1,32})")


def repository_definition() -> Definition:
    """Define Repository."""
    (definition,) = served_definitions(repository_crd())
    return replace(definition, prepare=_prepare, validate=_validate)


def _prepare(new: Json, _old: Json | None) -> None:
    """Say which type it is where only one can be meant."""
    spec = new.setdefault("spec", {})
    given = [type_ for type_ in ("git", "oci") if spec.get(type_)]
    if not spec.get("type") and len(given) == 1:
        spec["type"] = given[0]


def _validate(new: Json, _old: Json | None) -> list[Cause]:
    """Check what the rules of the definition do not say; those are checked before."""
    causes: list[Cause] = []
    spec = new.get("spec") or {}
    if spec.get("content", "Package") not in ("", "Package"):
        detail = "The 'content' field is deprecated, its only valid value is 'Package'"
        causes.append(invalid_value("spec.content", spec["content"], detail))
    type_ = spec.get("type")
    if not type_:
        causes.append(required_value("spec.type", "git or oci"))
    elif type_ in ("git", "oci") and not spec.get(type_):
        causes.append(required_value(f"spec.{type_}", f"a repository of type {type_} needs it"))
    return [*causes, *_schedule_problems((spec.get("sync") or {}).get("schedule") or "")]


def _schedule_problems(schedule: str) -> list[Cause]:
    fields = schedule.split()
    cron = len(fields) == _CRON_FIELDS and all(_CRON_FIELD.fullmatch(field) for field in fields)
    if not schedule or cron or _CRON_MACRO.fullmatch(schedule):
        return []
    detail = "must be a cron expression of five fields, for example '*/10 * * * *'"
    return [invalid_value("spec.sync.schedule", schedule[:256], detail)]

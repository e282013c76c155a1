"""Definition of ``config.porch.kpt.dev/v1alpha1`` Repository: columns, defaults, what cannot be changed.

Source: ``porch-api.md`` 1.9.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import AGE, path_value
from krm.api.config import Repository
from krm.meta.conditions import find_condition
from krm.meta.errors import Cause, invalid_value, required_value
from krm.meta.names import LABEL_LENGTH, dns_label_problem

GROUP: Final = "config.porch.kpt.dev"
VERSION: Final = "v1alpha1"

_IMMUTABLE: Final = (
    ("type",),
    ("git", "repo"),
    ("git", "branch"),
    ("git", "directory"),
    ("oci", "registry"),
)
_CRON_FIELD: Final = re.compile(r"[-*/?,#A-Za-z0-9]{1,64}")
_CRON_FIELDS: Final = 5
_CRON_MACRO: Final = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly|every [0-9hms.]{1,32})")


def repository_definition() -> Definition:
    """Define Repository."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="Repository",
        plural="repositories",
        singular="repository",
        short_names=("repo",),
        schema=structural_schema(Repository),
        columns=(
            Column("Type", "string", path_value("spec", "type"), "git or oci."),
            Column("Content", "string", path_value("spec", "content"), "What it holds."),
            Column("Sync schedule", "string", path_value("spec", "sync", "schedule"), "When it is read in full."),
            Column("Deployment", "boolean", path_value("spec", "deployment"), "Whether its packages are deployed."),
            Column("Ready", "string", _ready, "Whether it can be read and written."),
            Column("Address", "string", _address, "Where it is."),
            Column("Branch", "string", path_value("spec", "git", "branch"), "Branch that is published to."),
            AGE,
        ),
        status=True,
        prepare=_prepare,
        validate=_validate,
    )


def _ready(repository: Json) -> str | None:
    condition = find_condition((repository.get("status") or {}).get("conditions"), "Ready")
    return None if condition is None else str(condition.get("status"))


def _address(repository: Json) -> Any:
    return path_value("spec", "git", "repo")(repository) or path_value("spec", "oci", "registry")(repository)


def _prepare(new: Json, _old: Json | None) -> None:
    """Say which type it is where only one can be meant."""
    spec = new.setdefault("spec", {})
    given = [type_ for type_ in ("git", "oci") if spec.get(type_)]
    if not spec.get("type") and len(given) == 1:
        spec["type"] = given[0]


def _validate(new: Json, old: Json | None) -> list[Cause]:
    causes = [*_name_problems(new["metadata"].get("name") or "")] if old is None else []
    spec = new.get("spec") or {}
    if spec.get("content", "Package") not in ("", "Package"):
        detail = "The 'content' field is deprecated, its only valid value is 'Package'"
        causes.append(invalid_value("spec.content", spec["content"], detail))
    type_ = spec.get("type")
    if not type_:
        causes.append(required_value("spec.type", "git or oci"))
    elif type_ in ("git", "oci") and not spec.get(type_):
        causes.append(required_value(f"spec.{type_}", f"a repository of type {type_} needs it"))
    causes += _schedule_problems((spec.get("sync") or {}).get("schedule") or "")
    return [*causes, *_changed_immutables(new, old or {})]


def _name_problems(name: str) -> Iterator[Cause]:
    if len(name) > LABEL_LENGTH:
        yield invalid_value("metadata.name", name, f"metadata.name must be no more than {LABEL_LENGTH} characters")
    elif dns_label_problem(name):
        detail = "metadata.name must conform to the RFC1123 DNS label standard"
        yield invalid_value("metadata.name", name, detail)


def _schedule_problems(schedule: str) -> list[Cause]:
    fields = schedule.split()
    cron = len(fields) == _CRON_FIELDS and all(_CRON_FIELD.fullmatch(field) for field in fields)
    if not schedule or cron or _CRON_MACRO.fullmatch(schedule):
        return []
    detail = "must be a cron expression of five fields, for example '*/10 * * * *'"
    return [invalid_value("spec.sync.schedule", schedule[:256], detail)]


def _changed_immutables(new: Json, old: Json) -> Iterator[Cause]:
    """A field is immutable only once the old object had it."""
    for path in _IMMUTABLE:
        extract = path_value("spec", *path)
        before, after = extract(old), extract(new)
        if before is not None and before != after:
            field = ".".join(("spec", *path))
            yield invalid_value(field, after, f"{field} is immutable")

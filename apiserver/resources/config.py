"""Definition of ``config.porch.kpt.dev/v1alpha1`` Repository: that of its CustomResourceDefinition, and more checks.

Source: ``porch-api.md`` 1.9.
"""

from dataclasses import replace
from typing import Final

from apiserver.machinery.definition import Definition, Json
from apiserver.resources.custom.kinds import served_definitions
from apiserver.resources.custom.own import repository_crd
from apiserver.rules.schedule import MAX_LENGTH, ScheduleProblem, parse_schedule
from krm.meta.errors import Cause, invalid_value, required_value
from storage.git.address import holds_credentials
from storage.git.errors import UnsafePath
from storage.git.paths import check_path
from storage.git.refs import branch_ref

MAX_SHOWN: Final = 200
"""Characters of what a client sent that a message repeats."""


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


def _validate(new: Json, old: Json | None) -> list[Cause]:
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
    causes += _address_problems(spec)
    causes += _place_problems(spec.get("git") or {}, ((old or {}).get("spec") or {}).get("git") or {})
    return [*causes, *_schedule_problems((spec.get("sync") or {}).get("schedule") or "")]


def _address_problems(spec: Json) -> list[Cause]:
    """Refuse credentials in an address: whoever may read the Repository would read them. They are not repeated either."""
    if not holds_credentials(str((spec.get("git") or {}).get("repo") or "")):
        return []
    detail = "must not hold a user name or password; put credentials into a Secret and name it in spec.git.secretRef"
    return [invalid_value("spec.git.repo", "***", detail)]


def _place_problems(git: Json, old: Json) -> list[Cause]:
    """Refuse a branch that Git cannot have, and a directory that it cannot keep packages in.

    What is stored already, from before this was checked, stays writable.
    """
    causes = []
    for field, check in (("branch", branch_ref), ("directory", _check_directory)):
        value = str(git.get(field) or "")
        if not value or value == old.get(field):
            continue
        try:
            check(value)
        except UnsafePath as error:
            causes.append(invalid_value(f"spec.git.{field}", value[:MAX_SHOWN], str(error)))
    return causes


def _check_directory(directory: str) -> None:
    if below := directory.strip("/"):
        check_path(below)


def _schedule_problems(schedule: str) -> list[Cause]:
    try:
        if schedule:
            parse_schedule(schedule)
    except ScheduleProblem as problem:
        detail = f"must be a cron expression of five fields, for example '*/10 * * * *': {problem}"
        return [invalid_value("spec.sync.schedule", schedule[:MAX_LENGTH], detail)]
    return []

"""Query parameters and option bodies of each verb, checked and typed.

Source: ``kube-api.md`` 2.3, 2.5, 2.7, 2.11 and 2.12.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.machinery.request import Query, flag, integer, text
from apiserver.machinery.rest import DeleteOptions, GetOptions, ListOptions, WatchOptions, WriteOptions
from krm.meta.errors import (
    BadRequest,
    Cause,
    Invalid,
    forbidden_value,
    invalid_value,
    not_supported_value,
    required_value,
)
from krm.meta.selectors import FieldSelector, LabelSelector

Json = dict[str, Any]

_META_GROUP = "meta.k8s.io"
_MATCHES = ("Exact", "NotOlderThan")
_VALIDATIONS = ("Ignore", "Strict", "Warn")
_POLICIES = ("Foreground", "Background", "Orphan", "nil")
_MANAGER_LENGTH = 128
"""Characters of a field manager's name."""
_NOBODY = "unknown"
"""The manager of changes by clients that do not say who they are."""
_REVISION = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a watch is sent: bookmarks or not, and for how many seconds (None: the server's choice)."""

    bookmarks: bool
    timeout: int | None


def get_options(query: Query) -> GetOptions:
    """Read the options of a get."""
    if "export" in query:
        raise BadRequest("the export parameter, which was deprecated, is no longer supported")
    return GetOptions(_revision(query))


def list_options(query: Query) -> ListOptions:
    """Read the options of a list.

    Raises:
        Invalid: parameters that exclude each other.
        BadRequest: a selector, number or revision that cannot be read.
    """
    revision, match, token = _revision(query), text(query, "resourceVersionMatch"), text(query, "continue")
    causes = _match_causes(revision, match, token)
    if "sendInitialEvents" in query:
        causes.append(forbidden_value("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    _refuse("ListOptions", causes)
    integer(query, "timeoutSeconds")  # what bounds a list is timeout, but nonsense is refused
    if token and revision not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    limit = max(0, integer(query, "limit") or 0)
    return ListOptions(
        labels=LabelSelector.parse(text(query, "labelSelector")),
        fields=FieldSelector.parse(text(query, "fieldSelector")),
        limit=limit,
        continue_token=token,
        resource_version=revision,
        resource_version_match=match,
    )


def _match_causes(revision: str, match: str, token: str) -> list[Cause]:
    field = "resourceVersionMatch"
    if not match:
        return []
    causes = []
    if not revision:
        causes.append(forbidden_value(field, f"{field} is forbidden unless resourceVersion is provided"))
    if token:
        causes.append(forbidden_value(field, f"{field} is forbidden when continue is provided"))
    if match not in _MATCHES:
        causes.append(not_supported_value(field, match, (*_MATCHES, "")))
    elif match == "Exact" and revision == "0":
        causes.append(forbidden_value(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    return causes


def watch_options(query: Query, *, name: str = "") -> WatchOptions:
    """Read what a watch shows; ``name`` restricts it to one object (the ``/watch/`` paths).

    Raises:
        Invalid: sendInitialEvents and resourceVersionMatch do not go together.
        BadRequest: a selector or revision that cannot be read.
    """
    match_field = "resourceVersionMatch"
    match = text(query, match_field)
    initial = flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None
    causes = []
    if text(query, "continue"):
        causes.append(forbidden_value(match_field, f"{match_field} is forbidden when continue is provided"))
    if initial is None and match:
        causes.append(
            forbidden_value(
                match_field,
                f"{match_field} is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    if initial is not None and match != "NotOlderThan":
        causes.append(
            forbidden_value(
                match_field,
                f"sendInitialEvents requires setting {match_field} to NotOlderThan",
            )
        )
        if match:
            causes.append(not_supported_value(match_field, match, ("NotOlderThan",)))
    _refuse("ListOptions", causes)
    fields = FieldSelector.parse(text(query, "fieldSelector"))
    if name:
        by_name = FieldSelector.parse(f"metadata.name={name}") if not re.search(r"[\\,=]", name) else fields
        fields = FieldSelector((*fields.terms, *by_name.terms))
    return WatchOptions(
        labels=LabelSelector.parse(text(query, "labelSelector")),
        fields=fields,
        resource_version=_revision(query),
        send_initial_events=initial,
    )


def stream_options(query: Query) -> StreamOptions:
    """Read how a watch is sent."""
    timeout = integer(query, "timeoutSeconds")
    return StreamOptions(flag(query, "allowWatchBookmarks"), timeout if timeout and timeout > 0 else None)


def write_options(query: Query, kind: str, agent: str, *, apply: bool = False) -> WriteOptions:
    """Read the options of a create, update or patch; ``kind`` names them (CreateOptions …), ``apply`` tells apply from patch.

    Raises:
        Invalid: an unknown dryRun or fieldValidation, a bad fieldManager, none for apply, force without apply.
    """
    manager = text(query, "fieldManager")
    validation = text(query, "fieldValidation")
    causes = _dry_run_causes(query.get("dryRun", ()))
    if validation and validation not in _VALIDATIONS:
        causes.append(not_supported_value("fieldValidation", validation, ("", *_VALIDATIONS)))
    if len(manager) > _MANAGER_LENGTH:
        causes.append(
            Cause("FieldValueTooLong", f"Too long: may not be more than {_MANAGER_LENGTH} bytes", "fieldManager")
        )
    elif not manager.isprintable():
        position, character = next((at, each) for at, each in enumerate(manager) if not each.isprintable())
        why = f"invalid character U+{ord(character):04X} (at position {position})"
        causes.append(invalid_value("fieldManager", manager, why))
    if apply and not manager:
        causes.append(required_value("fieldManager", "is required for apply patch"))
    if kind == "PatchOptions" and "force" in query and not apply:
        causes.append(forbidden_value("force", "may not be specified for non-apply patch"))
    _refuse(kind, causes)
    return WriteOptions(
        dry_run=bool(query.get("dryRun")),
        field_manager=manager or agent.partition("/")[0][:_MANAGER_LENGTH] or _NOBODY,
        field_validation=validation or "Warn",
        operation="Apply" if apply else "Update",
        force=apply and flag(query, "force"),
    )


def delete_options(query: Query, body: Json | None) -> DeleteOptions:
    """Read the options of a delete from its body, or from the query if there is none.

    A dryRun in the query counts in both cases: to delete what somebody only wanted to try would be worse than to try
    what they wanted to delete.

    Raises:
        BadRequest: the body is no DeleteOptions.
        Invalid: contradicting or unknown values.
    """
    given = body if body is not None else _delete_query(query)
    _check_delete_types(given)
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    preconditions = given.get("preconditions") or {}
    tried = [*(given.get("dryRun") or ()), *query.get("dryRun", ())]
    causes = []
    if policy is not None and orphan is not None:
        causes.append(
            invalid_value("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in _POLICIES[:3]:
        causes.append(not_supported_value("propagationPolicy", policy, _POLICIES))
    _refuse("DeleteOptions", [*causes, *_dry_run_causes(tried)])
    return DeleteOptions(
        dry_run=bool(tried),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        propagation=policy or {True: "Orphan", False: "Background", None: ""}[orphan],
        orphan_dependents=orphan,
    )


def _check_delete_types(given: Json) -> None:
    preconditions, dry_run = given.get("preconditions"), given.get("dryRun")
    if not isinstance(preconditions, dict | None) or not isinstance(dry_run, list | None):
        raise BadRequest("DeleteOptions: preconditions must be an object and dryRun a list")
    preconditions, dry_run = preconditions or {}, dry_run or []
    fields: list[tuple[str, Any, type]] = [
        ("propagationPolicy", given.get("propagationPolicy"), str),
        ("orphanDependents", given.get("orphanDependents"), bool),
        ("gracePeriodSeconds", given.get("gracePeriodSeconds"), int),
        ("preconditions.uid", preconditions.get("uid"), str),
        ("preconditions.resourceVersion", preconditions.get("resourceVersion"), str),
        *((f"dryRun[{index}]", value, str) for index, value in enumerate(dry_run)),
    ]
    for name, value, wanted in fields:
        if value is not None and type(value) is not wanted:
            raise BadRequest(f"DeleteOptions: {name} must be of type {wanted.__name__}, not {type(value).__name__}")


def _delete_query(query: Query) -> Json:
    given: Json = {"gracePeriodSeconds": integer(query, "gracePeriodSeconds")}
    if policy := text(query, "propagationPolicy"):
        given["propagationPolicy"] = policy
    if "orphanDependents" in query:
        given["orphanDependents"] = flag(query, "orphanDependents")
    return given


def _dry_run_causes(values: Sequence[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    return [not_supported_value("dryRun", list(values), ["All"])]


def _revision(query: Query) -> str:
    revision = text(query, "resourceVersion")
    if revision and not _REVISION.fullmatch(revision):
        why = f'Invalid value: "{revision[:64]}": it must be a decimal number from this server'
        raise BadRequest(f"invalid resource version: resourceVersion: {why}")
    return revision


def _refuse(kind: str, causes: list[Cause]) -> None:
    if causes:
        raise Invalid.of(kind, _META_GROUP, "", causes)

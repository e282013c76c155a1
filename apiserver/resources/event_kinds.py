"""Definitions of Event, in the core group and in events.k8s.io: one set of objects in two forms.

Both take the rules of the form that a request is made in: core Events without eventTime are checked as they always were.
Source: ``kube-api.md`` 2.6 and 2.16.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import path_text, path_value
from apiserver.resources.event_forms import core_form
from apiserver.resources.wire_times import settle_micros, settle_seconds
from krm.api.core import Event
from krm.api.events import EventV1
from krm.meta.errors import Cause, ResourceName, invalid_value, required_value
from krm.meta.names import qualified_name_problems

MAX_WORD: Final = 128
"""Characters of an action, a reason or a reporting instance."""
MAX_NOTE: Final = 1024
"""Characters of a message."""

Form = Callable[[Json], Json]
Extract = Callable[[Json], Any]

_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_CORE_TEXTS: Final = ("reportingComponent", "reportingInstance")
_CORE_TIMES: Final = ("eventTime", "firstTimestamp", "lastTimestamp")
_V1_TIMES: Final = ("eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp")
_TYPES: Final = ("Normal", "Warning")
_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
)
"""What an update through events.k8s.io cannot change, by its name in a core Event, which is how causes name it."""


def event_definition() -> Definition:
    """Define the core Event."""
    selectable = {f"involvedObject.{name}": path_text("involvedObject", name) for name in _REFERENCE}
    selectable |= {name: path_text(name) for name in ("reason", "reportingComponent", "type")}
    selectable["source"] = _event_source
    return Definition(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        short_names=("ev",),
        schema=structural_schema(Event),
        columns=_columns(lambda event: event),
        selectable=selectable,
        strategic=True,
        unconditional_update=True,
        create_on_update=True,
        generation=False,
        initial={"source": {}, **dict.fromkeys(_CORE_TIMES), **dict.fromkeys(_CORE_TEXTS, "")},
        prepare=_prepare_core,
        validate=lambda new, _old: list(_core_problems(new, "reportingComponent")),
    )


def event_v1_definition() -> Definition:
    """Define the Event of events.k8s.io: the objects of the core Event, with the same fields selectable in order."""
    selectable = {f"regarding.{name}": path_text("regarding", name) for name in _REFERENCE}
    selectable |= {name: path_text(name) for name in ("reason", "reportingController", "type")}
    return Definition(
        group="events.k8s.io",
        version="v1",
        kind="Event",
        plural="events",
        singular="event",
        short_names=("ev",),
        schema=structural_schema(EventV1),
        columns=_columns(core_form),
        selectable=selectable,
        strategic=True,
        unconditional_update=True,
        create_on_update=True,
        generation=False,
        stored_as=ResourceName("events"),
        initial={"regarding": {}, "deprecatedSource": {}, **dict.fromkeys(_V1_TIMES)},
        prepare=_prepare_v1,
        validate=_validate_v1,
    )


# --- columns ----------------------------------------------------------------------------------


def _columns(as_core: Form) -> tuple[Column, ...]:
    """Return the columns; ``as_core`` turns what is shown into a core Event."""

    def column(name: str, value: Extract, description: str, *, priority: int = 0, type_: str = "string") -> Column:
        return Column(
            name, type_, lambda event: value(as_core(event)), description, priority=priority, told_type="string"
        )

    name = Column("Name", "string", path_value("metadata", "name"), "Name of the event.", format="name", priority=1)
    return (
        column("Last Seen", _last_seen, "Time since it last happened.", type_="date"),
        column("Type", path_text("type"), "Normal or Warning."),
        column("Reason", path_text("reason"), "What happened, as one word."),
        column("Object", _event_object, "What it happened to."),
        column("Subobject", path_text("involvedObject", "fieldPath"), "Which part of that.", priority=1),
        column("Source", _shown_source, "Who reports.", priority=1),
        column("Message", lambda event: str(event.get("message") or "").strip(), "What happened."),
        column("First Seen", _first_seen, "Time since it first happened.", priority=1, type_="date"),
        column("Count", _count, "How often it happened.", priority=1),
        name,
    )


def _event_source(event: Json) -> str:
    source = event.get("source") or {}
    return str(source.get("component") or event.get("reportingComponent") or "")


def _shown_source(event: Json) -> str:
    instance = (event.get("source") or {}).get("host") or event.get("reportingInstance") or ""
    return f"{_event_source(event)}, {instance}" if instance else _event_source(event)


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or {}
    kind, name = str(involved.get("kind") or "").lower(), involved.get("name") or ""
    return f"{kind}/{name}" if name else kind


def _first_seen(event: Json) -> str:
    return str(event.get("firstTimestamp") or event.get("eventTime") or "")


def _last_seen(event: Json) -> str:
    if series := event.get("series"):
        return str(series.get("lastObservedTime") or "")
    return str(event.get("lastTimestamp") or "") or _first_seen(event)


def _count(event: Json) -> int:
    series = event.get("series")
    return int(series.get("count") or 0) if series else int(event.get("count") or 1)


# --- what is filled in ------------------------------------------------------------------------


def _prepare_core(new: Json, _old: Json | None) -> None:
    """Write times in one form, and the fields that Kubernetes shows even when they are empty."""
    new["source"] = new.get("source") or {}
    settle_seconds("Event", new, "firstTimestamp", "lastTimestamp")
    settle_micros("Event", new, "eventTime")
    for name in _CORE_TEXTS:
        new[name] = new.get(name) or ""
    _prepare_series(new)


def _prepare_v1(new: Json, _old: Json | None) -> None:
    for name in ("regarding", "deprecatedSource"):
        new[name] = new.get(name) or {}
    settle_micros("Event", new, "eventTime")
    settle_seconds("Event", new, "deprecatedFirstTimestamp", "deprecatedLastTimestamp")
    _prepare_series(new)


def _prepare_series(event: Json) -> None:
    if series := event.get("series"):
        settle_micros("Event", series, "lastObservedTime")


# --- rules ------------------------------------------------------------------------------------


def _core_problems(event: Json, reporter: str) -> Iterator[Cause]:
    """Check what every event must fulfil; ``reporter`` is the field of the reporting controller in the request's form."""
    if event.get("eventTime"):
        yield from _new_style_problems(event, reporter)
        return
    namespace, involved = event["metadata"].get("namespace") or "", _involved_namespace(event)
    if involved != namespace and (involved or namespace != "default"):
        yield _foreign_namespace(involved)


def _involved_namespace(event: Json) -> str:
    return str((event.get("involvedObject") or {}).get("namespace") or "")


def _foreign_namespace(involved: str) -> Cause:
    return invalid_value("involvedObject.namespace", involved, "does not match event.namespace")


def _new_style_problems(event: Json, reporter: str) -> Iterator[Cause]:
    if not _involved_namespace(event) and event["metadata"].get("namespace") not in ("default", "kube-system"):
        yield _foreign_namespace("")
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required_value(reporter)
    for problem in qualified_name_problems(controller):
        yield invalid_value(reporter, controller[:512], problem)
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            yield required_value(field)
        elif len(event[field].encode()) > MAX_WORD:
            yield invalid_value(field, "", f"can have at most {MAX_WORD} characters")
    if len((event.get("message") or "").encode()) > MAX_NOTE:
        yield invalid_value("message", "", f"can have at most {MAX_NOTE} characters")


def _validate_v1(new: Json, old: Json | None) -> list[Cause]:
    event = core_form(new)
    causes = list(_core_problems(event, "reportingController"))
    causes += _created_problems(event) if old is None else _changed_problems(event, core_form(old))
    return causes


def _created_problems(event: Json) -> Iterator[Cause]:
    yield from _series_problems(event)
    if not event.get("eventTime"):
        yield required_value("eventTime")
    if event.get("type") not in _TYPES:
        yield invalid_value("type", "", f"has invalid value: {event.get('type') or ''}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            yield invalid_value(field, "", "needs to be unset")
    if any((event.get("source") or {}).values()):
        yield invalid_value("source", "", "needs to be unset")


def _changed_problems(event: Json, old: Json) -> Iterator[Cause]:
    if event.get("series") != old.get("series"):
        yield from _series_problems(event)
    names = {field: field for field in _FIXED}
    names |= {"reportingComponent": "reportingController", "reportingInstance": "reportingInstance"}
    for field, told in names.items():
        if (event.get(field) or None) != (old.get(field) or None):
            yield invalid_value(told, event.get(field), "field is immutable")


def _series_problems(event: Json) -> Iterator[Cause]:
    series = event.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:  # noqa: PLR2004 - a series is what happened more than once
        yield invalid_value("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required_value("series.lastObservedTime")

"""The two forms of an event: that of the core group, which is stored, and that of events.k8s.io.

Every field of one form is a field of the other, so nothing is lost on the way there and back.
Source: ``kube-api.md`` 2.16.
"""

from collections.abc import Mapping
from typing import Final

from apiserver.machinery.definition import Json

_V1_NAMES: Final[Mapping[str, str]] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final[Mapping[str, str]] = {v1: core for core, v1 in _V1_NAMES.items()}
_OMITTED_EMPTY: Final = ("reportingController", "reportingInstance")
"""Texts that the core form always shows and this one only when there is something in them."""
_SHOWN_EMPTY: Final = ("reportingComponent", "reportingInstance")


def v1_form(event: Json) -> Json:
    """Return a core Event as events.k8s.io shows it; the parts are shared, not copied."""
    shown = {_V1_NAMES.get(name, name): value for name, value in event.items()}
    for name in _OMITTED_EMPTY:
        if not shown.get(name):
            shown.pop(name, None)
    return {**shown, "apiVersion": "events.k8s.io/v1"}


def core_form(event: Json) -> Json:
    """Return an event of events.k8s.io as the core group stores it; the parts are shared, not copied."""
    core = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    return {**dict.fromkeys(_SHOWN_EMPTY, ""), **core, "apiVersion": "v1"}

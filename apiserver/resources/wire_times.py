"""Times in fields of the core kinds, settled in the form that Kubernetes writes; what cannot be read is refused.

Source: ``kube-api.md`` 1.8.
"""

from collections.abc import Callable

from apiserver.machinery.definition import Json
from krm.meta.errors import BadRequest
from krm.meta.times import micro_time, seconds_time


def settle_seconds(kind: str, obj: Json, *fields: str) -> None:
    """Write times of whole seconds in one form, in place; the fields are there afterwards.

    Raises:
        BadRequest: one is no time.
    """
    _settle(kind, obj, fields, seconds_time)


def settle_micros(kind: str, obj: Json, *fields: str) -> None:
    """Write times of microseconds in one form, in place; the fields are there afterwards.

    Raises:
        BadRequest: one is no time of microseconds.
    """
    _settle(kind, obj, fields, micro_time)


def _settle(kind: str, obj: Json, fields: tuple[str, ...], settled: Callable[[str | None], str | None]) -> None:
    for name in fields:
        try:
            obj[name] = settled(obj.get(name))
        except ValueError as error:
            raise BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from error

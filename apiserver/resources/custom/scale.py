"""The ``scale`` subresource of a custom resource: the number of replicas as an autoscaling/v1 Scale.

Where the numbers are in an object, the definition says by JSONPaths; they are simple paths of field names.
Source: ``kube-api.md`` 2.13 and 2.15.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from pydantic import Field

from apiserver.machinery.apply.managers import APPLY
from apiserver.machinery.apply.scale import object_entries, scale_entries
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import Change, GetOptions, Scope, WriteOptions
from apiserver.machinery.schema import structural_schema
from apiserver.resources.custom.objects import CustomObjects
from krm.meta.errors import Cause, Conflict, InternalError, invalid_value
from krm.meta.objects import ObjectMeta, WireModel
from storage.interfaces import Entry

_MOST_REPLICAS: Final = 2**31 - 1
_KEPT_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleSpec(WireModel):
    """The wanted scale."""

    replicas: int | None = Field(
        default=None, description="Wanted number of replicas.", json_schema_extra={"format": "int32"}
    )


class ScaleStatus(WireModel):
    """The observed scale."""

    replicas: int | None = Field(
        default=None, description="Observed number of replicas.", json_schema_extra={"format": "int32"}
    )
    selector: str = Field(default="", description="Label selector of what is counted, as text.")


class Scale(WireModel):
    """The number of replicas of an object, for autoscalers and kubectl scale."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")
    spec: ScaleSpec | None = Field(default=None, description="The wanted scale.")
    status: ScaleStatus | None = Field(default=None, description="The observed scale.")


def scale_definition(parent: Definition) -> Definition:
    """Define the Scale of a kind."""
    return Definition(
        group="autoscaling",
        version="v1",
        kind="Scale",
        plural=parent.plural,
        singular="scale",
        schema=structural_schema(Scale),
        namespaced=parent.namespaced,
        served_as=parent.resource,
        unconditional_update=True,
        deprecation=parent.deprecation,
    )


def scale_rules(paths: Mapping[str, str]) -> Callable[[Json, Json | None], list[Cause]]:
    """Return the check of a kind with a scale: its numbers of replicas are 0 or more, in 32 bits."""
    checked = [(paths[key], _fields(paths[key])) for key in ("specReplicasPath", "statusReplicasPath")]

    def check(obj: Json, _old: Json | None) -> list[Cause]:
        found = []
        for path, fields in checked:
            value = _value(obj, fields)
            if isinstance(value, int) and not 0 <= value <= _MOST_REPLICAS:
                most = f"should be less than or equal to {_MOST_REPLICAS}"
                found.append(invalid_value(path, value, "should be a non-negative integer" if value < 0 else most))
        return found

    return check


class ScaleOf:
    """The ``scale`` subresource of ``parent``; ``paths`` are those of the definition, by their names there."""

    def __init__(self, parent: CustomObjects, paths: Mapping[str, str]) -> None:
        self.definition = scale_definition(parent.definition)
        self._parent = parent
        self._spec = _fields(paths["specReplicasPath"])
        self._status = _fields(paths["statusReplicasPath"])
        self._selector = _fields(paths.get("labelSelectorPath") or "")

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        """Return the Scale of an object.

        Raises:
            NotFound: there is no such object.
            InternalError: the object has no number of wanted replicas.
        """
        return self._entry(await self._parent.get(scope, name, options))

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        """Take ``spec.replicas`` from a changed Scale, and nothing else.

        Raises:
            Conflict: the Scale is for another revision.
            Invalid: the object would break a rule.
        """

        def scaled(current: Json) -> Json:
            wanted = change(self._managed(current))
            self._check_revision(current, wanted)
            _put(current, self._spec, (wanted.get("spec") or {}).get("replicas") or 0)
            if options.operation == APPLY:
                self._record(current, wanted)
            # A Scale without a revision is for any; one with another was refused above.
            return current

        entry, _ = await self._parent.update_part(scope, name, scaled, options, "scale")
        return self._entry(entry), False

    def _check_revision(self, current: Json, wanted: Json) -> None:
        revision = wanted["metadata"].get("resourceVersion") or ""
        if revision not in ("", current["metadata"]["resourceVersion"]):
            raise Conflict.of(self._parent.definition.resource, current["metadata"]["name"])

    def _managed(self, obj: Json) -> Json:
        """Return the Scale with its managers, whom Kubernetes does not show for custom resources."""
        scale = self._scale(obj)
        if entries := scale_entries(obj["metadata"].get("managedFields") or [], self._spec):
            scale["metadata"]["managedFields"] = entries
        return scale

    def _record(self, obj: Json, scale: Json) -> None:
        """Say in an object who manages its number of replicas after an apply to its Scale."""
        entries, applied = obj["metadata"].get("managedFields") or [], scale["metadata"].get("managedFields") or []
        version = self._parent.definition.api_version
        obj["metadata"]["managedFields"] = object_entries(entries, applied, self._spec, version)

    def _scale(self, obj: Json) -> Json:
        metadata = {key: obj["metadata"][key] for key in _KEPT_METADATA if key in obj["metadata"]}
        wanted = _value(obj, self._spec)
        status: Json = {"replicas": _number(_value(obj, self._status))}
        if self._selector and isinstance(selector := _value(obj, self._selector), str):
            status["selector"] = selector
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": metadata,
            "spec": {"replicas": _number(wanted)} if wanted is not None else {},
            "status": status,
        }

    def _entry(self, entry: Entry) -> Entry:
        obj = orjson.loads(entry.body)
        if _value(obj, self._spec) is None:
            path = ".".join(("", *self._spec))
            raise InternalError.because(f'the spec replicas field "{path}" does not exist')
        return Entry(entry.key, entry.rv, entry.create_rv, entry.uid, orjson.dumps(self._scale(obj)), {}, ())


def _fields(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split(".")) if path else ()


def _value(obj: Any, fields: Sequence[str]) -> Any:
    for name in fields:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _put(obj: Json, fields: Sequence[str], value: int) -> None:
    *parents, last = fields
    for name in parents:
        child = obj.get(name)
        if not isinstance(child, dict):
            child = obj[name] = {}
        obj = child
    obj[last] = value

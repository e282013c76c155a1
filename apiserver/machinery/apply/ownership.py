"""Field ownership of one kind: keeps ``metadata.managedFields`` right through every write, and applies configurations.

Source: ``kube-api.md`` 2.10.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.apply import ApplyConflict, FieldConflict, apply
from apiserver.machinery.apply.compare import compare
from apiserver.machinery.apply.configuration import problems_of
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.fields_of import fields_of, fitted
from apiserver.machinery.apply.managers import (
    APPLY,
    UPDATE,
    Manager,
    Managers,
    ManagersError,
    entries_of,
    given_managers,
    is_reset,
    same_but_times,
    stored_managers,
)
from apiserver.machinery.apply.update import updated
from apiserver.machinery.decode import parse_json
from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import WriteOptions
from krm.meta.conditions import timestamp
from krm.meta.errors import BadRequest, Cause, Conflict, Invalid, RequestEntityTooLarge, invalid_value

Json = dict[str, Any]

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""Who manages what was there when the first apply met an object without managers."""
KUBECTL: Final = "kubectl"
"""The manager whose earlier client-side applies count as its own."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which client-side apply keeps what it applied."""
MAX_LAST_APPLIED: Final = 262_144
"""Bytes of an object's annotations; a longer configuration is not kept in one."""

MAX_MANAGED: Final = 1024 * 1024
"""Bytes of an object's managedFields; an object has dozens of managers at the most, or is very small."""

_FEW: Final = 3
"""Managers whose fields are bounded by the size of the object."""
_UNTRACKED: Final = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion"),
)
_CONDITIONS: Final = ("resourceVersion", "creationTimestamp")
_ENVELOPE: Final = frozenset(("apiVersion", "kind", "metadata"))
_STATUS: Final = "status"
_SCALE: Final = "scale"


class Ownership:
    """Who manages which fields of the objects of a kind, by way of its main resource or of one of its subresources."""

    def __init__(self, definition: Definition, subresource: str = "") -> None:
        self._definition = definition
        self._subresource = subresource

    # --- writes other than apply -----------------------------------------------------------------

    def created(self, obj: Json, options: WriteOptions) -> None:
        """Record, in place, who made a new object. An apply that created it has already said so."""
        if options.operation != APPLY:
            managers = _given(obj["metadata"].get("managedFields")) or {}
            _set_entries(obj, self._after_update({}, obj, managers, options))

    def changed(self, current: Json, obj: Json, options: WriteOptions) -> bool:
        """Record, in place, who changed what; return whether anything but times differs from the current object.

        If nothing does, managedFields are left as they were. An apply has already said who manages what.
        """
        present = current["metadata"].get("managedFields") or []
        wanted = obj["metadata"].get("managedFields")
        same = _without_managers(obj) == _without_managers(current)
        if options.operation == APPLY:
            entries = wanted or []
        elif same and (wanted is None or wanted == present):
            entries = present
        else:
            entries = self._entries_after(current, obj, present, wanted, options)
        unchanged = same and (entries is present or same_but_times(entries, present))
        _set_entries(obj, present if unchanged else entries)
        return not unchanged

    def _entries_after(
        self, current: Json, obj: Json, present: list[Json], wanted: Any, options: WriteOptions
    ) -> list[Json]:
        given = None if self._subresource or wanted == present else _given(wanted)
        if given is None:
            given = self._stored(present)
        # Who updates an object without managers does not become one: only an apply begins to record them.
        return self._after_update(current, obj, given, options) if given else []

    def _after_update(self, old: Json, new: Json, managers: Managers, options: WriteOptions) -> list[Json]:
        before = self._part(old or self._definition.initial)
        return entries_of(updated(before, self._part(new), managers, self._manager(options), self._definition.owned))

    def _stored(self, entries: list[Json]) -> Managers:
        managers = stored_managers(entries)
        if not self._definition.custom:
            return managers
        type_ = self._definition.owned
        return {who: manager.owning(fitted(manager.fields, type_)) for who, manager in managers.items()}

    def _manager(self, options: WriteOptions) -> Manager:
        # As with Kubernetes, whose Scale has no place for the time.
        time = "" if self._subresource == _SCALE else timestamp()
        version = self._definition.api_version
        return Manager(options.field_manager, options.operation, version, self._subresource, time)

    # --- apply -----------------------------------------------------------------------------------

    def apply(self, current: Json, config: Json, options: WriteOptions) -> Json:
        """Return the object, managedFields included, after applying a configuration to it ({}: to none).

        Repeating it changes nothing.

        The configuration has passed :meth:`check`.

        Raises:
            Conflict: it would change fields of others, and ``options.force`` is not set; or it is meant for an object that
                is not there.
            Invalid: it is meant for another object of the same name.
        """
        live = current or self._new()
        managers = self._stored(live["metadata"].get("managedFields") or [])
        if current and not managers:
            managers = self._before_first_apply(live)
        applier = self._manager(options)
        allowed = self._last_applied(live) if applier.name == KUBECTL else {}
        try:
            done = apply(
                self._part(live),
                self._config_part(config),
                managers,
                applier,
                self._definition.owned,
                force=options.force,
                allowed=allowed,
            )
        except ApplyConflict as error:
            raise _conflict(error.conflicts) from error
        obj = self._with_part(live, done.obj)
        self._set_conditions(obj, config)
        if applier.name == KUBECTL:
            _keep_last_applied(obj, config)
        _set_entries(obj, entries_of(done.managers))
        return obj

    def check(self, config: Json) -> None:
        """Check that a configuration fits the kind.

        Raises:
            BadRequest: it is for another kind, says who manages what, or has what the kind has no place for.
        """
        definition = self._definition
        group_version, kind = str(config.get("apiVersion") or "/"), str(config.get("kind") or "")
        shown = f"{group_version if '/' in group_version else '/' + group_version}, Kind={kind}"
        if (config.get("apiVersion"), kind) != (definition.api_version, definition.kind):
            raise BadRequest(f"invalid object type: {shown[:300]}")
        metadata = config.get("metadata") or {}
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise BadRequest("metadata.managedFields must be nil")
        problems = [f".{problem}" for problem in definition.compiled.type_errors(config)]
        if problems := problems or problems_of(config, definition.owned):
            text = problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems])
            raise BadRequest(f"failed to create typed patch object ({_named(metadata)}; {shown}): {text}")

    def _new(self) -> Json:
        definition = self._definition
        envelope: Json = {"apiVersion": definition.api_version, "kind": definition.kind, "metadata": {}}
        return {**definition.initial, **envelope}

    def _before_first_apply(self, live: Json) -> Managers:
        first = Manager(BEFORE_FIRST_APPLY, UPDATE, self._definition.api_version, self._subresource, timestamp())
        initial = self._part(self._definition.initial)
        return updated(initial, self._part(live), {}, first, self._definition.owned)

    def _last_applied(self, live: Json) -> Fields:
        """Return the fields that kubectl's last client-side apply set and nobody has changed since."""
        text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
        if not text:
            return {}
        try:
            applied = parse_json(text.encode()).value
        except (orjson.JSONDecodeError, BadRequest):
            # Anybody may write the annotation: what is no configuration, or is nested without end, says nothing.
            return {}
        if not isinstance(applied, dict) or problems_of(applied, self._definition.owned):
            return {}
        part = self._config_part(applied)
        since = compare(part, self._part(live), self._definition.owned)
        changed = field_set.union(since.taken, since.removed)
        return field_set.difference(fields_of(part, self._definition.owned), changed)

    # --- parts -----------------------------------------------------------------------------------

    def _part(self, obj: Json) -> Json:
        """Return what may be managed here: not the object's identity, and the status only where it is written."""
        if self._subresource == _STATUS:
            return {_STATUS: obj[_STATUS]} if _STATUS in obj else {}
        metadata = obj.get("metadata") or {}
        tracked = {name: value for name, value in metadata.items() if name not in _UNTRACKED}
        return {"metadata": tracked, **{name: value for name, value in obj.items() if self._is_ours(name)}}

    def _config_part(self, config: Json) -> Json:
        """Return the same of a configuration; metadata that only identifies claims nothing."""
        part = self._part(config)
        if not part.get("metadata"):
            part.pop("metadata", None)
        return part

    def _is_ours(self, name: str) -> bool:
        if self._subresource == _STATUS:
            return name == _STATUS
        return name not in _ENVELOPE and not (name == _STATUS and self._definition.status)

    def _with_part(self, live: Json, part: Json) -> Json:
        """Return an object with another part in place of its own."""
        metadata = dict(live["metadata"])
        if self._subresource != _STATUS:
            metadata = {name: value for name, value in metadata.items() if name in _UNTRACKED}
            metadata |= part.get("metadata") or {}
        rest = {name: value for name, value in live.items() if not self._is_ours(name)}
        ours = {name: value for name, value in part.items() if self._is_ours(name)}
        return {**rest, "metadata": metadata, **ours}

    def _set_conditions(self, obj: Json, config: Json) -> None:
        """Take over, in place, what a configuration says of the object that it is for."""
        given, metadata = config.get("metadata") or {}, obj["metadata"]
        uid = given.get("uid")
        if uid and not metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise Conflict.of(self._definition.resource, str(given.get("name") or ""), why)
        if uid and uid != metadata.get("uid"):
            cause = invalid_value("metadata.uid", uid, "field is immutable")
            raise Invalid.of(self._definition.kind, self._definition.group, given.get("name") or "", [cause])
        metadata |= {name: given[name] for name in _CONDITIONS if given.get(name)}
        metadata |= {name: given[name] for name in ("name", "namespace") if given.get(name)}


def _named(metadata: Any) -> str:
    given = metadata if isinstance(metadata, dict) else {}
    return f"{given.get('namespace') or ''!s:.300}/{given.get('name') or ''!s:.300}"


def _given(entries: Any) -> Managers | None:
    """Return the managers that a client sent; None: none that could be read, so the present ones stay."""
    if entries is None:
        return None
    if is_reset(entries):
        return {}
    try:
        return given_managers(entries) or None
    except ManagersError:
        # Kubernetes ignores what it cannot read, so that no client breaks an object's managers by accident.
        return None


def _set_entries(obj: Json, entries: list[Json]) -> None:
    """Write managedFields, in place.

    Raises:
        RequestEntityTooLarge: they would be over ``MAX_MANAGED``, as many appliers of a large object would make them.
    """
    if len(entries) > _FEW and (size := len(orjson.dumps(entries))) > MAX_MANAGED:
        raise RequestEntityTooLarge(
            f"metadata.managedFields would be {size} bytes of at most {MAX_MANAGED}: too many managers of too many fields"
        )
    if entries:
        obj["metadata"]["managedFields"] = entries
    else:
        obj["metadata"].pop("managedFields", None)


def _without_managers(obj: Json) -> Json:
    metadata: Mapping[str, Any] = obj["metadata"]
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _keep_last_applied(obj: Json, config: Json) -> None:
    """Keep, in place, the annotation of client-side apply in step, where there is one."""
    annotations = obj["metadata"].get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return
    metadata = dict(config.get("metadata") or {})
    metadata["annotations"] = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name != LAST_APPLIED
    }
    text = orjson.dumps({**config, "metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    kept = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    if len(text) <= MAX_LAST_APPLIED:
        kept[LAST_APPLIED] = text
    obj["metadata"]["annotations"] = kept


def _conflict(conflicts: list[FieldConflict]) -> Conflict:
    """Say which fields of whom an apply would change."""
    found: dict[str, list[str]] = {}
    causes: list[Cause] = []
    for conflict in sorted(conflicts, key=lambda one: _shown(one.manager)):
        who, path = _shown(conflict.manager), field_set.path_text(conflict.path)
        found.setdefault(who, []).append(path)
        causes.append(Cause("FieldManagerConflict", f"conflict with {who}", path))
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
        return Conflict(message, causes=causes)
    lines = [line for who, paths in found.items() for line in (f"conflicts with {who}:", *(f"- {p}" for p in paths))]
    return Conflict(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes=causes)


def _shown(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return f"{text} using {manager.api_version}" if manager.operation == UPDATE else text

"""``set-namespace``: move resources, and what refers to their namespace, to another one.

Three behaviours, by tag: current (v0.4.2 on), the one nephio pins (v0.4.0 and v0.4.1), and v0.3. Before v0.3
every namespace was set, as by the second, which is what seed 000's examples (v0.1) count on.
Source: ``kpt.md`` 4.6, ``variants.md`` G-P13.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import FN_GROUP, ConfigKind, config_result, text_map
from krm.functions.catalog.namespace_fields import (
    NamespaceField,
    NamespaceFields,
    Reach,
    namespace_fields,
    rewrite_dependency,
)
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.package_context import CONTEXT_NAME
from krm.package.resource_identity import UNSCOPED, identity_of, is_local_config, upstream_identity

_FAILURE = "failed to evaluate function: error: function failure"
_WITH_MATCHER: Version = (0, 4, 2)
_ALL_FIELDS: Version = (0, 4, 0)
_ONE_OLD: Version = (0, 3, 0)
_STRICT: Version = (0, 4, 5)
"""From here on a bad configuration fails the function; before, it only reports."""
_ONLY_REPORTING_TAG = "unstable"
_DEFAULT = "default"
_CURRENT_REACH = Reach(role_bindings=False, unnamed_services=False)
_PINNED_REACH = Reach(role_bindings=True, unnamed_services=True)
_FIRST_REACH = Reach(role_bindings=True, unnamed_services=True, by_scope=False)


class _ConfigError(Exception):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class _Target:
    namespace: str
    matcher: str


def set_namespace(resources: ResourceList, version: Version, tag: str = "") -> FunctionResult:
    """Run the function."""
    try:
        if version >= _WITH_MATCHER:
            return _set_matching(resources, _configure(resources.config))
        if _sets_all(version):
            return _set_all(resources, _configure(resources.config, old_words=True).namespace)
        return _set_single(resources, _configure(resources.config))
    except _ConfigError as error:
        result = config_result(str(error), resources.config)
        is_failure = (version >= _STRICT and tag != _ONLY_REPORTING_TAG) or _sets_all(version)
        return FunctionResult(
            resources.items, [result], exit_code=int(is_failure), stderr=_FAILURE if is_failure else ""
        )


def _sets_all(version: Version) -> bool:
    return version < _ONE_OLD or _ALL_FIELDS <= version < _WITH_MATCHER


def _configure(config: FunctionConfig | None, *, old_words: bool = False) -> _Target:
    expected = "`ConfigMap` or `SetNamespace`" if old_words else f"`ConfigMap.v1` or `SetNamespace.v1alpha1.{FN_GROUP}`"
    if config is None:
        raise _ConfigError(f"FunctionConfig is missing. Expect {expected}")
    kind = ConfigKind.of(config)
    if kind.is_config_map:
        data = text_map(config, "data")
        metadata = config.data.get("metadata")
        is_context = isinstance(metadata, dict) and metadata.get("name") == CONTEXT_NAME
        key = "name" if is_context else "namespace"
        if not data.get(key):
            raise _ConfigError(f"`data.{key}` should not be empty")
        return _Target(data[key], "" if is_context else data.get("namespaceMatcher", ""))
    if kind.kind == "SetNamespace" and kind.group == FN_GROUP:
        namespace = config.data.get("namespace")
        if not isinstance(namespace, str) or not namespace:
            raise _ConfigError("`namespace` should not be empty")
        return _Target(namespace, str(config.data.get("namespaceMatcher") or ""))
    version = config.data.get("apiVersion") or ""
    raise _ConfigError(f"unknown functionConfig Kind={kind.kind} ApiVersion={version}, expect {expected}")


def _set_matching(resources: ResourceList, target: _Target) -> FunctionResult:
    items = [item for item in resources.items if not is_local_config(item.data)]
    known = {identity_of(item.data) for item in items}
    old: set[str] = set()
    count = 0
    origins: list[str] = []
    fields = namespace_fields(items, _CURRENT_REACH)
    for place in fields.special + fields.ordinary:
        current = place.value or _DEFAULT
        if place.value == target.namespace:
            continue
        if target.matcher and not _is_wanted(place, current, target.matcher, origins):
            continue
        if current != target.namespace:
            old.add(current)
            count += 1
        place.set(target.namespace)
    moved = [
        namespace
        for item in items
        for namespace in rewrite_dependency(
            item,
            target.namespace,
            lambda identity: identity in known and target.matcher in ("", identity.namespace),
        )
    ]
    results = [_info(text) for text in dict.fromkeys(origins)]
    results += [_info(_changed(old, target.namespace, count)), _info(_moved(moved, target.namespace))]
    return FunctionResult(resources.items, results)


def _is_wanted(place: NamespaceField, current: str, matcher: str, origins: list[str]) -> bool:
    """Say whether a matcher reaches the field: by its value, or by the namespace its object had upstream."""
    origin = upstream_identity(place.resource.data)
    if origin is not None and origin.namespace == UNSCOPED:
        return False
    if origin is not None and origin.namespace == matcher:
        now = identity_of(place.resource.data)
        origins.append(f"[{now.kind} {now.namespace}/{now.name}] has matching origin {matcher}")
        return True
    return current == matcher


def _changed(old: Iterable[str], target: str, count: int) -> str:
    if not count:
        return f'all matching namespaces are already "{target}". no value changed'
    return f'namespace [{" ".join(sorted(old))}] updated to "{target}", {count} value(s) changed'


def _moved(old: Sequence[str], target: str) -> str:
    if not old:
        return "all `depends-on` annotations are up-to-date. no `namespace` changed"
    shown = " ".join(sorted(set(old)))
    return f'`depends-on` annotation namespace [{shown}] updated to "{target}", {len(old)} value(s) changed'


def _set_all(resources: ResourceList, target: str) -> FunctionResult:
    """Behave as v0.4.0 and v0.4.1, and before v0.3: every visited value, whatever it was."""
    items = [item for item in resources.items if not is_local_config(item.data)]
    names = {(now.group, now.kind, now.name) for now in (identity_of(item.data) for item in items)}
    old: set[str] = set()
    count = 0
    fields = namespace_fields(items, _PINNED_REACH)
    for place in fields.special + fields.ordinary:
        if place.value != target:
            old.add(place.value)
            place.set(target)
            count += 1
    for item in items:
        rewrite_dependency(item, target, lambda now: now.namespace in old and (now.group, now.kind, now.name) in names)
    if twin := _twin(items):
        return FunctionResult(resources.items, [{"message": twin, "severity": "error"}])
    if not count:
        return FunctionResult(resources.items, [_info(f'all namespaces are already "{target}". no value changed')])
    shown = ",".join(f'"{namespace}"' for namespace in sorted(old))
    return FunctionResult(
        resources.items, [_info(f'namespace {shown} updated to "{target}", {count} value(s) changed')]
    )


def _twin(items: list[Resource]) -> str:
    seen = set()
    for item in items:
        now = identity_of(item.data)
        if now in seen:
            return f"two objects have the same identity after the change: {now.kind} {now.namespace}/{now.name}"
        seen.add(now)
    return ""


def _set_single(resources: ResourceList, target: _Target) -> FunctionResult:
    """Behave as v0.3: find the one namespace in use, change only what equals it."""
    items = [item for item in resources.items if not is_local_config(item.data)]
    fields = namespace_fields(items, _FIRST_REACH)
    try:
        old = _single_namespace(fields, target.matcher)
    except _ConfigError as error:
        return FunctionResult(resources.items, [{"message": str(error), "severity": "error"}])
    before = {identity_of(item.data) for item in items}
    changed = [place for place in fields.special + fields.ordinary if place.value == old]
    for place in changed:
        place.set(target.namespace)
    for item in items:
        rewrite_dependency(item, target.namespace, lambda identity: identity.namespace == old and identity in before)
    message = f'namespace "{old}" updated to "{target.namespace}", {len(changed)} values changed'
    return FunctionResult(resources.items, [_info(message)])


def _single_namespace(fields: NamespaceFields, matcher: str) -> str:
    objects = Counter(place.value for place in fields.special if place.key == "name")
    if len(objects) > 1:
        shown = " ".join(f"{name}:{count}" for name, count in sorted(objects.items()))
        raise _ConfigError(
            f"cannot accept more than one Namespace objects from the input resources, found map[{shown}]"
        )
    if objects and matcher:
        raise _ConfigError("cannot use both a Namespace object and `namespaceMatcher`")
    if objects or matcher:
        return matcher or next(iter(objects))
    used = sorted({place.value for place in fields.ordinary if place.value})
    if len(used) > 1:
        raise _ConfigError(
            "all input namespace-scoped resources should be under the same namespace "
            f'but found different namespaces: "{",".join(used)}" '
        )
    if not used:
        raise _ConfigError(
            "could not find any namespace fields to update. This function requires at least one: "
            "a Namespace object, or a resource with `metadata.namespace`"
        )
    return used[0]


def _info(message: str) -> dict[str, Any]:
    return {"message": message, "severity": "info"}


FUNCTION = Builtin(
    name="set-namespace",
    run=lambda resources, image, version: set_namespace(resources, version, image.tag),
    summary="Moves namespaced resources, and what refers to their namespace, into one namespace.",
    source="kpt.md 4.6",
    tags=("v0.1.3", "v0.1.4", "v0.2.0", "v0.3.4", "v0.4.0", "v0.4.1", "v0.4.2", "v0.4.3", "v0.4.4", "v0.4.5"),
    config_kinds=("ConfigMap", "SetNamespace.fn.kpt.dev"),
    options=(
        Option(
            "namespace", "the new namespace (in `data` of a ConfigMap; `data.name` of a package context)", required=True
        ),
        Option(
            "namespaceMatcher",
            "change only resources that are in this namespace, now or upstream (in `data` of a ConfigMap); not with a "
            "package context",
        ),
    ),
    behaviours=(
        Behaviour("before v0.3.0", "as v0.4.0"),
        Behaviour(
            "v0.3.0 to v0.3.4",
            "replaces one old namespace: that of the Namespace object, else the matcher, else the only one in use; "
            "what it cannot do is reported and exits 0",
        ),
        Behaviour("v0.4.0, v0.4.1", "sets every namespace there is, subjects of RoleBindings too; no matcher"),
        Behaviour(
            "v0.4.2 to v0.4.4, unstable", "matcher and upstream identifiers; an error in the configuration exits 0"
        ),
        Behaviour("v0.4.5 and later, latest", "an error in the configuration exits 1"),
    ),
)

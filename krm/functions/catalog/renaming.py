"""Keeping references right when objects get other names. Source: ``kpt.md`` 4.14."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FoundField
from krm.functions.catalog.name_references import GROUPS, NAME_REFERENCES
from krm.functions.catalog.scope import is_namespaced
from krm.functions.resource import Resource
from krm.package.resource_identity import Identity, annotations_of, identity_of

_DEPENDS_ON = "config.kubernetes.io/depends-on"
_ROLES = ("ClusterRole", "Role")
_CLUSTER_REFERENCE = 3
_NAMESPACED_REFERENCE = 5
"""Parts of a ``depends-on`` reference."""


class Renames:
    """The objects that got other names, found by what they were called before."""

    def __init__(self, renamed: Mapping[Identity, str]) -> None:
        """``renamed`` gives the new name of each identity that is no more."""
        self._by_identity = {_normal(identity): name for identity, name in renamed.items()}
        self._names: dict[tuple[str, str, str | None], set[str]] = {}
        for identity, name in renamed.items():
            if identity.group in GROUPS.get(identity.kind, ()):
                for namespace in (_namespace(identity.namespace), None):
                    self._names.setdefault((identity.kind, identity.name, namespace), set()).add(name)
        self._kinds = {kind for kind, _, _ in self._names}

    def fix(self, items: Iterable[Resource]) -> None:
        """Change every reference among ``items`` to a renamed object; doing it once is enough."""
        if not self._by_identity:
            return
        for item in items:
            self._fix_dependencies(item.data)
            if self._kinds:
                self._fix_fields(item.data)

    def _fix_fields(self, data: dict[str, Any]) -> None:
        now = identity_of(data)
        scoped = is_namespaced(now.group, now.kind)
        namespace = None if scoped is False else _namespace(now.namespace)
        done: set[tuple[str | int, ...]] = set()
        for reference in NAME_REFERENCES.get(now.kind, ()):
            if reference.kind not in self._kinds:
                continue
            for found in _fields(reference.spec, data):
                new = self._new_value(reference.kind, found, namespace)
                # A field for several kinds must not be renamed twice.
                if new is not None and found.path not in done:
                    done.add(found.path)
                    found.set(new)
        if now.kind in _ROLES:
            self._fix_rules(data, namespace)

    def _new_value(self, kind: str, found: FoundField, namespace: str | None) -> str | None:
        owner = found.owner
        if not isinstance(found.value, str) or owner.get("kind", kind) != kind:
            return None
        if isinstance(owner.get("namespace"), str):
            namespace = _namespace(owner["namespace"])
        name = found.value
        prefix, slash, rest = name.partition("/")
        if slash:  # an Ingress's annotation may give the namespace along
            namespace, name = _namespace(prefix), rest
        new = self._new_name(kind, name, namespace)
        return None if new is None else f"{prefix}/{new}" if slash else new

    def _new_name(self, kind: str, name: str, namespace: str | None) -> str | None:
        """Return what an object is called now, None when it is called the same or could be several.

        Without a namespace, as in objects that live in none, those of all namespaces count.
        """
        if not is_namespaced(GROUPS[kind][0], kind):
            namespace = None
        names = self._names.get((kind, name, namespace), ())
        return next(iter(names)) if len(names) == 1 else None

    def _fix_rules(self, data: dict[str, Any], namespace: str | None) -> None:
        """Change the names that a role's rules are limited to, for the kinds that each rule is about."""
        rules = data.get("rules")
        for rule in rules if isinstance(rules, list) else []:
            names = rule.get("resourceNames") if isinstance(rule, dict) else None
            if not isinstance(names, list):
                continue
            kinds = list(self._ruled_kinds(rule))
            for place, name in enumerate(names):
                found = (self._new_name(kind, name, namespace) for kind in kinds if isinstance(name, str))
                names[place] = next(filter(None, found), name)

    def _ruled_kinds(self, rule: dict[str, Any]) -> Iterator[str]:
        groups, resources = rule.get("apiGroups"), rule.get("resources")
        groups, resources = (values if isinstance(values, list) else [] for values in (groups, resources))
        plurals = {str(resource).partition("/")[0] for resource in resources}
        for kind in sorted(self._kinds):
            plural = f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"
            if not {plural, "*"}.isdisjoint(plurals) and not {*GROUPS[kind], "*"}.isdisjoint(map(str, groups)):
                yield kind

    def _fix_dependencies(self, data: dict[str, Any]) -> None:
        annotations = annotations_of(data)
        annotation = annotations.get(_DEPENDS_ON)
        if not isinstance(annotation, str):
            return
        references = annotation.split(",")
        fixed = [self._dependency(reference) for reference in references]
        if fixed != references:
            annotations[_DEPENDS_ON] = ",".join(fixed)

    def _dependency(self, reference: str) -> str:
        parts = reference.strip().split("/")
        if len(parts) == _NAMESPACED_REFERENCE and parts[1] == "namespaces":
            identity = Identity(parts[0], parts[3], parts[2], parts[4])
        elif len(parts) == _CLUSTER_REFERENCE:
            identity = Identity(parts[0], parts[1], "", parts[2])
        else:
            return reference
        name = self._by_identity.get(_normal(identity))
        return reference if name is None else reference.replace("/".join(parts), "/".join([*parts[:-1], name]))


def _fields(spec: FieldSpec, data: dict[str, Any]) -> list[FoundField]:
    """Return the fields, none where the object is not shaped as its kind is."""
    try:
        return spec.fields_in(data)
    except FieldSpecError:
        return []


def _namespace(namespace: str) -> str:
    return namespace or "default"


def _normal(identity: Identity) -> Identity:
    return Identity(identity.group, identity.kind, _namespace(identity.namespace), identity.name)

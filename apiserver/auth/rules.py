"""Policy rules: what one allows, whether some cover another, and how they are said.

Pure values; where they come from is ``rbac.py``. Source: ``kube-api.md`` 3.6; the semantics and the text of descriptions
are those of ``rbac.authorization.k8s.io/v1``.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.machinery.request import RequestInfo

ALL = "*"
MAX_RIGHTS = 1000
"""Rights, and rules, that are compared one by one for one role; that takes 20 ms, and roles that people write have fewer."""
Json = dict[str, Any]


class TooManyRights(Exception):
    """A role gives more single rights than can be compared."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a role. Empty ``names`` means every name."""

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    urls: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rule: Json) -> "Rule":
        """Read a PolicyRule."""
        return cls(
            verbs=frozenset(rule.get("verbs") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            resources=frozenset(rule.get("resources") or ()),
            names=frozenset(rule.get("resourceNames") or ()),
            urls=frozenset(rule.get("nonResourceURLs") or ()),
        )

    def allows(self, info: RequestInfo) -> bool:
        """Tell whether the rule allows a request."""
        if info.verb not in self.verbs and ALL not in self.verbs:
            return False
        if not info.resource:
            return covers_url(self.urls, info.path)
        if info.group not in self.groups and ALL not in self.groups:
            return False
        if not covers_resource(self.resources, info.resource, info.subresource):
            return False
        return not self.names or info.name in self.names

    def covers(self, other: "Rule") -> bool:
        """Tell whether this rule alone gives all that ``other`` gives; False may also mean that it is not obvious."""
        if not (ALL in self.verbs or other.verbs <= self.verbs):
            return False
        if other.urls and not all(covers_url(self.urls, url) for url in other.urls):
            return False
        if not other.resources:
            return True
        if self.names and not (other.names and other.names <= self.names):
            return False
        return (ALL in self.groups or other.groups <= self.groups) and (
            ALL in self.resources or other.resources <= self.resources
        )


@dataclass(frozen=True, slots=True)
class Right:
    """The smallest thing a rule can give: one verb on one resource (of one name), or on one URL."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource, as in ``packagerevisions/approval``."""
    name: str = ""
    url: str = ""

    def is_covered_by(self, rule: Rule) -> bool:
        """Tell whether a rule gives this right."""
        if self.verb not in rule.verbs and ALL not in rule.verbs:
            return False
        if self.url:
            return covers_url(rule.urls, self.url)
        if self.group not in rule.groups and ALL not in rule.groups:
            return False
        resource, _, subresource = self.resource.partition("/")
        if not covers_resource(rule.resources, resource, subresource):
            return False
        return not rule.names or (bool(self.name) and self.name in rule.names)


def covers_resource(resources: frozenset[str], resource: str, subresource: str) -> bool:
    """Tell whether a rule's resources contain one; ``*/scale`` means that subresource of all."""
    if ALL in resources:
        return True
    if not subresource:
        return resource in resources
    return f"{resource}/{subresource}" in resources or f"*/{subresource}" in resources


def covers_url(urls: frozenset[str], path: str) -> bool:
    """Tell whether a rule's URLs contain a path; a trailing ``*`` stands for everything that begins so."""
    if not urls:
        return False
    if path in urls or ALL in urls:
        return True
    return any(url.endswith(ALL) and path.startswith(url.rstrip(ALL)) for url in urls)


def missing_rights(held: Sequence[Rule], wanted: Sequence[Json]) -> list[Right]:
    """Return the rights that ``wanted`` gives and no rule of ``held`` does.

    Raises:
        TooManyRights: there are more than ``MAX_RIGHTS`` to compare.
    """
    if len(wanted) > MAX_RIGHTS:
        raise TooManyRights
    by_group = _by_group(held)
    doubtful = [rule for rule in wanted if not _obviously_held(by_group, Rule.of(rule))]
    if sum(map(_count, doubtful)) > MAX_RIGHTS:
        raise TooManyRights
    rights = itertools.chain.from_iterable(map(_rights, doubtful))
    return [right for right in rights if not any(map(right.is_covered_by, _relevant(by_group, right.group, right.url)))]


def describe(rights: Sequence[Right]) -> list[str]:
    """Say rights as rules, sorted; those that differ in nothing but the verb share one."""
    verbs: dict[Right, list[str]] = {}
    for right in rights:
        alike = Right(right.verb if right.name or right.url else "", right.group, right.resource, right.name, right.url)
        verbs.setdefault(alike, []).append(right.verb)
    return sorted({_text(right, list(dict.fromkeys(given))) for right, given in verbs.items()})


def quoted(texts: Iterable[str]) -> str:
    """Write a list of texts as Go's ``%q`` does: ``["a" "b"]``."""
    return f"[{' '.join(_go_quoted(text) for text in texts)}]"


_ByGroup = Mapping[str, Sequence[Rule]]
"""API group → the rules that speak of it, those of all groups included; "*" has only the latter, ``_URLS`` those of URLs."""
_URLS = "/"


def _by_group(rules: Sequence[Rule]) -> _ByGroup:
    groups = {ALL, _URLS, *itertools.chain.from_iterable(rule.groups for rule in rules)}
    found: dict[str, list[Rule]] = {group: [] for group in groups}
    for rule in rules:
        for group in groups if ALL in rule.groups else rule.groups:
            found[group].append(rule)
        if rule.urls:
            found[_URLS].append(rule)
    return found


def _relevant(by_group: _ByGroup, group: str, url: str) -> Sequence[Rule]:
    return by_group[_URLS] if url else by_group.get(group, by_group[ALL])


def _obviously_held(by_group: _ByGroup, rule: Rule) -> bool:
    """Tell whether one rule alone gives all that another gives."""
    if rule.urls and rule.resources:
        return False
    groups = list(rule.groups) or [ALL]
    candidates = _relevant(by_group, groups[0], _URLS if rule.urls else "")
    return any(one.covers(rule) for one in candidates)


def _count(rule: Json) -> int:
    verbs, names = len(rule.get("verbs") or ()), len(rule.get("resourceNames") or ()) or 1
    resources = len(rule.get("apiGroups") or ()) * len(rule.get("resources") or ()) * names
    return verbs * (resources + len(rule.get("nonResourceURLs") or ()))


def _rights(rule: Json) -> Iterator[Right]:
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ("",)
    for group, resource, verb, name in itertools.product(
        rule.get("apiGroups") or (), rule.get("resources") or (), verbs, names
    ):
        yield Right(verb, group, resource, name)
    for url, verb in itertools.product(rule.get("nonResourceURLs") or (), verbs):
        yield Right(verb, url=url)


def _text(right: Right, verbs: Sequence[str]) -> str:
    if right.url:
        return f"{{NonResourceURLs:{quoted([right.url])}, Verbs:{quoted(verbs)}}}"
    names = f"ResourceNames:{quoted([right.name])}, " if right.name else ""
    return f"{{APIGroups:{quoted([right.group])}, Resources:{quoted([right.resource])}, {names}Verbs:{quoted(verbs)}}}"


def _go_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'

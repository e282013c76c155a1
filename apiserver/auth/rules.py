"""Policy rules: what one allows, whether some cover another, and how they are said.

Pure values; where they come from is ``rbac.py``. Source: ``kube-api.md`` 3.6; the semantics and the text of descriptions
are those of ``rbac.authorization.k8s.io/v1``.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.machinery.request import RequestInfo

ALL = "*"
MAX_RIGHTS = 5000
"""Rights that are compared one by one for one role: about 0.1 s; kube-apiserver's largest role has 900."""
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
    doubtful = [rule for rule in wanted if not any(one.covers(Rule.of(rule)) for one in held)]
    if sum(map(_count, doubtful)) > MAX_RIGHTS:
        raise TooManyRights
    rights = itertools.chain.from_iterable(map(_rights, doubtful))
    return [right for right in rights if not any(right.is_covered_by(rule) for rule in held)]


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

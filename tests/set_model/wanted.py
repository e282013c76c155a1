"""What a set asks for, found out from the server's state without the product's rules: for the few kinds of sets that people here write.

Source: ``variants.md`` 3.2 to 3.6, 6.2, 6.11; ``decisions.md`` 16.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from variant_model.porch import CONFIG_MAPS, REPOSITORIES, VARIANTS, PorchModel

Json = dict[str, Any]
Pair = tuple[str, str]
Scene = dict[str, Any]

SETS: Final = "packagevariantsets"
NAMESPACE: Final = "default"
UPSTREAM: Final = ("blueprints", "base")
SET_LABEL: Final = "config.porch.kpt.dev/packagevariantset"
PAUSED: Final = "config.porch.kpt.dev/paused"
ALLOW_DELETIONS: Final = "config.porch.kpt.dev/allow-deletions"

EXPRESSIONS: Final[dict[str, Callable[[Scene], str]]] = {
    "target.labels['site']": lambda scene: scene["target"]["labels"]["site"],
    "target.name + '-app'": lambda scene: scene["target"]["name"] + "-app",
    "repository.labels['region']": lambda scene: scene["repository"]["labels"]["region"],
}
"""All that templates here compute, and what they mean. A label that is missing is a KeyError."""


@dataclass
class Wanted:
    """What a set comes to now."""

    specs: dict[Pair, Json] = field(default_factory=dict)
    """Of the variants that there should be."""
    failed: set[Pair] = field(default_factory=set)
    """Pairs whose variant cannot be told."""
    unknown: bool = False
    """Whether a target failed before its pair was known."""
    disputed: bool = False
    """Whether two targets want different things of one pair."""
    empty: bool = False
    """Whether a target selects nothing."""
    upstream: bool = True
    """Whether the upstream is there."""

    @property
    def fails(self) -> bool:
        """Whether any target fails."""
        return bool(self.failed) or self.unknown


def set_of(porch: PorchModel) -> Json | None:
    """Return the set, or None."""
    return next(iter(porch.all(SETS)), None)


def variants_of(porch: PorchModel, uid: str) -> list[Json]:
    """Return the variants of a set by name, those that are being deleted included."""
    return [one for one in porch.all(VARIANTS) if (one["metadata"].get("labels") or {}).get(SET_LABEL) == uid]


def pair_of(variant: Json) -> Pair:
    """Return repository and package of a variant's target."""
    downstream = variant["spec"]["downstream"]
    return downstream["repo"], downstream["package"]


def newest_upstream(porch: PorchModel) -> int:
    """Return the number of the newest revision of the blueprint; 0 where there is none."""
    return max((int(one["spec"]["revision"]) for one in porch.revisions_of(*UPSTREAM)), default=0)


def wanted(porch: PorchModel, one: Json) -> Wanted:
    """Return what a set asks for with the server's state as it is."""
    found, spec = Wanted(), one["spec"]
    source = copy.deepcopy(spec["upstream"])
    number = newest_upstream(porch) if source["revision"] == "latest" else source["revision"]
    found.upstream = 0 < number <= newest_upstream(porch)
    if spec.get("rollout"):
        source["revision"] = number  # so that not all variants follow it at once (6.2)
    repositories = {body["metadata"]["name"]: body for body in porch.all(REPOSITORIES)}
    for target in spec["targets"]:
        contexts = list(_contexts(porch, target, repositories))
        found.empty |= not contexts
        for repo, package, selected in contexts:
            _add(found, target.get("template"), source, (repo, package), selected, repositories)
    for pair in found.failed:
        found.specs.pop(pair, None)
    return found


def _contexts(porch: PorchModel, target: Json, repositories: dict[str, Json]) -> Iterator[tuple[str, str, Json | None]]:
    default = [UPSTREAM[1]]
    for one in target.get("repositories") or ():
        yield from ((one["name"], package, None) for package in one.get("packageNames") or default)
    for key, bodies in (("repositorySelector", repositories.values()), ("objectSelector", porch.all(CONFIG_MAPS))):
        if key in target:
            labels = target[key]["matchLabels"].items()
            for body in bodies:
                if labels <= (body["metadata"].get("labels") or {}).items():
                    yield body["metadata"]["name"], default[0], body


def _add(
    found: Wanted, template: Json | None, source: Json, pair: Pair, selected: Json | None, repositories: dict[str, Json]
) -> None:
    try:
        located, spec = _rendered(template or {}, source, pair, selected, repositories)
    except KeyError:
        found.unknown = True
        return
    if spec is None:
        found.failed.add(located)
    elif found.specs.setdefault(located, spec) != spec:
        found.disputed = True


def _rendered(
    template: Json, source: Json, pair: Pair, selected: Json | None, repositories: dict[str, Json]
) -> tuple[Pair, Json | None]:
    """Return the pair and, unless it fails, the spec of a variant; raises KeyError where the pair cannot be told."""
    scene: Scene = {"target": _view(selected) if selected else {}}
    downstream = template.get("downstream") or {}
    repo = EXPRESSIONS[downstream["repoExpr"]](scene) if "repoExpr" in downstream else pair[0]
    package = EXPRESSIONS[downstream["packageExpr"]](scene) if "packageExpr" in downstream else pair[1]
    if repo not in repositories:
        if "packageExpr" in downstream:
            raise KeyError(repo)  # the expression may read it
        return (repo, package), None
    scene["repository"] = _view(repositories[repo])
    spec: Json = {"upstream": source, "downstream": {"repo": repo, "package": package}}
    if "labels" in template:
        spec["labels"] = template["labels"]
    try:
        for one in (template.get("packageContext") or {}).get("dataExprs") or ():
            data = spec.setdefault("packageContext", {}).setdefault("data", {})
            data[one["key"]] = EXPRESSIONS[one["valueExpr"]](scene)
    except KeyError:
        return (repo, package), None
    return (repo, package), spec


def _view(body: Json) -> Json:
    return {"name": body["metadata"]["name"], "labels": body["metadata"].get("labels") or {}}


def published(porch: PorchModel, repo: str, package: str) -> int:
    """Return which revision of the blueprint the newest published revision of a package is made of; 0 where there is none."""
    found = [one for one in porch.revisions_of(repo, package) if one["spec"]["lifecycle"] == "Published"]
    newest = max(found, key=lambda one: int(one["spec"]["revision"]), default=None)
    return int(newest["status"]["upstreamLock"]["git"]["ref"].rpartition("/v")[2]) if newest else 0

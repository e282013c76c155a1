"""What users do while the controller of sets works: with the set, with what it selects, with its variants.

A step that does not fit the state does nothing, as a user's refused request does.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from variant_model.people import Step
from variant_model.porch import CONFIG_MAPS, REPOSITORIES, REVISIONS, VARIANTS, PorchModel, copied

from krm.meta.errors import StatusError
from set_model.wanted import ALLOW_DELETIONS, NAMESPACE, PAUSED, SET_LABEL, SETS, UPSTREAM, newest_upstream, set_of

Json = dict[str, Any]
NAME: Final = "fleet"
SITES: Final = ("r1", "r2", "r3", "r4")
ENVIRONMENTS: Final = ("prod", "test")
OFTEN: Final = ("relabel", "add_repository", "remove_repository", "object", "template", "targets", "publish_upstream")
"""Steps that make a story."""
SELDOM: Final = (
    "drop_region",
    "drop_object",
    "pin",
    "rollout",
    "guards",
    "error_policy",
    "suspend",
    "pause_variant",
    "edit_variant",
    "move_variant",
    "delete_variant",
    "annotate_variant",
    "take_name",
    "give_name",
    "break_variant",
    "allow_deletions",
    "approve_wave",
    "delete_set",
    "create_set",
)
"""Steps that change its course."""

_NAMED: Final[Json] = {"repositories": [{"name": "r1"}, {"name": "r2", "packageNames": ["x", "y"]}]}
_BY_LABEL: Final[Json] = {"repositorySelector": {"matchLabels": {"env": "prod"}}}
_OBJECTS: Final[Json] = {"objectSelector": {"apiVersion": "v1", "kind": "ConfigMap", "matchLabels": {"team": "yes"}}}
_OF_OBJECTS: Final[Json] = {"downstream": {"repoExpr": "target.labels['site']", "packageExpr": "target.name + '-app'"}}
_REGION: Final[Json] = {
    "packageContext": {"dataExprs": [{"key": "region", "valueExpr": "repository.labels['region']"}]}
}
TARGETS: Final = ((_BY_LABEL,), (_NAMED,), (_OBJECTS,), (_BY_LABEL, _OBJECTS), (_NAMED, _BY_LABEL), (_NAMED, _OBJECTS))
ROLLOUTS: Final[tuple[Json | None, ...]] = (
    None,
    {"strategy": "Rolling", "maxInFlight": 1},
    {"strategy": "Rolling", "maxInFlight": "50%", "settleOn": "Published"},
    {
        "strategy": "Waves",
        "maxInFlight": 1,
        "settleOn": "Published",
        "waves": [{"name": "first", "match": "has(repository.labels.env) && repository.labels.env == 'prod'"}],
    },
    {
        "strategy": "Waves",
        "maxInFlight": 2,
        "waves": [{"name": "named", "match": "repository.name == 'r1'", "gate": {"manual": True}}, {"name": "rest"}],
    },
    {"strategy": "AllAtOnce"},
)
GUARDS: Final[tuple[Json | None, ...]] = (None, {"maxDeletions": 1}, {"onEmptySelection": "Keep"}, {"maxDeletions": 0})


def upstream_revision(number: int) -> Json:
    """Return a published revision of the blueprint."""
    return _revision(*UPSTREAM, number, {"selfLock": {"git": lock(number)}})


def published_revision(repo: str, package: str, number: int, source: int) -> Json:
    """Return a published revision of a package that is made of a revision of the blueprint."""
    return _revision(repo, package, number, {"upstreamLock": {"git": lock(source)}})


def lock(number: int) -> Json:
    """Return where a revision of the blueprint is in Git."""
    repo, package = UPSTREAM
    return {
        "repo": f"https://git/{repo}.git", "directory": package, "ref": f"{package}/v{number}", "commit": f"c{number}"
    }  # fmt: skip


def _revision(repo: str, package: str, number: int, status: Json) -> Json:
    spec = {"repository": repo, "packageName": package, "workspaceName": f"v{number}", "revision": number}
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {
            "namespace": NAMESPACE,
            "name": f"{repo}.{package}.v{number}",
            "uid": f"{repo}-{package}-{number}",
        },
        "spec": {**spec, "lifecycle": "Published"},
        "status": status,
    }


@dataclass
class People:
    """Everybody but the controllers."""

    porch: PorchModel
    broken: set[str] = field(default_factory=set)
    """Variants that their controller cannot bring about."""
    touched: set[str] = field(default_factory=set)
    """UIDs of variants whose spec somebody has edited."""
    notes: dict[str, str] = field(default_factory=dict)
    """By UID: what somebody has written on a variant."""
    _numbers: int = 0

    def prepare(self) -> None:
        """Register repositories, publish the blueprint, create the set."""
        self.publish_upstream()
        for place, name in enumerate(SITES[:3]):
            self.add_repository(place, name)
        self.object(0)
        self.create_set(0)

    def does(self, step: Step) -> None:
        """Do one step; a refusal is the user's problem."""
        action = getattr(self, step.name)
        with suppress(StatusError):
            action() if step.name == "publish_upstream" else action(step.number)

    # --- what sets select -------------------------------------------------------------------------

    def publish_upstream(self) -> None:
        """Publish another revision of the blueprint."""
        self.porch.forge(REVISIONS, upstream_revision(newest_upstream(self.porch) + 1))

    def add_repository(self, number: int, name: str = "") -> None:
        """Register a repository."""
        name = name or SITES[number % len(SITES)]
        labels = {"env": ENVIRONMENTS[number % 2], "region": f"region-{number % 3}"}
        body: Json = {"metadata": {"name": name, "labels": labels}, "spec": {"type": "git", "git": {"branch": "main"}}}
        self.porch.create(REPOSITORIES, NAMESPACE, body)

    def remove_repository(self, number: int) -> None:
        """Unregister a repository."""
        self.porch.delete(REPOSITORIES, NAMESPACE, SITES[number % len(SITES)])

    def relabel(self, number: int) -> None:
        """Give a repository another environment, or a region."""
        labels = {"env": ENVIRONMENTS[number // 2 % 2]} if number % 3 else {"region": f"region-{number}"}
        self._patch(REPOSITORIES, SITES[number % len(SITES)], {"metadata": {"labels": labels}})

    def drop_region(self, number: int) -> None:
        """Take a label away that expressions read."""
        self._patch(REPOSITORIES, SITES[number % len(SITES)], {"metadata": {"labels": {"region": None}}})

    def object(self, number: int) -> None:
        """Create an object that is selected, or send it to another site."""
        name, labels = f"team-{number % 3}", {"team": "yes", "site": SITES[number % len(SITES)]}
        if self.porch.find(CONFIG_MAPS, name) is None:
            self.porch.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name, "labels": labels}, "data": {}})
        else:
            self._patch(CONFIG_MAPS, name, {"metadata": {"labels": labels}})

    def drop_object(self, number: int) -> None:
        """Delete an object, or only the label by which it says where it goes."""
        name = f"team-{number % 3}"
        if number % 2:
            self.porch.delete(CONFIG_MAPS, NAMESPACE, name)
        else:
            self._patch(CONFIG_MAPS, name, {"metadata": {"labels": {"site": None}}})

    # --- the set ----------------------------------------------------------------------------------

    def create_set(self, number: int) -> None:
        """Create the set."""
        upstream = {"repo": UPSTREAM[0], "package": UPSTREAM[1], "revision": "latest"}
        spec = {"upstream": upstream, "targets": self._targets(number, 0)}
        self.porch.create(SETS, NAMESPACE, {"metadata": {"name": NAME}, "spec": spec})

    def delete_set(self, _number: int) -> None:
        """Delete the set."""
        self.porch.delete(SETS, NAMESPACE, NAME)

    def targets(self, number: int) -> None:
        """Select something else."""
        self._spec({"targets": self._targets(number, self._numbers)})

    def template(self, number: int) -> None:
        """Change what is rendered."""
        self._numbers += 1
        one = set_of(self.porch)
        if one is not None:
            targets = copied({"targets": one["spec"]["targets"]})["targets"]
            self._spec({"targets": [self._with_template(target, number, self._numbers) for target in targets]})

    def pin(self, number: int) -> None:
        """Follow the newest revision of the blueprint, or a fixed one that there may not be."""
        self._spec({"upstream": {"revision": ("latest", 1, 2, 3)[number % 4]}})

    def rollout(self, number: int) -> None:
        """Change how variants change."""
        self._spec({"rollout": None})
        self._spec({"rollout": ROLLOUTS[number % len(ROLLOUTS)]})

    def guards(self, number: int) -> None:
        """Change what keeps variants from being deleted."""
        self._spec({"guards": None})
        self._spec({"guards": GUARDS[number % len(GUARDS)]})

    def error_policy(self, number: int) -> None:
        """Let targets that fail hold up the others, or not."""
        self._spec({"errorPolicy": (None, "BestEffort")[number % 2]})

    def suspend(self, number: int) -> None:
        """Pause the set, or let it go on."""
        self._spec({"suspend": number % 2 == 0 or None})

    def allow_deletions(self, _number: int) -> None:
        """Let more be deleted than the guard does, this once."""
        if (one := set_of(self.porch)) is not None:
            self._patch(
                SETS, NAME, {"metadata": {"annotations": {ALLOW_DELETIONS: str(one["metadata"]["generation"])}}}
            )

    def approve_wave(self, _number: int) -> None:
        """Open the gate of the wave that waits."""
        rollout = ((set_of(self.porch) or {}).get("status") or {}).get("rollout") or {}
        approval = f"{rollout.get('wave')}@{rollout.get('changeId')}"
        self._patch(SETS, NAME, {"metadata": {"annotations": {"config.porch.kpt.dev/approve-wave": approval}}})

    # --- its variants -----------------------------------------------------------------------------

    def pause_variant(self, number: int) -> None:
        """Pause one variant, or let it go on."""
        if one := self._variant(number):
            on = (one["metadata"].get("annotations") or {}).get(PAUSED) != "true"
            self._patch(
                VARIANTS, one["metadata"]["name"], {"metadata": {"annotations": {PAUSED: "true" if on else None}}}
            )

    def annotate_variant(self, number: int) -> None:
        """Write something on a variant."""
        if one := self._variant(number):
            self._numbers += 1
            note = self.notes[one["metadata"]["uid"]] = f"note-{self._numbers}"
            self._patch(VARIANTS, one["metadata"]["name"], {"metadata": {"annotations": {"note": note}}})

    def edit_variant(self, number: int) -> None:
        """Change the spec of a variant against its set."""
        self._edit(number, {"labels": {"mine": f"edit-{number}"}})

    def move_variant(self, number: int) -> None:
        """Send a variant elsewhere against its set."""
        self._edit(
            number, {"downstream": {"repo": SITES[number % len(SITES)], "package": ("base", "other")[number % 2]}}
        )

    def delete_variant(self, number: int) -> None:
        """Delete a variant of the set."""
        if one := self._variant(number):
            self.porch.delete(VARIANTS, NAMESPACE, one["metadata"]["name"])

    def break_variant(self, number: int) -> None:
        """Make a variant fail, or mend it."""
        self.broken ^= {SITES[number % len(SITES)]}

    def take_name(self, number: int) -> None:
        """Create a variant of one's own that has the name of one that the set may want."""
        upstream = {"repo": UPSTREAM[0], "package": UPSTREAM[1], "revision": 1}
        spec = {"upstream": upstream, "downstream": {"repo": "elsewhere", "package": "mine"}}
        name = f"{NAME}-{SITES[number % len(SITES)]}-base"
        self.porch.create(VARIANTS, NAMESPACE, {"metadata": {"name": name}, "spec": spec})

    def give_name(self, number: int) -> None:
        """Delete it."""
        name = f"{NAME}-{SITES[number % len(SITES)]}-base"
        one = self.porch.find(VARIANTS, name)
        if one is not None and SET_LABEL not in (one["metadata"].get("labels") or {}):
            self.porch.delete(VARIANTS, NAMESPACE, name)

    # --- in the end -------------------------------------------------------------------------------

    def repair(self) -> None:
        """Take away everything that holds the set up."""
        self.broken.clear()
        for place, name in enumerate(SITES):
            if self.porch.find(REPOSITORIES, name) is None:
                self.add_repository(place, name)
            self._patch(REPOSITORIES, name, {"metadata": {"labels": {"region": f"region-{place}"}}})
        for body in self.porch.all(CONFIG_MAPS):
            self._patch(CONFIG_MAPS, body["metadata"]["name"], {"metadata": {"labels": {"site": "r1"}}})
        for body in self.porch.all(VARIANTS):
            name = body["metadata"]["name"]
            if SET_LABEL not in (body["metadata"].get("labels") or {}):
                self.porch.delete(VARIANTS, NAMESPACE, name)
            else:
                self._patch(VARIANTS, name, {"metadata": {"annotations": {PAUSED: None}}})
        if set_of(self.porch) is None:
            self.create_set(0)
        self._spec({"suspend": None, "guards": None, "rollout": None, "upstream": {"revision": 1}})
        self._spec({"targets": [_BY_LABEL | {"template": _REGION}, _OBJECTS | {"template": _OF_OBJECTS}]})

    # --- requests ---------------------------------------------------------------------------------

    def _targets(self, number: int, template: int) -> list[Json]:
        chosen = TARGETS[number % len(TARGETS)]
        return [self._with_template(dict(target), template, template) for target in chosen]

    def _with_template(self, target: Json, number: int, generation: int) -> Json:
        """Return a target with a template; a plain one, a label, or a label of the repository that it goes to."""
        kinds: tuple[Json, ...] = ({}, {"labels": {"generation": f"g{generation}"}}, _REGION)
        template = dict(kinds[number % len(kinds)]) | (_OF_OBJECTS if "objectSelector" in target else {})
        kept = {key: value for key, value in target.items() if key != "template"}
        return {**kept, "template": template} if template else kept

    def _variant(self, number: int) -> Json | None:
        found = [one for one in self.porch.all(VARIANTS) if SET_LABEL in (one["metadata"].get("labels") or {})]
        return found[number % len(found)] if found else None

    def _edit(self, number: int, spec: Json) -> None:
        if one := self._variant(number):
            self.touched.add(one["metadata"]["uid"])
            self._patch(VARIANTS, one["metadata"]["name"], {"spec": spec})

    def _spec(self, spec: Json) -> None:
        if set_of(self.porch) is not None:
            self._patch(SETS, NAME, {"spec": spec})

    def _patch(self, plural: str, name: str, patch: Json) -> None:
        self.porch.patch(plural, NAMESPACE, name, patch)

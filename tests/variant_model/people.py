"""What users do while the controller works: they write variants, publish upstream, edit drafts, move them through their lives.

A step that does not fit the state does nothing, as a user's refused request does.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from krm.meta.errors import StatusError
from krm.variants.vocabulary import API_VERSION, PAUSED, TAG_LABEL_PREFIX
from variant_model.packages import decoded
from variant_model.porch import CONFIG_MAPS, REPOSITORIES, RESOURCES, REVISIONS, VARIANTS, PorchModel, copied

Json = dict[str, Any]
NAMESPACE: Final = "default"
UPSTREAM: Final = ("blueprints", "base")
DOWNSTREAM: Final = "deployments"
TAG: Final = "stable"
POINT: Final = "endpoints"
MINUTES: Final = 11
"""Between two things that people do to what is published: no guard against churn is meant to stop people."""
OFTEN: Final = ("mutate", "edit_draft", "publish", "publish", "publish_upstream", "config_map")
"""Steps that make a story."""
SELDOM: Final = (
    "move_tag",
    "drop_object",
    "select",
    "retarget",
    "inject",
    "adopt",
    "keep",
    "label",
    "pause",
    "create_variant",
    "delete_variant",
    "restore_variant",
    "propose",
    "approve",
    "reject",
    "delete_draft",
    "propose_deletion",
    "keep_published",
    "own_draft",
)
"""Steps that change its course."""


@dataclass(frozen=True)
class Step:
    """One thing that somebody does."""

    name: str
    variant: str = "one"
    number: int = 0


@dataclass
class Edit:
    """What a user added to a draft, which has to stay: a file, and a field in a file that upstream changes, too."""

    number: int

    @property
    def path(self) -> str:
        return f"note-{self.number}.txt"

    @property
    def key(self) -> str:
        return f"mine-{self.number}"

    def is_in(self, files: dict[str, str]) -> bool:
        settings = decoded(files.get("settings.yaml") or "{}")
        return self.path in files and (settings.get("data") or {}).get(self.key) == "kept"


def variant_body(name: str, upstream: Json, package: str) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": "PackageVariant",
        "metadata": {"name": name},
        "spec": {"upstream": upstream, "downstream": {"repo": DOWNSTREAM, "package": package}},
    }


def mutations(variant: str, generation: int) -> Json:
    """Return the parts of a spec from which one can see in a package which generation was applied to it."""
    wanted = {f"wanted-{variant}": f"g{generation}"}
    function = {"image": "set-labels:v0.2.0", "name": "stamp", "configMap": wanted}
    return {"packageContext": {"data": wanted}, "pipeline": {"mutators": [function]}}


@dataclass
class People:
    """Everybody but the controller."""

    porch: PorchModel
    points: bool = True
    """Whether the upstream package has an injection point."""
    edits: dict[str, list[Edit]] = field(default_factory=dict)
    """By revision: what users added to it, or to what it was made of."""
    wanted: dict[str, int] = field(default_factory=dict)
    """By variant: the newest generation of its mutations."""
    restored: dict[str, list[str]] = field(default_factory=dict)
    """By variant: the uids that it had before it was restored."""
    _numbers: int = 0

    def prepare(self) -> None:
        """Register repositories, publish the first upstream revision, create the cluster's objects."""
        for name, deployment in ((UPSTREAM[0], False), (DOWNSTREAM, True)):
            spec: Json = {"type": "git", "git": {"repo": f"https://git.example/{name}", "branch": "main"}}
            self.porch.create(
                REPOSITORIES, NAMESPACE, {"metadata": {"name": name}, "spec": {**spec, "deployment": deployment}}
            )
        self.publish_upstream()
        self.config_map("east", 1)

    def does(self, step: Step) -> None:
        """Do one step; a refusal is the user's problem."""
        action = getattr(self, step.name)
        with suppress(StatusError, StopIteration):
            match step.name:
                case "publish_upstream":
                    action()
                case "move_tag" | "drop_object":
                    action(step.number)
                case "config_map":
                    action(("east", "west")[step.number % 2], step.number)
                case _:
                    action(step.variant, step.number)

    # --- upstream and the cluster ----------------------------------------------------------------------

    def publish_upstream(self) -> None:
        """Publish another revision of the upstream package."""
        self._pass_time()
        revision = 1 + sum(1 for each in self.porch.revisions_of(*UPSTREAM) if each["spec"].get("revision", 0) > 0)
        repository, package = UPSTREAM
        workspace = f"w{revision}"
        spec: Json = {
            "repository": repository,
            "packageName": package,
            "workspaceName": workspace,
            "lifecycle": "Draft",
        }
        files = upstream_files(revision)
        if not self.points:
            del files["point.yaml"]
        known = list(self.porch.revisions_of(*UPSTREAM))
        if known:
            newest = max(known, key=lambda each: int(each["spec"].get("revision", 0)))
            spec["tasks"] = [{"type": "edit", "edit": {"sourceRef": {"name": newest["metadata"]["name"]}}}]
        else:
            spec["tasks"] = [{"type": "init", "init": {}}]
        made = self.porch.create(REVISIONS, NAMESPACE, {"metadata": {}, "spec": spec})
        shown = self.porch.get(RESOURCES, NAMESPACE, made["metadata"]["name"])
        shown["spec"]["resources"] = files
        self.porch.update(RESOURCES, shown)
        self._move(made["metadata"]["name"], "Proposed")
        self._move(made["metadata"]["name"], "Published")

    def move_tag(self, number: int) -> None:
        """Move the floating tag to one of the published revisions."""
        self._pass_time()
        published = [each for each in self.porch.revisions_of(*UPSTREAM) if each["spec"].get("revision", 0) > 0]
        chosen = published[number % len(published)]["metadata"]["name"]
        label = {TAG_LABEL_PREFIX + TAG: "here"}
        self.porch.patch(REVISIONS, NAMESPACE, chosen, {"metadata": {"labels": label}})
        for each in published:
            name = each["metadata"]["name"]
            if name != chosen and TAG_LABEL_PREFIX + TAG in (each["metadata"].get("labels") or {}):
                self.porch.patch(REVISIONS, NAMESPACE, name, {"metadata": {"labels": dict.fromkeys(label)}})

    def config_map(self, name: str, number: int) -> None:
        """Create or change an object that is injected."""
        self._pass_time()
        data = {"url": f"{name}-{number}.example"}
        if self.porch.find(CONFIG_MAPS, name) is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            self.porch.create(CONFIG_MAPS, NAMESPACE, body)
        else:
            self.porch.patch(CONFIG_MAPS, NAMESPACE, name, {"data": data})

    def drop_object(self, number: int) -> None:
        """Delete an object that is injected."""
        self.porch.delete(CONFIG_MAPS, NAMESPACE, ("east", "west")[number % 2])

    # --- variants --------------------------------------------------------------------------------------

    def create_variant(self, name: str, number: int) -> None:
        """Create a variant; the second one is made of what the first one publishes."""
        if name == "one":
            body = variant_body(name, {"repo": UPSTREAM[0], "package": UPSTREAM[1]}, "one")
        else:
            body = variant_body(name, {"repo": DOWNSTREAM, "package": "one"}, "two")
        body["spec"] |= mutations(name, self._generation(name))
        body["spec"]["injectors"] = [{"name": "east"}]
        body["spec"]["deletionPolicy"] = ("delete", "orphan")[number % 2]
        self.porch.create(VARIANTS, NAMESPACE, body)

    def mutate(self, name: str, number: int) -> None:
        """Ask for other mutations."""
        self._pass_time()
        self._edit(name, mutations(name, self._generation(name)))

    def select(self, name: str, number: int) -> None:
        """Ask for another upstream revision."""
        self._pass_time()
        body = self._variant(name)
        upstream = {key: body["spec"]["upstream"][key] for key in ("repo", "package")}
        choices: list[Json] = [{}, {"revision": "latest"}, {"revision": "v1"}, {"revision": 2}]
        choices += [{"tag": TAG}, {"workspaceName": "w1"}] if name == "one" else [{"revision": "3"}]
        body["spec"]["upstream"] = upstream | choices[number % len(choices)]
        self.porch.update(VARIANTS, body)

    def retarget(self, name: str, number: int) -> None:
        """Ask for another downstream package, or for the first one again."""
        self._pass_time()
        package = (name, f"{name}-b")[number % 2]
        self._edit(name, {"downstream": {"repo": DOWNSTREAM, "package": package}})

    def inject(self, name: str, number: int) -> None:
        """Ask for another object to be injected, or for one that may not exist."""
        self._pass_time()
        self._edit(name, {"injectors": [{"name": ("east", "west", "north")[number % 3], "kind": "ConfigMap"}]})

    def adopt(self, name: str, number: int) -> None:
        """Change the adoption policy."""
        self._edit(name, {"adoptionPolicy": ("adoptNone", "adoptExisting")[number % 2]})

    def keep(self, name: str, number: int) -> None:
        """Change the deletion policy."""
        self._edit(name, {"deletionPolicy": ("delete", "orphan")[number % 2]})

    def label(self, name: str, number: int) -> None:
        """Change the labels of drafts to come."""
        self._edit(name, {"labels": {"team": f"t{number}"}})

    def pause(self, name: str, number: int) -> None:
        """Pause, or go on: by the spec, or by the annotation, which is no new generation."""
        if number < 2:
            self._edit(name, {"suspend": bool(number)})
            return
        paused = {PAUSED: "true" if number % 2 else None}
        self.porch.patch(VARIANTS, NAMESPACE, name, {"metadata": {"annotations": paused}})

    def delete_variant(self, name: str, number: int) -> None:
        """Delete a variant."""
        self._pass_time()
        self.porch.delete(VARIANTS, NAMESPACE, name)

    def restore_variant(self, name: str, number: int) -> None:
        """Restore a variant after a disaster: the same, but for its uid."""
        self._pass_time()
        body = self._variant(name)
        if body["metadata"].get("deletionTimestamp"):
            return
        self.restored.setdefault(name, []).append(body["metadata"]["uid"])
        body["metadata"]["uid"] = self.porch.new_uid()
        self.porch.vanish(VARIANTS, name)
        self.porch.forge(VARIANTS, body)

    # --- downstream drafts -------------------------------------------------------------------------------

    def edit_draft(self, name: str, number: int) -> None:
        """Add something to a draft."""
        draft = self._revision_in(name, ("Draft",), number)
        edit = Edit(self._next())
        shown = self.porch.get(RESOURCES, NAMESPACE, draft["metadata"]["name"])
        files = shown["spec"]["resources"]
        settings = yaml.safe_load(files["settings.yaml"])
        settings["data"][edit.key] = "kept"
        files |= {edit.path: "a note\n", "settings.yaml": yaml.safe_dump(settings, sort_keys=False)}
        self.porch.update(RESOURCES, shown)
        self.edits.setdefault(draft["metadata"]["name"], []).append(edit)

    def propose(self, name: str, number: int) -> None:
        self._move(self._revision_in(name, ("Draft",), number)["metadata"]["name"], "Proposed")

    def reject(self, name: str, number: int) -> None:
        self._move(self._revision_in(name, ("Proposed",), number)["metadata"]["name"], "Draft")

    def approve(self, name: str, number: int) -> None:
        self._pass_time()
        self._move(self._revision_in(name, ("Proposed",), number)["metadata"]["name"], "Published")

    def publish(self, name: str, number: int) -> None:
        """Propose a draft and approve it at once."""
        draft = self._revision_in(name, ("Draft",), number)["metadata"]["name"]
        self._pass_time()
        self._move(draft, "Proposed")
        self._move(draft, "Published")

    def delete_draft(self, name: str, number: int) -> None:
        self._pass_time()
        draft = self._revision_in(name, ("Draft", "Proposed"), number)["metadata"]["name"]
        self.porch.delete(REVISIONS, NAMESPACE, draft)
        self.edits.pop(draft, None)

    def propose_deletion(self, name: str, number: int) -> None:
        self._move(self._revision_in(name, ("Published",), number)["metadata"]["name"], "DeletionProposed")

    def keep_published(self, name: str, number: int) -> None:
        self._move(self._revision_in(name, ("DeletionProposed",), number)["metadata"]["name"], "Published")

    def own_draft(self, name: str, number: int) -> None:
        """Make a draft of the package by hand, of its newest published revision."""
        published = [each for each in self._package(name) if each["spec"].get("revision", 0) > 0]
        if not published:
            return
        newest = max(published, key=lambda each: int(each["spec"]["revision"]))
        spec = {key: newest["spec"][key] for key in ("repository", "packageName")}
        spec |= {"workspaceName": f"hand-{self._next()}", "lifecycle": "Draft"}
        spec["tasks"] = [{"type": "edit", "edit": {"sourceRef": {"name": newest["metadata"]["name"]}}}]
        self.porch.create(REVISIONS, NAMESPACE, {"metadata": {}, "spec": spec})

    # --- what they need for that ---------------------------------------------------------------------------

    def _package(self, name: str) -> list[Json]:
        body = self._variant(name)
        package = body["spec"]["downstream"]["package"]
        return [each for each in self.porch.revisions_of(DOWNSTREAM, package) if each["spec"].get("revision") != -1]

    def _revision_in(self, name: str, lifecycles: tuple[str, ...], number: int) -> Json:
        there = [each for each in self._package(name) if each["spec"]["lifecycle"] in lifecycles]
        if not there:
            raise StopIteration
        return there[number % len(there)]

    def _variant(self, name: str) -> Json:
        found = self.porch.find(VARIANTS, name)
        if found is None:
            raise StopIteration
        return copied(found)

    def _edit(self, name: str, spec: Json) -> None:
        body = self._variant(name)
        body["spec"] |= spec
        self.porch.update(VARIANTS, body)

    def _move(self, name: str, lifecycle: str) -> None:
        now = self.porch.get(REVISIONS, NAMESPACE, name)["spec"]["lifecycle"]
        door = "approval" if now == "Proposed" else ""
        self.porch.patch(REVISIONS, NAMESPACE, name, {"spec": {"lifecycle": lifecycle}}, subresource=door)

    def _generation(self, name: str) -> int:
        self.wanted[name] = self.wanted.get(name, 0) + 1
        return self.wanted[name]

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _pass_time(self) -> None:
        self.porch.advance(60 * MINUTES)


def upstream_files(version: int) -> dict[str, str]:
    """Return the upstream package: a Kptfile, a file that every revision changes, an injection point."""
    return {
        "Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: base\n",
        "settings.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
            f"data:\n  fixed: value\n  version: 'v{version}'\n"
        ),
        "point.yaml": (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {POINT}\n"
            "  annotations:\n    kpt.dev/config-injection: required\ndata:\n  url: example\n"
        ),
    }

"""One PackageVariant on the model of the server: what is written, what is told, what is there in the end."""

from typing import Any, Final

from variant_model.client import Fault
from variant_model.people import NAMESPACE, Step, upstream_files, variant_body
from variant_model.porch import RESOURCES, REVISIONS, VARIANTS, copied
from variant_model.world import World

from krm.meta.conditions import find_condition

Json = dict[str, Any]
PV: Final = "my-pv"
BLUEPRINT: Final = {"repo": "blueprints", "package": "base"}
DRAFT: Final = "deployments.app.packagevariant-1"
SECOND: Final = "deployments.app.packagevariant-2"
GATE: Final = "PVOperationsComplete"


class Scene:
    """The variant my-pv of blueprints/base in deployments/app, and everybody else."""

    def __init__(self) -> None:
        self.world = World()
        self.porch = self.world.porch

    def close(self) -> None:
        self.world.close()

    # --- the variant ---------------------------------------------------------------------------------

    def create(self, upstream: Json | None = None, package: str = "app", **spec: Any) -> list[str]:
        """Create the variant and let everything settle; return what the controller wrote."""
        body = variant_body(PV, {**BLUEPRINT, **(upstream or {})}, package)
        body["spec"] |= spec
        self.porch.create(VARIANTS, NAMESPACE, body)
        return self.settle()

    def edit(self, **spec: Any) -> list[str]:
        """Change fields of the spec (None removes one) and let everything settle; return what the controller wrote."""
        self.edit_only(**spec)
        return self.settle()

    def edit_only(self, **spec: Any) -> None:
        self.porch.advance(660)
        body = copied(self.body)
        body["spec"] = {key: value for key, value in (body["spec"] | spec).items() if value is not None}
        self.porch.update(VARIANTS, body)

    def delete(self) -> list[str]:
        self.porch.delete(VARIANTS, NAMESPACE, PV)
        return self.settle()

    def settle(self) -> list[str]:
        return self.world.writes_of(self.world.settle)

    def again(self) -> list[str]:
        """Work on the variant again, with nothing new; return what was written nevertheless (I1)."""
        return self.world.writes_of(self.world.resync)

    def fault(self, **by_request: Fault) -> None:
        """Let the first pass after this meet a fault at request number n: ``n3=Fault.INTERNAL``; then settle."""
        self.world.views.deliver_all()
        self.world.faults.asked = 0
        self.world.faults.plan = {int(name[1:]): fault for name, fault in by_request.items()}
        self.world.reconcile((NAMESPACE, PV))
        self.world.faults.plan.clear()

    @property
    def body(self) -> Json:
        found = self.porch.find(VARIANTS, PV)
        assert found is not None
        return found

    @property
    def exists(self) -> bool:
        return self.porch.find(VARIANTS, PV) is not None

    @property
    def status(self) -> Json:
        found: Json = self.body.get("status") or {}
        return found

    def condition(self, type_: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition of the variant; empty ones where there is none."""
        found = find_condition(self.status.get("conditions"), type_) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    @property
    def ready(self) -> tuple[str, str]:
        return self.condition("Ready")[:2]

    @property
    def targets(self) -> list[str]:
        return [target["name"] for target in self.status.get("downstreamTargets") or ()]

    @property
    def events(self) -> list[str]:
        """The reasons of the controller's warnings, in order."""
        return [reason for type_, reason, _ in self.world.notes.taken if type_ == "Warning"]

    # --- package revisions ------------------------------------------------------------------------------

    def revision(self, name: str) -> Json:
        found = self.porch.find(REVISIONS, name)
        assert found is not None, name
        return found

    def names(self, package: str = "app") -> list[str]:
        """Return the workspaces of a downstream package but for its placeholder."""
        found = self.porch.revisions_of("deployments", package)
        return sorted(one["spec"]["workspaceName"] for one in found if one["spec"]["workspaceName"] != "main")

    def lifecycle(self, name: str = DRAFT) -> str:
        return str(self.revision(name)["spec"]["lifecycle"])

    def owners(self, name: str = DRAFT) -> list[str]:
        return [one["name"] for one in self.revision(name)["metadata"].get("ownerReferences") or ()]

    def gate(self, name: str = DRAFT) -> tuple[str, str]:
        """Return status and reason of PVOperationsComplete, empty ones where it is not there."""
        found = find_condition(self.revision(name)["status"].get("conditions"), GATE) or {}
        return found.get("status", ""), found.get("reason", "")

    def task(self, name: str) -> Json:
        (task,) = self.revision(name)["spec"]["tasks"]
        return dict(task)

    def files(self, name: str) -> dict[str, str]:
        return self.porch.contents(self.revision(name))

    def patch(self, name: str, patch: Json, subresource: str = "") -> None:
        self.porch.patch(REVISIONS, NAMESPACE, name, patch, subresource=subresource)

    def move(self, lifecycle: str, name: str = DRAFT) -> None:
        door = "approval" if self.lifecycle(name) == "Proposed" else ""
        self.patch(name, {"spec": {"lifecycle": lifecycle}}, door)

    def publish(self, name: str = DRAFT) -> list[str]:
        """Propose and approve a draft; return what the controller wrote about that."""
        self.porch.advance(660)
        self.fulfil(name)
        self.move("Proposed", name)
        self.move("Published", name)
        return self.settle()

    def fulfil(self, name: str) -> None:
        """Set what injection left undone, which holds packages in deployment repositories."""
        conditions = copied(self.revision(name))["status"]["conditions"]
        for one in conditions:
            if one["type"].startswith("config.injection"):
                one["status"] = "True"
        self.patch(name, {"status": {"conditions": conditions}})

    def save(self, name: str, files: dict[str, str]) -> None:
        """Let a user add or replace files of a draft."""
        shown = self.porch.get(RESOURCES, NAMESPACE, name)
        shown["spec"]["resources"] |= files
        self.porch.update(RESOURCES, shown)

    def make(self, workspace: str, package: str = "app", **metadata: Any) -> str:
        """Let a user make a draft of a package by hand: the first one, or a copy of the newest published one."""
        published = [
            one for one in self.porch.revisions_of("deployments", package) if one["spec"].get("revision", 0) > 0
        ]
        task: Json = {"type": "init", "init": {}}
        if published:
            newest = max(published, key=lambda one: int(one["spec"]["revision"]))
            task = {"type": "edit", "edit": {"sourceRef": {"name": newest["metadata"]["name"]}}}
        spec = {
            "repository": "deployments",
            "packageName": package,
            "workspaceName": workspace,
            "lifecycle": "Draft",
            "tasks": [task],
        }
        made = self.porch.create(REVISIONS, NAMESPACE, {"metadata": metadata, "spec": spec})
        return str(made["metadata"]["name"])

    def release(self) -> list[str]:
        """Publish the next revision of the blueprint and let everything settle; return what the controller wrote."""
        self.world.user(Step("publish_upstream"))
        return self.settle()

    def release_only(self) -> None:
        self.world.user(Step("publish_upstream"))

    def tag(self, revision: int) -> list[str]:
        self.world.user(Step("move_tag", PV, revision - 1))
        return self.settle()

    def broken_upstream(self, files: dict[str, str]) -> None:
        """Publish a revision of the blueprint with other files in it; an empty text removes one."""
        self.porch.advance(660)
        known = [one for one in self.porch.revisions_of("blueprints", "base") if one["spec"].get("revision", 0) > 0]
        newest = max(known, key=lambda one: int(one["spec"]["revision"]))
        spec = {
            "repository": "blueprints",
            "packageName": "base",
            "workspaceName": f"x{len(known) + 1}",
            "lifecycle": "Draft",
            "tasks": [{"type": "edit", "edit": {"sourceRef": {"name": newest["metadata"]["name"]}}}],
        }
        name = self.porch.create(REVISIONS, NAMESPACE, {"metadata": {}, "spec": spec})["metadata"]["name"]
        shown = self.porch.get(RESOURCES, NAMESPACE, name)
        shown["spec"]["resources"] = {k: v for k, v in (upstream_files(len(known) + 1) | files).items() if v}
        self.porch.update(RESOURCES, shown)
        self.move("Proposed", name)
        self.move("Published", name)

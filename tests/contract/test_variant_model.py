"""The model of ``tests/variant_model`` answers as the server does: one conversation, held with both.

It is what the PackageVariant controller says and asks, and what users do to its drafts. Versions, uids, times and commits
differ and are left out; codes, reasons, lifecycles, gates, conditions, tasks, labels and files are the same.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from git_server import GitServer
from porch_process import PorchProcess
from remotes import Remote, empty_remote
from variant_model.client import Faults, ModelClient
from variant_model.people import upstream_files
from variant_model.porch import REPOSITORIES, PorchModel

from krm.client.client import KubeClient, connect
from krm.client.resources import PACKAGE_REVISION_RESOURCES, PACKAGE_REVISIONS
from krm.meta.errors import Conflict, StatusError

Json = dict[str, Any]
Client = KubeClient | ModelClient
GATE = "PVOperationsComplete"
OWNER_UID = "1f0a27a5-0000-4000-8000-000000000001"
OWNER = {
    "apiVersion": "config.porch.kpt.dev/v1alpha1",
    "kind": "PackageVariant",
    "name": "one",
    "uid": OWNER_UID,
    "controller": True,
}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"https?://\S+?/(?:test-\d+-\w+|blueprints|deployments)(\.git)?(?=[\s\"]|$)")


@pytest.fixture
def other_remote(git_http: GitServer, namespace: str) -> Remote:
    """A second remote of the test's own."""
    path = git_http.root / f"{namespace}-deployments.git"
    return Remote(empty_remote(path), f"{git_http.url}/{path.name}")


class Conversation:
    """What one server says to it all."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.answers: list[tuple[str, Any]] = []

    async def say(self, title: str, asked: Awaitable[Json | None]) -> Json:
        """Note the answer to a request, and return it; an error is an answer, too."""
        try:
            answer = await asked
        except StatusError as error:
            self.answers.append((title, (type(error).__name__, error.code, error.reason)))
            return {}
        self.answers.append((title, _shown(answer) if answer else None))
        return answer or {}

    async def revision(self, name: str) -> Json:
        return await self._client.get(PACKAGE_REVISIONS, self._namespace, name)

    async def files(self, name: str) -> Json:
        return await self._client.get(PACKAGE_REVISION_RESOURCES, self._namespace, name)

    async def create(self, title: str, repository: str, package: str, workspace: str, task: Json, **more: Any) -> Json:
        spec = {"repository": repository, "packageName": package, "workspaceName": workspace, "lifecycle": "Draft"}
        body: Json = {
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "kind": "PackageRevision",
            "metadata": {"namespace": self._namespace, **more.pop("metadata", {})},
            "spec": {**spec, "tasks": [task], **more.pop("spec", {})},
            **more,
        }
        body["metadata"]["name"] = f"{repository}.{package}.{workspace}"
        return await self.say(title, self._client.create(PACKAGE_REVISIONS, self._namespace, body))

    async def put(self, title: str, body: Json, *, door: str = "") -> Json:
        return await self.say(title, self._client.update(PACKAGE_REVISIONS, body, subresource=door))

    async def save(self, title: str, body: Json, files: Json) -> Json:
        """Save files as read in ``body``, with ``files`` in them."""
        wanted = {**body, "spec": {**body["spec"], "resources": {**body["spec"]["resources"], **files}}}
        await self.say(title, self._client.update(PACKAGE_REVISION_RESOURCES, wanted))
        return wanted

    async def move(self, name: str, lifecycle: str) -> Json:
        body = await self.revision(name)
        door = "approval" if body["spec"]["lifecycle"] == "Proposed" else ""
        body["spec"]["lifecycle"] = lifecycle
        return await self.put(f"{name} becomes {lifecycle}", body, door=door)

    async def delete(self, title: str, name: str, *, uid: str = "") -> None:
        await self.say(title, self._deleted(name, uid))

    async def _deleted(self, name: str, uid: str) -> Json:
        """Delete a revision, again where the server noted something in it in the same moment, as that a push is done."""
        for left in reversed(range(5)):
            try:
                await self._client.delete(PACKAGE_REVISIONS, self._namespace, name, uid=uid)
            except Conflict:
                if uid or not left:
                    raise
            else:
                break
        return {}

    async def look(self, title: str, name: str) -> None:
        """Note an object and its files as they are now."""
        await self.say(title, self.revision(name))
        await self.say(f"{title}, its files", self.files(name))


def _shown(body: Json) -> Json:
    """Return what both servers have to say alike."""
    meta, spec, status = body["metadata"], body["spec"], body.get("status") or {}
    shown = {
        "name": meta["name"],
        "labels": meta.get("labels") or {},
        "owners": [owner["name"] for owner in meta.get("ownerReferences") or ()],
        "lifecycle": spec.get("lifecycle"),
        "revision": spec.get("revision", 0),
    }
    if "resources" in spec:
        files = {path: _URL.sub("URL", _COMMIT.sub("COMMIT", text)) for path, text in spec["resources"].items()}
        return shown | {"files": files}
    lock = ((status.get("upstreamLock") or {}).get("git") or {}).get("ref")
    return shown | {
        "tasks": [task["type"] for task in spec.get("tasks") or ()],
        "gates": [gate["conditionType"] for gate in spec.get("readinessGates") or ()],
        "conditions": [(c["type"], c["status"], c.get("reason")) for c in status.get("conditions") or ()],
        "packageMetadata": spec.get("packageMetadata"),
        "upstream": lock,
        "self": ((status.get("selfLock") or {}).get("git") or {}).get("ref"),
        "deployment": bool(status.get("deployment")),
    }


def _with_gate(body: Json, status: str) -> Json:
    others = [c for c in body["status"]["conditions"] if c["type"] != GATE]
    gate = {"type": GATE, "status": status, "reason": "Test", "message": "of a test"}
    return {**body, "status": {**body["status"], "conditions": [*others, gate]}}


def _upgrade(old: str, new: str, local: str) -> Json:
    refs = {
        "oldUpstreamRef": {"name": old},
        "newUpstreamRef": {"name": new},
        "localPackageRevisionRef": {"name": local},
    }
    return {"type": "upgrade", "upgrade": {**refs, "strategy": "resource-merge"}}


def _clone(name: str) -> Json:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": name}}}}


def _edit(name: str) -> Json:
    return {"type": "edit", "edit": {"sourceRef": {"name": name}}}


MANAGED: Json = {
    "metadata": {"ownerReferences": [OWNER], "labels": {"team": "edge"}},
    "spec": {"readinessGates": [{"conditionType": GATE}]},
    "status": {"conditions": [{"type": GATE, "status": "False", "reason": "Pending", "message": "of a test"}]},
}


def managed() -> Json:
    """Return what the controller's creates carry beside their task."""
    return {part: dict(value) for part, value in MANAGED.items()}


async def talk(told: Conversation) -> None:
    """Say everything."""
    await publish_upstream(told)
    await first_draft(told)
    await gates_and_approval(told)
    await second_upstream(told)
    await upgrades(told)
    await broken(told)
    await ends(told)


async def publish_upstream(told: Conversation) -> None:
    await told.create("a blueprint", "blueprints", "base", "w1", {"type": "init", "init": {"description": "b"}})
    body = await told.files("blueprints.base.w1")
    body["spec"]["resources"] = {}
    await told.save("its files", body, upstream_files(1))
    for lifecycle in ("Proposed", "Published"):
        await told.move("blueprints.base.w1", lifecycle)
    await told.look("the placeholder", "blueprints.base.main")


async def first_draft(told: Conversation) -> None:
    name = "deployments.one.packagevariant-1"
    await told.create("a clone", "deployments", "one", "packagevariant-1", _clone("blueprints.base.w1"), **managed())
    await told.look("the clone", name)
    await told.create("again", "deployments", "one", "packagevariant-1", _clone("blueprints.base.w1"), **managed())
    await told.create("another", "deployments", "one", "packagevariant-2", _clone("blueprints.base.w1"), **managed())
    await told.create("of a branch", "deployments", "x", "v1", _clone("blueprints.base.main"))
    await told.create("of nothing", "deployments", "x", "v1", _clone("blueprints.base.w9"))
    stale = await told.files(name)
    mutators = "pipeline:\n  mutators:\n  - image: set-labels:v0.2.0\n    configMap:\n      wanted: g1\n"
    kptfile = stale["spec"]["resources"]["Kptfile"] + mutators
    await told.save("a pipeline", stale, {"Kptfile": kptfile})
    await told.save("from a stale read", stale, {"late.txt": "too late\n"})
    await told.look("rendered", name)
    again = await told.files(name)
    await told.save("the same again", again, {})
    assert (await told.files(name))["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


async def gates_and_approval(told: Conversation) -> None:
    name = "deployments.one.packagevariant-1"
    await told.move(name, "Proposed")
    body = await told.put("the gate opens", _with_gate(await told.revision(name), "True"))
    await told.put("the gate is open already", _with_gate(body, "True"))
    version = (await told.revision(name))["metadata"]["resourceVersion"]
    assert version == body["metadata"]["resourceVersion"]
    await told.put("a stale write", {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}})
    for lifecycle in ("Proposed", "Draft", "Proposed"):
        await told.move(name, lifecycle)
    await told.save("files of a proposal", await told.files(name), {"no.txt": "no\n"})
    await told.put("the gate of a proposal", _with_gate(await told.revision(name), "False"))
    await told.move(name, "Published")
    await told.look("published", name)
    await told.look("the branch", "deployments.one.main")
    await told.save("files of what is published", await told.files(name), {"no.txt": "no\n"})
    published = await told.revision(name)
    labels = {**(published["metadata"].get("labels") or {}), "team": "core"}
    await told.put("a label", {**published, "metadata": {**published["metadata"], "labels": labels}})
    await told.delete("a published revision", name)
    await told.create("a clone of what exists", "deployments", "one", "v9", _clone("blueprints.base.w1"))


async def second_upstream(told: Conversation) -> None:
    await told.create("more upstream", "blueprints", "base", "w2", _edit("blueprints.base.w1"))
    await told.save("its files", await told.files("blueprints.base.w2"), upstream_files(2))
    for lifecycle in ("Proposed", "Published"):
        await told.move("blueprints.base.w2", lifecycle)
    await told.look("not the newest any more", "blueprints.base.w1")


async def upgrades(told: Conversation) -> None:
    first, second = "deployments.one.packagevariant-1", "deployments.one.packagevariant-2"
    task = _upgrade("blueprints.base.w1", "blueprints.base.w2", first)
    await told.create("an upgrade", "deployments", "one", "packagevariant-2", task, **managed())
    await told.look("upgraded", second)
    body = await told.put("its gate opens", _with_gate(await told.revision(second), "True"))
    back = _upgrade("blueprints.base.w2", "blueprints.base.w1", second)
    body["spec"]["tasks"] = [*body["spec"]["tasks"], back]
    await told.put("back in place", body)
    await told.look("upgraded in place", second)
    body = await told.revision(second)
    body["spec"]["tasks"] = [*body["spec"]["tasks"], _upgrade("blueprints.base.w1", "blueprints.base.w2", first)]
    await told.put("an upgrade of another one is no upgrade of this", body)
    await told.create("an edit of a draft", "deployments", "one", "v3", _edit(second))
    await told.create("an edit", "deployments", "one", "v3", _edit(first))
    await told.look("edited", "deployments.one.v3")


async def broken(told: Conversation) -> None:
    name = "deployments.one.packagevariant-2"
    kptfile = (await told.files(name))["spec"]["resources"]["Kptfile"]
    bad = kptfile.replace("set-labels:v0.2.0", "no-such-function:v1")
    await told.save("a pipeline that cannot run", await told.files(name), {"Kptfile": bad})
    await told.look("as it was", name)
    await told.save("no Kptfile", await told.files(name), {"Kptfile": "a: ["})


async def ends(told: Conversation) -> None:
    first, second = "deployments.one.packagevariant-1", "deployments.one.packagevariant-2"
    body = await told.revision(first)
    body["spec"]["lifecycle"] = "DeletionProposed"
    body["metadata"].pop("ownerReferences")
    await told.put("proposed for deletion and left alone", body)
    await told.look("so it is", first)
    await told.move(first, "Published")
    await told.delete("a draft that is another one", second, uid=OWNER_UID)
    await told.delete("a draft", second)
    await told.delete("and again", second)
    await told.move("blueprints.base.w1", "DeletionProposed")
    await told.delete("an upstream in use", "blueprints.base.w1")
    await told.create("the workspace is free again", "deployments", "one", "packagevariant-2", _edit(first))


async def with_server(
    server: PorchProcess, namespace: str, say: Callable[[Conversation], Awaitable[None]]
) -> Conversation:
    async with connect(server.kubeconfig) as client:
        told = Conversation(client, namespace)
        await say(told)
        return told


async def with_model(say: Callable[[Conversation], Awaitable[None]]) -> Conversation:
    porch = PorchModel()
    for name, deployment in (("blueprints", False), ("deployments", True)):
        git = {"repo": f"https://git.example/{name}", "branch": "main"}
        spec = {"type": "git", "git": git, "deployment": deployment}
        porch.create(REPOSITORIES, "default", {"metadata": {"name": name}, "spec": spec})
    told = Conversation(ModelClient(porch, Faults(), lambda: None), "default")
    await say(told)
    return told


async def test_the_model_answers_as_the_server_does(
    porch_server: PorchProcess, namespace: str, register: Callable[..., None], git_http: GitServer, other_remote: Remote
) -> None:
    path = git_http.root / f"{namespace}-blueprints.git"
    blueprints = Remote(empty_remote(path), f"{git_http.url}/{path.name}")
    await asyncio.to_thread(register, blueprints=blueprints, deployments=other_remote, deployment=("deployments",))

    real, model = await with_server(porch_server, namespace, talk), await with_model(talk)

    assert [title for title, _ in model.answers] == [title for title, _ in real.answers]
    for (title, said), (_, modelled) in zip(real.answers, model.answers, strict=True):
        assert modelled == said, title

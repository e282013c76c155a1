"""A PackageVariant among others: other variants, people who undo what it did, packages that do not render, Git.

Source: ``variants.md`` 2.3 to 2.11; ``decisions.md`` 14 and 16; S0, "Order of mutations".
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from golden import golden
from live_controller import live_controller
from porch_process import PorchProcess
from remotes import Remote, commit_files, git
from variant_fixture import Rig, variant_rig
from variant_place import (
    CONFIG_MAP,
    GATE,
    NO_FUNCTION,
    SET_LABELS,
    SET_NAMESPACE,
    Json,
    blueprint,
    condition_of,
    downstream,
    gates_of,
    kptfile,
    owners_of,
    upstream,
    variant,
    with_blueprint,
)

FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
LABELS, NAMESPACE = {"mutators": [SET_LABELS]}, {"mutators": [SET_NAMESPACE]}
CLONED = ["POST PR bar.packagevariant-1 False", "PUT PR bar.packagevariant-1 True"]
OPENED = [CLONED[1]]
UPGRADED = ["POST PR bar.packagevariant-2 False", "PUT PR bar.packagevariant-2 True"]
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
BROKEN = f"pipeline:\n  mutators:\n  - image: {NO_FUNCTION['image']}\n"


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> AsyncIterator[Rig]:
    """A place of the test's own with a controller."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        yield made


async def with_draft(rig: Rig, **spec: Any) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(**spec))
    await rig.settle()


# --- other variants ------------------------------------------------------------------------------------


@golden("2.5", "decisions.16")
@pytest.mark.parametrize(
    ("policy", "reason"), [("adoptNone", "DownstreamExists"), ("adoptExisting", "AdoptionConflict")]
)
async def test_of_two_variants_of_one_package_the_first_has_it(rig: Rig, policy: str, reason: str) -> None:
    await with_draft(rig)
    rig.add_variant(variant("second", adoptionPolicy=policy, pipeline=LABELS))

    assert await rig.settle("second") == []

    assert rig.condition("Ready", "second")[:2] == ("False", reason)
    assert await rig.settle() == []
    assert rig.condition("Ready") == READY
    await rig.quiet("second")


@golden("chains", "C-01")
async def test_a_chain_of_variants_passes_an_upgrade_on(rig: Rig) -> None:
    """Each keeps its own functions apart from the other's (S0)."""
    with_blueprint(rig)
    rig.add_variant(variant("first", upstream=upstream(), pipeline=LABELS))
    await rig.settle("first")
    rig.approve(FIRST)
    source = {"repo": "deployments", "package": "bar"}
    rig.add_variant(variant("next", upstream=source, downstream=downstream("baz"), pipeline=NAMESPACE))
    await rig.settle("next")
    draft = "deployments.baz.packagevariant-1"
    names = [one["name"] for one in yaml.safe_load(rig.files(draft)["Kptfile"])["pipeline"]["mutators"]]
    assert names == ["PackageVariant.next..0", "PackageVariant.first..0"]

    rig.new_upstream(2)
    assert await rig.settle("first") == UPGRADED
    assert await rig.settle("next") == []
    rig.approve(SECOND)
    assert (await rig.settle("next"))[-1] == "PUT PR baz.packagevariant-1 True"

    files = rig.files(draft)
    assert "size-2" in files["settings.yaml"]
    assert [one["name"] for one in yaml.safe_load(files["Kptfile"])["pipeline"]["mutators"]] == names
    for name in ("first", "next"):
        await rig.settle(name)
        await rig.quiet(name)


@golden("2.6")
async def test_packages_in_folders_have_dots_in_their_names(rig: Rig) -> None:
    rig.register("blueprints", {"net/core/upf@v1": blueprint("upf")})
    rig.register("deployments", deployment=True)
    body = variant(
        upstream=upstream("net/core/upf", revision=1), downstream=downstream("edge/one/upf"), pipeline=LABELS
    )
    rig.add_variant(body)

    await rig.settle()

    assert rig.targets() == ["deployments.edge.one.upf.packagevariant-1"]
    assert rig.condition("Ready") == READY
    assert "app: foo" in rig.pushed("edge/one/upf", "packagevariant-1")["settings.yaml"]
    await rig.quiet()


@golden("decisions.16")
async def test_a_repository_that_is_not_there_is_told_and_waited_for(rig: Rig) -> None:
    rig.register("blueprints", {"foo@v1": blueprint()})
    rig.add_variant(variant())

    assert await rig.settle() == []
    ready = rig.condition("Ready")
    assert ready[0] == "False"
    assert "deployments" in ready[2]

    rig.register("deployments", deployment=True)
    assert await rig.settle() == CLONED
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("1.2")
async def test_labels_that_no_server_would_take_are_told_before_anything_is_written(rig: Rig) -> None:
    with_blueprint(rig)
    rig.add_variant(variant(labels={"not a key": "x"}))

    done = await rig.reconcile()

    assert done.packages == []
    assert not done.wants_retry
    assert rig.condition("Stalled")[:2] == ("True", "ValidationError")
    assert "not a key" in rig.condition("Stalled")[2]
    await rig.quiet()
    rig.change_variant(labels={"key": "x"})
    assert await rig.settle() == CLONED
    await rig.quiet()


@golden("2.5")
async def test_all_adopted_drafts_are_kept_true(rig: Rig) -> None:
    await with_draft(rig)
    rig.approve(FIRST)
    await rig.settle()
    drafts = [rig.draft_of(FIRST, f"ws-{number}") for number in (2, 3)]
    rig.new_upstream(2)
    rig.change_variant(adoptionPolicy="adoptExisting", pipeline=LABELS, upstream=upstream(revision=2))

    await rig.settle_all()

    assert sorted(rig.targets()) == drafts
    for draft in drafts:
        files = rig.files(draft)
        assert "size-2" in files["settings.yaml"]
        assert "app: foo" in files["settings.yaml"]
        assert condition_of(rig.revision(draft), GATE)["status"] == "True"
    assert set(rig.revisions_of("bar")) == {"packagevariant-1", "ws-2", "ws-3"}
    await rig.quiet()


# --- people who undo ---------------------------------------------------------------------------------


@golden("2.2")
async def test_a_draft_that_somebody_deleted_is_made_again(rig: Rig) -> None:
    await with_draft(rig, pipeline=LABELS)
    accepted(rig.porch.delete_revision(FIRST))

    assert (await rig.settle())[0] == CLONED[0]

    assert rig.targets() == [FIRST]
    assert "app: foo" in rig.files(FIRST)["settings.yaml"]
    await rig.quiet()


@golden("2.8.e", "2.11")
@pytest.mark.parametrize("undone", ["condition", "status", "gate"])
async def test_a_gate_that_somebody_undid_is_finished_again(rig: Rig, undone: str) -> None:
    await with_draft(rig)

    def undo(body: Json) -> None:
        conditions = body["status"]["conditions"]
        if undone == "gate":
            gates = body["spec"]["readinessGates"]
            body["spec"]["readinessGates"] = [gate for gate in gates if gate["conditionType"] != GATE]
        elif undone == "condition":
            body["status"]["conditions"] = [one for one in conditions if one["type"] != GATE]
        else:
            condition_of(body, GATE)["status"] = "Unknown"

    rig.edit(FIRST, undo)

    assert await rig.settle() == OPENED

    assert GATE in gates_of(rig.revision(FIRST))
    assert condition_of(rig.revision(FIRST), GATE)["status"] == "True"
    await rig.quiet()


@golden("I7")
async def test_what_somebody_pushed_to_the_drafts_branch_stays(rig: Rig) -> None:
    """A push of a Kptfile without our gate, and of a file of theirs."""
    await with_draft(rig, pipeline=LABELS)
    before = rig.pushed("bar", "packagevariant-1")
    bare = yaml.safe_load(before["Kptfile"])
    bare["info"].pop("readinessGates")
    bare.pop("status", None)
    remote = rig.remotes["deployments"]
    push_to_draft(remote, {"bar/Kptfile": yaml.safe_dump(bare), "bar/note.txt": "theirs\n"})
    rig.sync("deployments")
    eventually(lambda: has_note(rig))

    await rig.settle_all()

    assert rig.files(FIRST)["note.txt"] == "theirs\n"
    assert GATE in gates_of(rig.revision(FIRST))
    assert condition_of(rig.revision(FIRST), GATE)["status"] == "True"
    assert owners_of(rig.revision(FIRST)) == [rig.variant()["metadata"]["uid"]]
    assert rig.condition("Ready") == READY
    await rig.quiet()
    assert rig.pushed("bar", "packagevariant-1")["note.txt"] == "theirs\n"


def push_to_draft(remote: Remote, files: dict[str, str]) -> None:
    commit_files(remote.path, files, "by hand", branch="drafts/bar/packagevariant-1")
    assert git("log", "-1", "--format=%s", "refs/heads/drafts/bar/packagevariant-1", cwd=remote.path) == "by hand"


def has_note(rig: Rig) -> None:
    assert "note.txt" in rig.files(FIRST)


# --- packages that do not render ---------------------------------------------------------------------------


@golden("decisions.14")
async def test_a_clone_that_renders_only_with_what_is_injected_becomes_ready(rig: Rig) -> None:
    """The function fails without the object; the draft is kept closed until it is injected."""
    source = (
        "def check(resources):\n  for r in resources:\n    if r['kind'] == 'ConfigMap' and r['metadata']['name'] == 'point':\n"
        "      if 'db' not in r['data']:\n        fail('no database')\ncheck(ctx.resource_list['items'])\n"
    )
    function = {"image": "gcr.io/kpt-fn/starlark:v0.4.3", "configMap": {"source": source}}
    point = CONFIG_MAP.replace("  name: settings", "  name: point\n  annotations: {kpt.dev/config-injection: required}")
    pipeline = yaml.safe_dump({"pipeline": {"mutators": [function]}})
    with_blueprint(rig, {**blueprint(point_yaml=point), "Kptfile": kptfile("foo", pipeline)})
    rig.add_variant(variant(injectors=[{"name": "source"}]))

    first = await rig.reconcile()

    assert first.packages[0] == CLONED[0]
    draft = rig.revision(FIRST)
    assert condition_of(draft, "PackagePipelinePassed")["status"] == "False"
    assert rig.condition("Ready")[:2] == ("False", "RenderFailed")
    assert "no database" in rig.condition("Ready")[2]

    rig.create("/api/v1", "configmaps", {"metadata": {"name": "source"}, "data": {"db": "here"}})
    assert (await rig.settle_all())[-2:] == ["PUT PRR bar.packagevariant-1", CLONED[1]]
    draft = rig.revision(FIRST)
    assert condition_of(draft, "PackagePipelinePassed")["status"] == "True"
    assert condition_of(draft, GATE)["status"] == "True"
    assert rig.condition("Ready") == READY
    await rig.quiet()
    accepted(rig.porch.propose(FIRST))


@golden("R4", "C-08", "decisions.14")
@pytest.mark.parametrize("lifecycle", ["Draft", "Published"])
async def test_an_upstream_that_does_not_render_is_followed_to_the_next_that_does(rig: Rig, lifecycle: str) -> None:
    await with_draft(rig, upstream={"repo": "blueprints", "package": "foo", "revision": "latest"})
    if lifecycle == "Published":
        rig.approve(FIRST)
        await rig.settle()
    broken = {**blueprint(), "Kptfile": kptfile("foo", BROKEN), "settings.yaml": CONFIG_MAP.replace("small", "broken")}
    rig.push("blueprints", {"foo@v2": broken})
    rig.sync("blueprints")

    await rig.reconcile()
    name = FIRST if lifecycle == "Draft" else SECOND
    assert "broken" in rig.files(name)["settings.yaml"]
    assert condition_of(rig.revision(name), "PackagePipelinePassed")["status"] == "False"
    assert rig.porch.propose(name).code == 422

    fixed = {**blueprint(), "settings.yaml": CONFIG_MAP.replace("small", "fixed")}
    rig.push("blueprints", {"foo@v3": fixed})
    rig.sync("blueprints")
    await rig.settle_all()

    assert "fixed" in rig.files(name)["settings.yaml"]
    assert condition_of(rig.revision(name), "PackagePipelinePassed")["status"] == "True"
    assert condition_of(rig.revision(name), GATE)["status"] == "True"
    assert rig.condition("Ready") == READY
    assert len(rig.revisions_of("bar")) == (1 if lifecycle == "Draft" else 2)
    await rig.quiet()


# --- the namespace goes --------------------------------------------------------------------------------------


@golden("2.12")
@pytest.mark.parametrize("policy", ["delete", "orphan"])
async def test_a_namespace_goes_with_its_variants(rig: Rig, policy: str) -> None:
    """With the controller as a whole: its writes are those that a terminating namespace still takes."""
    with_blueprint(rig)
    for name in ("one", "two"):
        rig.add_variant(variant(name, downstream=downstream(name), deletionPolicy=policy))
    await rig.settle("one")
    rig.approve("deployments.one.packagevariant-1")
    with live_controller(rig.server.kubeconfig, rig.namespace) as controller:
        controller.settle()
        assert rig.condition("Ready", "two") == READY
        path = f"/api/v1/namespaces/{rig.namespace}"
        accepted(rig.porch.request("DELETE", path))

        def gone() -> None:
            answer = rig.porch.request("GET", path)
            assert answer.code == 404, answer.body

        eventually(gone, timeout=60)

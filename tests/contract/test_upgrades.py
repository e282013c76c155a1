"""Upgrades against real remotes: every strategy, on create and in place, and what is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, Engine, Json, eventually, git, new_remote, running_engine
from remotes import blueprints_remote, commit_files, refs

from apiserver.resources.revision_ownership import FileManagers
from apiserver.rules.lifecycle import Door
from krm.meta.errors import Forbidden, Invalid
from krm.package.kptfile import parse_kptfile
from storage.interfaces import Entry

STRATEGIES = ["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  size: {size}\n  colour: {colour}\n"
EXTRA = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\ndata:\n  a: b\n"
NOTES = "notes of upstream\n"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with running_engine(tmp_path) as running:
        await running.register("up", new_remote(tmp_path / "up.git"))
        await running.register("down", new_remote(tmp_path / "down.git"), deployment=True)
        yield running


async def publish(engine: Engine, name: str) -> str:
    await engine.move(name, "Proposed")
    await engine.approve(name)
    return name


async def upstreams(engine: Engine) -> tuple[str, str]:
    """Publish two revisions of a blueprint: the second has another size, one file more and one less."""
    first = (await engine.create("blue", repository="up")).name
    await engine.save(first, settings_yaml=SETTINGS.format(size=1, colour="red"), old_txt="goes\n")
    await publish(engine, first)
    task = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
    second = (await engine.create("blue", repository="up", workspace="v2", task=task)).name
    await replace(
        engine, second, {"settings.yaml": SETTINGS.format(size=2, colour="red"), "extra.yaml": EXTRA}, ["old.txt"]
    )
    return first, await publish(engine, second)


async def replace(engine: Engine, name: str, files: dict[str, str], without: list[str]) -> None:
    def resources(entry: Entry, contents: Any) -> Any:
        texts = {path: file.data.decode() for path, file in contents.items() if path not in without} | files
        wanted = {"metadata": {"resourceVersion": str(entry.rv)}, "spec": {"resources": texts}}
        return wanted, [], FileManagers([], [])

    await engine.service.save(NAMESPACE, name, resources, "alice", dry_run=False)


def clone_of(upstream: str) -> Json:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}


def upgrade(old: Any, new: Any, local: str, strategy: str = "") -> Json:
    block: Json = {
        "oldUpstreamRef": {"name": old} if isinstance(old, str) else {"git": old},
        "newUpstreamRef": {"name": new} if isinstance(new, str) else {"git": new},
        "localPackageRevisionRef": {"name": local},
    }
    if strategy:
        block["strategy"] = strategy
    return {"type": "upgrade", "upgrade": block}


async def texts(engine: Engine, name: str) -> dict[str, str]:
    return {path: file.data.decode() for path, file in (await engine.contents(name)).items()}


@pytest.mark.parametrize("strategy", ["", *STRATEGIES])
async def test_an_upgrade_brings_upstreams_changes_and_says_where_they_are_from(engine: Engine, strategy: str) -> None:
    old, new = await upstreams(engine)
    local = await publish(engine, (await engine.create("app", repository="down", task=clone_of(old))).name)

    task = upgrade(old, new, local, strategy)
    name = (await engine.create("app", repository="down", workspace="v2", task=task)).name

    files, body = await texts(engine, name), engine.body(name)
    assert "size: 2" in files["settings.yaml"]
    assert "colour: red" in files["settings.yaml"]
    assert "old.txt" not in files
    assert "metadata: # kpt-merge: /extra" in files["extra.yaml"]
    context = files["package-context.yaml"]
    assert "name: app" in context
    assert "package-path: app" in context, "the package's own context is not upstream's"
    lock = engine.body(new)["status"]["selfLock"]["git"]
    assert body["status"]["upstreamLock"]["git"] == {**lock, "repo": lock["repo"]}
    assert parse_kptfile(files["Kptfile"].encode()).name == "app"
    assert body["spec"]["tasks"] == [task]
    assert body["spec"]["lifecycle"] == "Draft"


@pytest.mark.parametrize(
    ("strategy", "colour", "own_file"),
    [("resource-merge", "blue", True), ("force-delete-replace", "red", False), ("copy-merge", "red", True)],
)
async def test_local_edits_meet_an_upgrade_as_the_strategy_says(
    engine: Engine, strategy: str, colour: str, own_file: bool
) -> None:
    old, new, local = await edited_clone(engine)

    name = (await engine.create("app", "down", "v2", upgrade(old, new, local, strategy))).name

    files = await texts(engine, name)
    assert "size: 2" in files["settings.yaml"]
    assert f"colour: {colour}" in files["settings.yaml"]
    assert ("own.txt" in files) is own_file


async def edited_clone(engine: Engine) -> tuple[str, str, str]:
    """Publish a clone of the first blueprint with a field changed and a file added."""
    old, new = await upstreams(engine)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    files = await texts(engine, draft)
    await replace(
        engine, draft, {"settings.yaml": files["settings.yaml"].replace("red", "blue"), "own.txt": "own\n"}, []
    )
    return old, new, await publish(engine, draft)


async def test_a_fast_forward_over_local_edits_is_refused_and_names_the_files(engine: Engine) -> None:
    old, new, local = await edited_clone(engine)

    with pytest.raises(Invalid) as refusal:
        await engine.create("app", "down", "v2", upgrade(old, new, local, "fast-forward"))

    said = refusal.value.message
    assert said.startswith(f'Internal error occurred: error updating the package "app" to revision "{new}": ')
    assert (
        "local package files have been modified: [own.txt settings.yaml].\n  use a different update --strategy." in said
    )
    assert engine.entry("down.app.v2") is None


async def test_what_renders_left_on_both_sides_is_no_conflict(engine: Engine) -> None:
    """Warnings of an upgrade without conflicts would be on the standard error of upstream's client."""
    pipeline = "pipeline:\n  mutators:\n  - image: set-labels:v0.2\n    configMap:\n      made: {by}\n"
    old, _ = await upstreams(engine)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    await replace(engine, draft, {"Kptfile": (await texts(engine, draft))["Kptfile"] + pipeline.format(by="us")}, [])
    local = await publish(engine, draft)
    edit = {"type": "edit", "edit": {"sourceRef": {"name": old}}}
    new = (await engine.create("blue", "up", "v3", edit)).name
    await replace(engine, new, {"Kptfile": (await texts(engine, new))["Kptfile"] + pipeline.format(by="us")}, [])
    await publish(engine, new)
    told: list[str] = []
    spec = {"repository": "down", "packageName": "app", "workspaceName": "v2", "tasks": [upgrade(old, new, local)]}

    await engine.service.create(NAMESPACE, {"metadata": {}, "spec": spec}, "alice", dry_run=False, warn=told.append)

    assert told == []
    assert "made: us" in (await texts(engine, "down.app.v2"))["settings.yaml"]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_rendering_an_upgraded_package_again_changes_nothing(engine: Engine, strategy: str) -> None:
    old, new = await upstreams(engine)
    local = await publish(engine, (await engine.create("app", "down", task=clone_of(old))).name)
    made = await engine.create("app", "down", "v2", upgrade(old, new, local, strategy))
    before = await texts(engine, made.name)

    saved = await engine.save(made.name)

    assert await texts(engine, made.name) == before
    assert saved.rv == made.rv


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_same_upgrade_once_more_changes_nothing(engine: Engine, strategy: str) -> None:
    old, new = await upstreams(engine)
    local = await publish(engine, (await engine.create("app", "down", task=clone_of(old))).name)
    once = await publish(engine, (await engine.create("app", "down", "v2", upgrade(old, new, local, strategy))).name)

    twice = (await engine.create("app", "down", "v3", upgrade(new, new, once, strategy))).name

    assert await texts(engine, twice) == await texts(engine, once)


async def test_an_upgrade_tells_where_both_sides_changed_the_same_and_whose_change_was_kept(engine: Engine) -> None:
    old, new = await upstreams(engine)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    files = await texts(engine, draft)
    await replace(engine, draft, {"settings.yaml": files["settings.yaml"].replace("size: 1", "size: 7")}, [])
    local = await publish(engine, draft)
    told: list[str] = []
    spec = {"repository": "down", "packageName": "app", "workspaceName": "v2", "tasks": [upgrade(old, new, local)]}

    await engine.service.create(NAMESPACE, {"metadata": {}, "spec": spec}, "alice", dry_run=False, warn=told.append)

    assert told == [
        "settings.yaml: |ConfigMap||settings: data.size: changed upstream and locally; upstream's change was kept"
    ]
    assert "size: 2" in (await texts(engine, "down.app.v2"))["settings.yaml"]
    decided = [report for report in engine.events.reported if report[1] == "MergeDecided"]
    assert decided == [("down.app.v2", "MergeDecided", told[0], True)]


@pytest.mark.parametrize(("type_", "is_told"), [("PVOperationsComplete", False), ("Reviewed", True)])
async def test_conditions_of_controllers_are_no_decision_of_a_merge_and_those_of_people_are(
    engine: Engine, type_: str, is_told: bool
) -> None:
    old, new = await upstreams(engine)
    edit = {"type": "edit", "edit": {"sourceRef": {"name": new}}}
    newest = (await engine.create("blue", "up", "v3", edit)).name
    conditions = "status:\n  conditions:\n    - type: {}\n      status: 'True'\n"
    await replace(
        engine, newest, {"Kptfile": with_status(await texts(engine, newest), conditions.format("Checked"))}, []
    )
    await publish(engine, newest)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    await replace(engine, draft, {"Kptfile": with_status(await texts(engine, draft), conditions.format(type_))}, [])
    local = await publish(engine, draft)
    told: list[str] = []
    spec = {"repository": "down", "packageName": "app", "workspaceName": "v2", "tasks": [upgrade(old, newest, local)]}

    await engine.service.create(NAMESPACE, {"metadata": {}, "spec": spec}, "alice", dry_run=False, warn=told.append)

    expected = "Kptfile: status.conditions: changed upstream and locally; upstream's change was kept"
    assert told == ([expected] if is_told else [])


def with_status(files: dict[str, str], status: str) -> str:
    """Return the Kptfile with another status."""
    return files["Kptfile"].partition("status:")[0] + status


# --- in place ----------------------------------------------------------------------------------


async def draft_of_old(engine: Engine) -> tuple[str, str, str]:
    """Make a draft of the first blueprint, with a field changed."""
    old, new = await upstreams(engine)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    files = await texts(engine, draft)
    await replace(engine, draft, {"settings.yaml": files["settings.yaml"].replace("red", "blue")}, [])
    return old, new, draft


async def put(engine: Engine, name: str, change: Any, warn: Any = None) -> Entry:
    def changed(body: Json) -> Json:
        change(body)
        return body

    return await engine.service.update(NAMESPACE, name, changed, "alice", Door.MAIN, dry_run=False, warn=warn)


async def test_a_draft_is_upgraded_in_place_by_one_task_appended(engine: Engine, tmp_path: Path) -> None:
    old, new, draft = await draft_of_old(engine)
    before = engine.body(draft)
    task = upgrade(old, new, draft)

    await put(engine, draft, lambda body: body["spec"]["tasks"].append(task))

    body, files = engine.body(draft), await texts(engine, draft)
    assert "size: 2" in files["settings.yaml"]
    assert "colour: blue" in files["settings.yaml"]
    assert body["spec"]["tasks"] == [task]
    assert body["status"]["upstreamLock"]["git"]["ref"] == "blue/v2"
    assert body["metadata"]["uid"] == before["metadata"]["uid"]
    commit = body["status"]["selfLock"]["git"]["commit"]
    await eventually(lambda: refs(tmp_path / "down.git").get("refs/heads/drafts/app/v1") == commit)
    assert git(tmp_path / "down.git", "log", "-1", "--format=%s", commit) == "Upgrading revision"
    assert git(tmp_path / "down.git", "rev-parse", f"{commit}^") == before["status"]["selfLock"]["git"]["commit"]


async def test_git_alone_knows_that_a_draft_was_upgraded_in_place(engine: Engine, tmp_path: Path) -> None:
    old, new, draft = await draft_of_old(engine)
    await put(engine, draft, lambda body: body["spec"]["tasks"].append(upgrade(old, new, draft)))
    await engine.save(draft, more_txt="more\n")
    known = engine.body(draft)
    commit = known["status"]["selfLock"]["git"]["commit"]
    await eventually(lambda: refs(tmp_path / "down.git").get("refs/heads/drafts/app/v1") == commit)
    (tmp_path / "second").mkdir()

    async with running_engine(tmp_path / "second") as other:
        await other.register("down", tmp_path / "down.git", deployment=True)

        found = other.body(draft)

    assert (found["spec"], found["status"]) == (known["spec"], known["status"])


async def test_an_upgrade_to_what_a_draft_is_made_of_already_is_recorded_all_the_same(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)
    await put(engine, draft, lambda body: body["spec"]["tasks"].append(upgrade(old, new, draft)))
    once = await texts(engine, draft)

    again = upgrade(new, new, draft)
    await put(engine, draft, lambda body: body["spec"]["tasks"].append(again))

    assert await texts(engine, draft) == once
    assert engine.body(draft)["spec"]["tasks"] == [again]


async def test_other_changes_of_tasks_are_ignored(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)
    before, tasks = await texts(engine, draft), engine.body(draft)["spec"]["tasks"]
    task = upgrade(old, new, draft)
    other = upgrade(old, new, "down.other.v1")

    for wanted in ([], [task], [*tasks, other], [*tasks, task, task], [*tasks, *tasks], [task, *tasks]):
        await put(engine, draft, lambda body, wanted=wanted: body["spec"].update(tasks=wanted))

        assert engine.body(draft)["spec"]["tasks"] == tasks
        assert await texts(engine, draft) == before


async def test_a_proposal_is_not_upgraded(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)
    await engine.move(draft, "Proposed")
    tasks = engine.body(draft)["spec"]["tasks"]

    await put(engine, draft, lambda body: body["spec"]["tasks"].append(upgrade(old, new, draft)))

    assert engine.body(draft)["spec"]["tasks"] == tasks


async def test_an_upgrade_in_place_closes_the_gate_of_the_package_variant(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)

    def open_gate(body: Json) -> None:
        body["spec"]["readinessGates"] = [{"conditionType": "PVOperationsComplete"}]
        body["status"]["conditions"] = [{"type": "PVOperationsComplete", "status": "True"}]

    await put(engine, draft, open_gate)

    def ask(body: Json) -> None:
        body["spec"]["tasks"].append(upgrade(old, new, draft))
        body["spec"]["lifecycle"] = "Proposed"

    with pytest.raises(Invalid, match="PVOperationsComplete"):
        await put(engine, draft, ask)
    await put(engine, draft, lambda body: body["spec"]["tasks"].append(upgrade(old, new, draft)))

    conditions = {each["type"]: each for each in engine.body(draft)["status"]["conditions"]}
    assert conditions["PVOperationsComplete"]["status"] == "False"
    assert conditions["PVOperationsComplete"]["reason"] == "PVOperationsPending"
    assert conditions["PackagePipelinePassed"]["status"] == "True"
    with pytest.raises(Invalid, match="PVOperationsComplete"):
        await engine.move(draft, "Proposed")


async def test_one_request_upgrades_in_place_and_edits(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)

    def ask(body: Json) -> None:
        body["spec"]["tasks"].append(upgrade(old, new, draft))
        body["spec"]["readinessGates"] = [{"conditionType": "acme.com/ok"}]
        body["status"]["conditions"] = [
            {"type": "acme.com/ok", "status": "False", "reason": "Waiting", "message": "for acme"}
        ]
        body["spec"]["packageMetadata"] = {"labels": {"team": "a"}}
        body["metadata"]["labels"] = {"mine": "yes"}

    await put(engine, draft, ask)

    body, files = engine.body(draft), await texts(engine, draft)
    kptfile = parse_kptfile(files["Kptfile"].encode())
    assert kptfile.readiness_gates == ("acme.com/ok",)
    assert {each["type"] for each in kptfile.conditions} == {"acme.com/ok", "Rendered"}
    assert kptfile.labels == {"team": "a"}
    assert body["metadata"]["labels"] == {"mine": "yes"}
    assert "size: 2" in files["settings.yaml"]


async def test_an_upgrade_in_place_that_is_refused_leaves_the_draft_as_it_is(engine: Engine) -> None:
    old, new, draft = await draft_of_old(engine)
    before = engine.entry(draft)

    for task in (
        upgrade(old, new, draft, "fast-forward"),
        upgrade(old, new, draft, "no-such-strategy"),
        upgrade(old, "up.blue.main", draft),
        upgrade(old, draft, draft),
        upgrade("up.blue.v9", new, draft),
    ):
        with pytest.raises(
            Invalid, match=r"spec.tasks\[1\]|error updating|placeholder|published|failed to fetch"
        ) as refusal:
            await put(engine, draft, lambda body, task=task: body["spec"]["tasks"].append(task))

        assert refusal.value.causes[0].field.startswith("spec.tasks[1].upgrade")
        assert engine.entry(draft) is before


async def broken_upstream(engine: Engine, old: str) -> str:
    """Publish a revision of the blueprint that renders with upstream's own configuration of its function only."""
    edit = {"type": "edit", "edit": {"sourceRef": {"name": old}}}
    name = (await engine.create("blue", "up", "v3", edit)).name
    pipeline = "pipeline:\n  mutators:\n  - image: set-labels:v0.2\n    configPath: injected.yaml\n"
    labels = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: injected\ndata:\n  made: x\n"
    files = {"Kptfile": (await texts(engine, name))["Kptfile"] + pipeline, "injected.yaml": labels}
    await replace(engine, name, files, [])
    return await publish(engine, name)


async def test_an_upgrade_that_does_not_render_is_kept_only_while_a_package_variant_works_on_the_draft(
    engine: Engine,
) -> None:
    """What the variant does next may make it renderable; for everybody else the draft stays what it was."""
    old, _, draft = await draft_of_old(engine)
    new = await broken_upstream(engine, old)
    await replace(engine, draft, {"injected.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: mine\n"}, [])
    before, task = engine.entry(draft), upgrade(old, new, draft)

    with pytest.raises(Invalid, match="error rendering package in kpt function pipeline"):
        await put(engine, draft, lambda body: body["spec"]["tasks"].append(task))
    assert engine.entry(draft) is before

    def ask(body: Json) -> None:
        body["spec"]["readinessGates"] = [{"conditionType": "PVOperationsComplete"}]
        body["spec"]["tasks"].append(task)

    await put(engine, draft, ask)

    body = engine.body(draft)
    conditions = {each["type"]: each for each in body["status"]["conditions"]}
    assert {conditions[name]["status"] for name in ("PackagePipelinePassed", "PVOperationsComplete")} == {"False"}
    assert body["status"]["upstreamLock"]["git"]["ref"] == "blue/v3"
    assert body["spec"]["tasks"] == [task]


# --- what is refused, and upstreams that nobody registered -----------------------------------------


async def refusal_of(engine: Engine, task: Json, package: str = "app", workspace: str = "v9") -> Invalid:
    with pytest.raises(Invalid) as refusal:
        await engine.create(package, "down", workspace, task)
    assert engine.entry(f"down.{package}.{workspace}") is None
    return refusal.value


async def test_upgrades_that_cannot_be_are_refused_with_upstreams_sentences(engine: Engine) -> None:
    old, new = await upstreams(engine)
    local = await publish(engine, (await engine.create("app", "down", task=clone_of(old))).name)
    edit = {"type": "edit", "edit": {"sourceRef": {"name": local}}}
    draft = (await engine.create("app", "down", "v2", edit)).name
    upgraded = "spec.tasks[0].upgrade"
    cases = [
        (
            upgrade(old, "up.blue.main", local),
            "target upstream revision may not be the placeholder package revision up/up.blue.main",
            f"{upgraded}.newUpstreamRef.name",
        ),
        (
            upgrade(old, new, "down.app.main"),
            "source revision may not be the placeholder package revision down/down.app.main",
            f"{upgraded}.localPackageRevisionRef.name",
        ),
        (
            upgrade(old, new, draft),
            f'all source PackageRevisions of upgrade task must be published, "{draft}" is not',
            f"{upgraded}.localPackageRevisionRef.name",
        ),
        (
            upgrade(old, "up.blue.v7", local),
            'failed to fetch package revision "up.blue.v7": cannot find package revision "up.blue.v7"',
            f"{upgraded}.newUpstreamRef.name",
        ),
        (upgrade(old, new, ""), "localPackageRevisionRef.name is required", f"{upgraded}.localPackageRevisionRef.name"),
        (
            {"type": "upgrade"},
            "oldUpstreamRef must name a package revision, or a package in a Git repository (git: repo, ref, directory)",
            f"{upgraded}.oldUpstreamRef",
        ),
    ]
    for task, why, field in cases:
        error = await refusal_of(engine, task)

        assert error.message == f"Internal error occurred: {why}"
        assert [cause.field for cause in error.causes] == [field]


async def test_a_strategy_that_nobody_knows_is_refused_with_those_that_there_are(engine: Engine) -> None:
    old, new = await upstreams(engine)
    local = await publish(engine, (await engine.create("app", "down", task=clone_of(old))).name)

    error = await refusal_of(engine, upgrade(old, new, local, "resource-merg"))

    assert [cause.field for cause in error.causes] == ["spec.tasks[0].upgrade.strategy"]
    for strategy in STRATEGIES:
        assert f'"{strategy}"' in error.message


async def test_the_new_upstream_cannot_be_deleted_while_its_upgrade_names_it(engine: Engine) -> None:
    old, new = await upstreams(engine)
    draft = (await engine.create("app", "down", task=clone_of(old))).name
    await put(engine, draft, lambda body: body["spec"]["tasks"].append(upgrade(old, new, draft)))
    await engine.move(old, "DeletionProposed")
    await engine.move(new, "DeletionProposed")

    with pytest.raises(Forbidden, match=f"it is referenced as upstream by: {draft}"):
        await engine.delete(new)
    await engine.delete(old)

    assert engine.entry(new) is not None
    assert engine.entry(old) is None


async def test_upstreams_may_be_packages_of_any_repository(engine: Engine, tmp_path: Path) -> None:
    blueprints = blueprints_remote(tmp_path / "blueprints.git")
    source = {"repo": blueprints.as_uri(), "directory": "/basens/", "ref": "v1"}
    clone = {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": source}}}
    local = await publish(engine, (await engine.create("ns", "down", task=clone)).name)
    commit = refs(blueprints)["refs/tags/basens/v2"]
    target = {"repo": blueprints.as_uri(), "directory": "basens", "ref": commit}

    name = (await engine.create("ns", "down", "v2", upgrade(source, target, local))).name

    assert "resourcequota.yaml" in await texts(engine, name)
    lock = engine.body(name)["status"]["upstreamLock"]["git"]
    assert lock == {"repo": blueprints.as_uri(), "directory": "basens", "ref": commit, "commit": commit}


async def test_a_clone_that_names_no_ref_is_of_branch_main_and_its_lock_says_so(engine: Engine, tmp_path: Path) -> None:
    blueprints = blueprints_remote(tmp_path / "blueprints.git")
    source = {"repo": blueprints.as_uri(), "directory": "basens"}
    clone = {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": source}}}

    name = (await engine.create("ns", "down", task=clone)).name

    lock = engine.body(name)["status"]["upstreamLock"]["git"]
    assert (lock["ref"], lock["commit"]) == ("main", refs(blueprints)["refs/heads/main"])


async def test_a_commit_that_no_ref_is_at_can_be_cloned(engine: Engine, tmp_path: Path) -> None:
    remote = new_remote(tmp_path / "any.git")
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"
    commit = commit_files(remote, {"p/Kptfile": kptfile, "p/a.txt": "old\n"}, "old")
    commit_files(remote, {"p/a.txt": "new\n"}, "new")
    source = {"repo": remote.as_uri(), "directory": "p", "ref": commit}

    name = (await engine.create("p", "down", task={"type": "clone", "clone": {"upstreamRef": {"git": source}}})).name

    assert (await texts(engine, name))["a.txt"] == "old\n"
    assert engine.body(name)["status"]["upstreamLock"]["git"]["commit"] == commit


async def test_packages_that_a_remote_has_not_are_named(engine: Engine, tmp_path: Path) -> None:
    blueprints = blueprints_remote(tmp_path / "blueprints.git").as_uri()
    long = "x" * 1_000_000
    for git_form, why in (
        (
            {"repo": blueprints, "directory": "basens", "ref": "v99"},
            "cannot find package basens@v99:: cannot find git reference (tried [basens/v99 v99])",
        ),
        (
            {"repo": blueprints, "directory": "nothing", "ref": "main"},
            "cannot find package nothing@main:: cannot find package nothing@main",
        ),
        ({"repo": blueprints, "directory": "../..", "ref": "main"}, "cannot find package ../..@main"),
        ({"repo": blueprints, "directory": "basens", "ref": "f" * 40}, f"no branch or tag is at commit {'f' * 40}"),
        ({"repo": (tmp_path / "no.git").as_uri(), "directory": "a", "ref": "main"}, "cannot clone Git repository: "),
        ({"repo": "ext::sh -c true", "directory": "a", "ref": "main"}, "cannot clone Git repository: "),
        ({"repo": blueprints, "directory": long, "ref": long}, "cannot find package xxx"),
        ({"repo": blueprints, "directory": "basens", "ref": "--upload-pack=x"}, "cannot find package basens@--upload"),
    ):
        error = await refusal_of(engine, {"type": "clone", "clone": {"upstreamRef": {"git": git_form}}})

        assert error.message.startswith(f"Internal error occurred: {why}")
        assert len(error.message) < 2000


async def test_the_server_reads_the_locks_that_it_writes(engine: Engine, tmp_path: Path) -> None:
    """Addresses in locks end in .git, whatever the repository is called."""
    plain = new_remote(tmp_path / "plain")
    await engine.register("plain", plain)
    old = await publish(engine, (await engine.create("blue", "plain")).name)
    local = await publish(engine, (await engine.create("app", "down", task=clone_of(old))).name)
    edit = {"type": "edit", "edit": {"sourceRef": {"name": old}}}
    new = await publish(engine, (await engine.create("blue", "plain", "v2", edit)).name)
    lock = engine.body(local)["status"]["upstreamLock"]["git"]
    assert lock["repo"] == plain.as_uri() + ".git"
    locator = {"repo": lock["repo"], "directory": lock["directory"], "ref": lock["commit"]}

    name = (await engine.create("app", "down", "v2", upgrade(locator, new, local))).name

    assert engine.body(name)["status"]["upstreamLock"]["git"]["ref"] == "blue/v2"
    error = await refusal_of(engine, upgrade({**locator, "repo": (tmp_path / "none.git").as_uri()}, new, local))
    assert "none.git" in error.message

"""PackagePipelinePassed: what a render says, what Git says, and nobody else. Source: seed 002 part 2.1, ``decisions.md`` 14."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, Engine, Json, eventually, git, new_remote, running_engine

from apiserver.engine.recording import REVISIONS
from apiserver.engine.revision_events import RENDER_FAILED
from apiserver.rules.lifecycle import Door
from krm.meta.errors import Invalid, StatusError

GATE = "PackagePipelinePassed"
PASSED = {
    "type": GATE,
    "status": "True",
    "reason": "PipelinePassed",
    "message": "package pipeline completed successfully",
}
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
LABELS = f"{KPTFILE}pipeline:\n  mutators:\n  - image: set-labels:v0.2.0\n    configMap:\n      tier: web\n"
MISSING = f"{KPTFILE}pipeline:\n  mutators:\n  - image: example.com/no-such-function:v1\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
KEEP = {"porch.kpt.dev/push-on-render-failure": "true"}


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    async with running_engine(folder(tmp_path, "first")) as running:
        await running.register("repo", remote)
        yield running


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


def head(remote: Path, branch: str) -> str:
    """Return where a branch of the remote is, "" where it is not yet."""
    return str(git(remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}"))


def gates(body: Json) -> list[str]:
    return [gate["conditionType"] for gate in body["spec"]["readinessGates"]]


def condition(body: Json, name: str = GATE) -> Json:
    (found,) = [each for each in body["status"]["conditions"] if each["type"] == name]
    return dict(found)


def push_branch(remote: Path, ref: str, package: str, **files: str) -> str:
    """Commit a package to a branch of the remote, as somebody with plain git does."""
    blobs = {}
    for name, text in files.items():
        path = remote / "blob"
        path.write_text(text)
        blobs[name.replace("_", ".")] = git(remote, "hash-object", "-w", str(path))
    git(remote, "read-tree", "--empty")
    for name, blob in blobs.items():
        git(remote, "update-index", "--add", "--cacheinfo", f"100644,{blob},{package}/{name}")
    tree = git(remote, "write-tree")
    commit = git(remote, "commit-tree", tree, "-p", "main", "-m", "by hand")
    git(remote, "update-ref", f"refs/heads/{ref}", commit)
    return commit


async def annotate(engine: Engine, name: str, annotations: dict[str, str]) -> None:
    def change(body: Json) -> Json:
        body["metadata"]["annotations"] = annotations
        return body

    await engine.service.update(NAMESPACE, name, change, "alice", Door.MAIN, dry_run=False)


async def set_conditions(engine: Engine, name: str, *conditions: Json, own_gates: Any = None) -> Json:
    def change(body: Json) -> Json:
        body["status"]["conditions"] = list(conditions)
        if own_gates is not None:
            body["spec"]["readinessGates"] = [{"conditionType": gate} for gate in own_gates]
        return body

    await engine.service.update(NAMESPACE, name, change, "alice", Door.MAIN, dry_run=False)
    return engine.body(name)


async def test_every_revision_has_the_gate_first_and_no_kptfile_has_it(engine: Engine) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    await engine.approve(name)

    for shown in (name, "repo.app.main"):
        body = engine.body(shown)
        assert gates(body) == [GATE]
        assert body["status"]["conditions"][0] == PASSED
        assert GATE not in (await engine.contents(shown))["Kptfile"].data.decode()


async def test_what_clients_say_of_the_servers_conditions_is_ignored(engine: Engine) -> None:
    name = (await engine.create("app")).name
    before = engine.body(name)
    forged = {"type": GATE, "status": "False", "reason": "Forged", "message": "no"}

    after = await set_conditions(engine, name, forged, {"type": "Rendered", "status": "False"}, own_gates=[])

    assert after == before


async def test_a_kptfile_cannot_forge_the_gate_open(engine: Engine) -> None:
    name = (await engine.create("app")).name
    await annotate(engine, name, KEEP)
    forged = f"{MISSING}status:\n  conditions:\n  - type: {GATE}\n    status: 'True'\n  - type: Rendered\n    status: 'True'\n"

    with pytest.raises(Invalid, match="Package pushed to remote despite render failure"):
        await engine.save(name, Kptfile=forged)

    assert condition(engine.body(name))["reason"] == "PipelineFailed"
    with pytest.raises(Invalid, match=f"readiness gate '{GATE}' is not met"):
        await engine.move(name, "Proposed")


async def test_a_failed_render_keeps_nothing_unless_asked_to(engine: Engine) -> None:
    name = (await engine.create("app")).name
    before = engine.body(name)

    with pytest.raises(Invalid, match="Package NOT pushed to remote") as refused:
        await engine.save(name, Kptfile=MISSING)

    assert engine.body(name) == before
    assert [cause.reason for cause in refused.value.causes] == ["FieldValueInvalid", "FunctionFailed"]
    assert "no-such-function" in refused.value.causes[1].message


async def test_a_failure_that_is_kept_closes_the_gate_until_a_save_that_renders(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await annotate(engine, name, KEEP)

    with pytest.raises(Invalid, match="Package pushed to remote despite render failure"):
        await engine.save(name, Kptfile=MISSING, settings_yaml=CONFIG_MAP)

    body = engine.body(name)
    assert condition(body)["reason"] == "PipelineFailed"
    assert condition(body)["message"] == condition(body, "Rendered")["message"].strip()
    assert (await engine.contents(name))["settings.yaml"].data.decode() == CONFIG_MAP
    assert RENDER_FAILED in [reason for _, reason, *_ in engine.events.reported]
    commit = body["status"]["selfLock"]["git"]["commit"]
    await eventually(lambda: head(remote, "drafts/app/v1") == commit)
    with pytest.raises(Invalid, match="fix the package or its pipeline and save it again"):
        await engine.move(name, "Proposed")

    await engine.save(name, Kptfile=LABELS)

    assert condition(engine.body(name)) == PASSED
    assert b"tier: web" in (await engine.contents(name))["settings.yaml"].data
    await engine.move(name, "Proposed")


async def test_changes_of_lifecycle_gates_conditions_and_metadata_do_not_render(engine: Engine) -> None:
    """R2."""
    name = (await engine.create("app")).name
    await engine.save(name, Kptfile=LABELS)
    files = await engine.contents(name)
    rendered = condition(engine.body(name), "Rendered")

    await annotate(engine, name, {"note": "x"})
    await set_conditions(engine, name, {"type": "a.Done", "status": "True"}, own_gates=["a.Done"])
    await engine.move(name, "Proposed")
    await engine.move(name, "Draft")

    body = engine.body(name)
    assert condition(body) == PASSED
    assert gates(body) == [GATE, "a.Done"]
    assert [each["type"] for each in body["status"]["conditions"]] == [GATE, "Rendered", "a.Done"]
    assert condition(body, "Rendered") == rendered
    assert {path: file for path, file in files.items() if path != "Kptfile"} == {
        path: file for path, file in (await engine.contents(name)).items() if path != "Kptfile"
    }


async def test_a_rebuild_from_git_gives_the_same_gates_and_conditions(
    engine: Engine, remote: Path, tmp_path: Path
) -> None:
    good, kept, published = [(await engine.create(name)).name for name in ("good", "kept", "published")]
    await set_conditions(engine, good, {"type": "a.Done", "status": "False", "message": "no"}, own_gates=["a.Done"])
    await annotate(engine, kept, KEEP)
    with pytest.raises(Invalid):
        await engine.save(kept, Kptfile=MISSING.replace("app", "kept"))
    await engine.move(published, "Proposed")
    await engine.approve(published)
    names = [good, kept, published, "repo.published.main"]
    commits = [engine.body(name)["status"]["selfLock"]["git"]["commit"] for name in (good, kept)]
    await eventually(lambda: [head(remote, f"drafts/{name}/v1") for name in ("good", "kept")] == commits)

    async with running_engine(folder(tmp_path, "second")) as rebuilt:
        await rebuilt.register("repo", remote)

        for name in names:
            before, after = engine.body(name), rebuilt.body(name)
            assert after["spec"] == before["spec"]
            assert after["status"]["conditions"] == before["status"]["conditions"]


@pytest.mark.parametrize("lifecycle", ["drafts", "proposed"])
async def test_an_import_that_renders_to_itself_passes_without_a_commit(
    engine: Engine, remote: Path, lifecycle: str
) -> None:
    commit = push_branch(remote, f"{lifecycle}/app/v1", "app", Kptfile=KPTFILE, settings_yaml=CONFIG_MAP)

    await engine.sync()
    await eventually(lambda: condition(engine.body("repo.app.v1")) == PASSED)

    body = engine.body("repo.app.v1")
    assert body["status"]["conditions"] == [PASSED]
    assert body["status"]["selfLock"]["git"]["commit"] == commit
    await asyncio.sleep(0.3)
    assert head(remote, f"{lifecycle}/app/v1") == commit


async def test_an_imported_draft_whose_render_changes_files_is_saved_rendered(engine: Engine, remote: Path) -> None:
    commit = push_branch(remote, "drafts/app/v1", "app", Kptfile=LABELS, settings_yaml=CONFIG_MAP)

    await engine.sync()
    await eventually(lambda: condition(engine.body("repo.app.v1")) == PASSED)

    assert b"tier: web" in (await engine.contents("repo.app.v1"))["settings.yaml"].data
    mine = engine.body("repo.app.v1")["status"]["selfLock"]["git"]["commit"]
    assert mine != commit
    await eventually(lambda: head(remote, "drafts/app/v1") == mine)
    assert git(remote, "rev-parse", "drafts/app/v1^") == commit


async def test_an_imported_proposal_keeps_the_files_that_its_reviewers_saw(engine: Engine, remote: Path) -> None:
    commit = push_branch(remote, "proposed/app/v1", "app", Kptfile=LABELS, settings_yaml=CONFIG_MAP)

    await engine.sync()
    await eventually(lambda: condition(engine.body("repo.app.v1")) == PASSED)

    assert engine.body("repo.app.v1")["status"]["selfLock"]["git"]["commit"] == commit


async def test_an_import_that_cannot_be_rendered_is_held(engine: Engine, remote: Path) -> None:
    commit = push_branch(remote, "drafts/app/v1", "app", Kptfile=MISSING)

    await engine.sync()
    await eventually(lambda: condition(engine.body("repo.app.v1"))["reason"] == "PipelineFailed")

    body = engine.body("repo.app.v1")
    assert "no-such-function" in condition(body)["message"]
    assert body["status"]["selfLock"]["git"]["commit"] == commit
    with pytest.raises(Invalid, match="no-such-function"):
        await engine.move("repo.app.v1", "Proposed")


async def test_a_broken_kptfile_in_git_holds_the_draft_and_says_why(engine: Engine, remote: Path) -> None:
    push_branch(remote, "drafts/app/v1", "app", Kptfile=f"{KPTFILE}nonsense: true\n")

    await engine.sync()

    found = condition(engine.body("repo.app.v1"))
    assert (found["status"], found["reason"]) == ("False", "PipelineFailed")
    assert "field nonsense not found" in found["message"]


async def test_an_import_waits_through_a_restart(tmp_path: Path, remote: Path) -> None:
    """What waits is in the log; the claim of another write keeps the server from rendering before it stops."""
    data = folder(tmp_path, "data")
    push_branch(remote, "drafts/app/v1", "app", Kptfile=KPTFILE)
    async with running_engine(data) as engine:
        async with engine.claims.claim(REVISIONS, NAMESPACE, "repo.app.v1"):
            await engine.register("repo", remote)
            await asyncio.sleep(0.3)
        assert condition(engine.body("repo.app.v1"))["reason"] == "WaitingOnPipeline"

    async with running_engine(data) as engine:
        await eventually(lambda: condition(engine.body("repo.app.v1")) == PASSED)


async def test_a_render_leaves_one_condition_of_its_own_whatever_was_there(engine: Engine) -> None:
    name = (await engine.create("app")).name
    twice = "status:\n  conditions:\n" + "".join(
        f"  - type: Rendered\n    status: '{status}'\n    reason: Render{reason}\n"
        for status, reason in (("True", "Success"), ("False", "Failed"))
    )

    await engine.save(name, Kptfile=KPTFILE + twice)

    assert condition(engine.body(name), "Rendered") == {"type": "Rendered", "status": "True", "reason": "RenderSuccess"}
    assert condition(engine.body(name)) == PASSED


async def test_a_kptfile_that_git_would_not_be_read_with_is_refused(engine: Engine) -> None:
    name = (await engine.create("app")).name
    before = engine.entry(name)

    with pytest.raises(Invalid, match=r"the Kptfile has 10[0-9]+ bytes, more than 1048576"):
        await engine.save(name, Kptfile=f"{KPTFILE}# {'x' * (1 << 20)}\n")

    assert engine.entry(name) is before


async def test_conditions_cannot_grow_a_kptfile_beyond_what_git_is_read_with(engine: Engine) -> None:
    name = (await engine.create("app")).name
    before = engine.entry(name)
    many = [{"type": f"c{n}", "status": "True", "message": "x" * 32_000} for n in range(40)]

    with pytest.raises(Invalid, match="more than 1048576"):
        await set_conditions(engine, name, *many)

    assert engine.entry(name) is before


async def test_who_changes_the_conditions_of_a_proposal_is_told_that_it_was_ignored(engine: Engine) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    before = engine.body(name)
    said: list[str] = []

    def change(body: Json) -> Json:
        body["status"]["conditions"] = [{"type": "a.Done", "status": "True"}]
        return body

    def same(body: Json) -> Json:
        return body

    for wanted in (change, same):
        await engine.service.update(NAMESPACE, name, wanted, "alice", Door.MAIN, dry_run=False, warn=said.append)

    assert engine.body(name) == before
    assert len(said) == 1
    assert "with lifecycle Proposed cannot be changed" in said[0]


async def test_with_save_on_failure_what_was_reached_is_kept(engine: Engine) -> None:
    """Upstream's scenario 28: the first function's labels are kept, and the annotation that asks for it."""
    name = (await engine.create("app")).name
    await annotate(engine, name, KEEP)
    saving = LABELS.replace(
        "  name: app\n", "  name: app\n  annotations:\n    kpt.dev/save-on-render-failure: 'true'\n"
    )
    kptfile = f"{saving}  - image: set-namespace:v0.4.1\n"

    with pytest.raises(Invalid, match="Package pushed to remote despite render failure"):
        await engine.save(name, Kptfile=kptfile, settings_yaml=CONFIG_MAP)

    files = await engine.contents(name)
    assert b"tier: web" in files["settings.yaml"].data
    assert b"kpt.dev/save-on-render-failure: 'true'" in files["Kptfile"].data
    assert condition(engine.body(name))["reason"] == "PipelineFailed"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param("", "PipelinePassed", id="nothing-is-said"),
        pytest.param("status: 'True'", "PipelinePassed", id="passed"),
        pytest.param("status: 'False'\n    message: no such function", "PipelineFailed", id="failed"),
    ],
)
async def test_a_published_revision_in_git_has_passed_unless_it_says_otherwise(
    engine: Engine, remote: Path, said: str, reason: str
) -> None:
    status = f"status:\n  conditions:\n  - type: Rendered\n    {said}\n" if said else ""
    commit = push_branch(remote, "main", "app", Kptfile=KPTFILE + status)
    git(remote, "tag", "app/v1", commit)

    await engine.sync()

    for name in ("repo.app.v1", "repo.app.main"):
        body = engine.body(name)
        assert gates(body) == [GATE]
        assert condition(body)["reason"] == reason


async def test_a_foreign_edit_of_a_draft_closes_the_gate_until_it_is_rendered(engine: Engine, remote: Path) -> None:
    """What the server knew was of another commit."""
    name = (await engine.create("app")).name
    await eventually(lambda: head(remote, "drafts/app/v1"))
    push_branch(remote, "drafts/app/v1", "app", Kptfile=MISSING)

    await engine.sync()

    assert condition(engine.body(name))["status"] == "False"
    await eventually(lambda: condition(engine.body(name))["reason"] == "PipelineFailed")


STARLARK = """
  mutators:
  - image: starlark:v0.4.3
    configPath: fn.yaml
"""
TESTED = """apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: tested
  annotations:
    config.kubernetes.io/local-config: "true"
source: |
  def run(items):
    for item in items:
      if item["kind"] == "Kptfile":
        status = item.setdefault("status", {})
        status["conditions"] = [
          {"type": "acme.com/Tested", "status": "True", "reason": "Passed", "message": "by a function"},
          {"type": "PackagePipelinePassed", "status": "False", "message": "by a function"},
        ]
  run(ctx.resource_list["items"])
"""


async def test_a_function_opens_a_gate_by_a_condition_in_the_kptfile_and_not_the_servers(engine: Engine) -> None:
    name = (await engine.create("app")).name
    kptfile = f"{KPTFILE}info:\n  readinessGates:\n  - conditionType: acme.com/Tested\npipeline:{STARLARK}"

    await engine.save(name, Kptfile=kptfile, fn_yaml=TESTED)

    body = engine.body(name)
    assert gates(body) == [GATE, "acme.com/Tested"]
    assert condition(body, "acme.com/Tested")["message"] == "by a function"
    assert condition(body) == PASSED
    await engine.move(name, "Proposed")


async def test_a_failure_that_cannot_be_pushed_is_not_said_to_be(tmp_path: Path, remote: Path) -> None:
    """With ``--push-drafts=sync`` the remote has it before the answer says so."""
    async with running_engine(folder(tmp_path, "data"), push_drafts="sync") as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await annotate(engine, name, KEEP)
        before = engine.entry(name)
        away = shutil.move(remote, remote.with_name("away.git"))

        with pytest.raises(StatusError) as refused:
            await engine.save(name, Kptfile=MISSING)

        assert refused.value.code in {500, 503}
        assert "failed to persist resources after render failure: " in refused.value.message
        assert engine.entry(name) is before
        shutil.move(away, remote)
        with pytest.raises(Invalid, match="Package pushed to remote despite render failure"):
            await engine.save(name, Kptfile=MISSING)
        assert head(remote, "drafts/app/v1") == engine.body(name)["status"]["selfLock"]["git"]["commit"]


async def test_a_proposal_pushed_to_git_past_its_gates_is_not_approved(engine: Engine, remote: Path) -> None:
    kptfile = f"{KPTFILE}info:\n  readinessGates:\n  - conditionType: acme.com/Tested\n"
    push_branch(remote, "proposed/app/v1", "app", Kptfile=kptfile)
    await engine.sync()
    await eventually(lambda: condition(engine.body("repo.app.v1")) == PASSED)

    with pytest.raises(Invalid, match=r"readiness gate 'acme\.com/Tested' is not met"):
        await engine.approve("repo.app.v1")

    assert git(remote, "tag") == ""

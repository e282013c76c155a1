"""The use cases of package revisions against a real remote: what is in Git, what is in the log, and when."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, Engine, Json, eventually, git, new_remote, running_engine
from structlog.testing import capture_logs

from apiserver.engine import draft_pushing
from apiserver.engine.draft_pushing import DraftPusher
from apiserver.engine.drafts import DraftJob
from apiserver.engine.publish import PublishJob
from apiserver.engine.push_jobs import RefView
from apiserver.engine.repositories import RESOURCE, Held
from apiserver.rules.lifecycle import Door
from krm.meta.errors import AlreadyExists, Conflict, Forbidden, InternalError, Invalid, NotFound, ServiceUnavailable
from storage.bodies import decode, encode_body
from storage.git.errors import RefMoved, RemoteUnavailable
from storage.interfaces import Mutation, ObjectKey, Op

KPTFILE_WITH_GATE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: gated
info:
  readinessGates:
  - conditionType: tests.Passed
"""


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    async with running_engine(tmp_path) as running:
        await running.register("repo", remote)
        yield running


def refs(remote: Path) -> dict[str, str]:
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


async def test_a_saved_draft_reaches_its_branch_and_keeps_its_version(engine: Engine, remote: Path) -> None:
    """The pusher tells the remote, not the object: its resourceVersion stays (decisions 8)."""
    created = await engine.create("app")

    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))

    entry = engine.entry(created.name)
    assert entry is not None
    assert entry.rv == created.rv
    assert engine.body(created.name)["status"]["selfLock"]["git"]["commit"] == refs(remote)["refs/heads/drafts/app/v1"]
    assert git(remote, "log", "-1", "--format=%an|%cn", "drafts/app/v1") == "alice|Package Orchestration Service"


async def test_approval_is_in_the_remote_before_it_is_answered(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")

    published = await engine.approve(name)

    assert published.rv > 0
    now = refs(remote)
    assert now["refs/tags/app/v1"] == now["refs/heads/main"]
    assert not [ref for ref in now if "drafts" in ref or "proposed" in ref]
    assert "app/Kptfile" in git(remote, "ls-tree", "-r", "--name-only", "main").splitlines()
    body = engine.body(name)
    assert (body["spec"]["lifecycle"], body["spec"]["revision"]) == ("Published", 1)
    assert body["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}
    assert body["status"]["publishedBy"] == "alice"
    placeholder = engine.body("repo.app.main")
    assert placeholder["spec"]["revision"] == -1
    assert "labels" not in placeholder["metadata"]


async def test_approvals_that_wait_together_share_pushes(engine: Engine, remote: Path) -> None:
    names = [(await engine.create(f"app{n}")).name for n in range(12)]
    for name in names:
        await engine.move(name, "Proposed")
    git(remote, "config", "core.logAllRefUpdates", "true")

    await asyncio.gather(*(engine.approve(name) for name in names))

    assert {engine.body(name)["spec"]["revision"] for name in names} == {1}
    pushes = git(remote, "reflog", "show", "main", "--format=%H").splitlines()
    assert len(pushes) <= 4
    git(remote, "fsck", "--strict")


async def test_revision_numbers_follow_each_other_and_the_label_moves(engine: Engine) -> None:
    first = (await engine.create("app")).name
    await engine.move(first, "Proposed")
    await engine.approve(first)
    task = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
    second = (await engine.create("app", workspace="v2", task=task)).name
    await engine.move(second, "Proposed")
    await engine.approve(second)

    assert engine.body(second)["spec"]["revision"] == 2
    assert "labels" not in engine.body(first)["metadata"]
    assert engine.body(second)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}

    await engine.move(second, "DeletionProposed")
    await engine.delete(second)

    assert engine.body(first)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}


async def test_two_approvals_of_one_package_in_one_push_get_two_numbers(engine: Engine) -> None:
    first = (await engine.create("app")).name
    await engine.move(first, "Proposed")
    await engine.approve(first)
    names = []
    for workspace in ("a", "b"):
        task = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
        names.append((await engine.create("app", workspace=workspace, task=task)).name)
        await engine.move(names[-1], "Proposed")

    await asyncio.gather(*(engine.approve(name) for name in names))

    assert sorted(engine.body(name)["spec"]["revision"] for name in names) == [2, 3]
    labelled = [name for name in names if engine.body(name)["metadata"].get("labels")]
    assert [engine.body(name)["spec"]["revision"] for name in labelled] == [3]


async def test_a_gate_holds_the_proposal_until_its_condition_is_true(engine: Engine) -> None:
    name = (await engine.create("gated")).name
    await engine.save(name, Kptfile=KPTFILE_WITH_GATE)
    before = engine.entry(name)

    with pytest.raises(Invalid, match=r"readiness gate 'tests.Passed' is not met"):
        await engine.move(name, "Proposed")

    assert engine.entry(name) is before

    def meet(body: Json) -> Json:
        body["status"]["conditions"] = [{"type": "tests.Passed", "status": "True"}]
        return body

    await engine.service.update(
        NAMESPACE,
        name,
        meet,
        "alice",
        Door.MAIN,
        dry_run=False,
    )
    await engine.move(name, "Proposed")
    assert b"tests.Passed" in (await engine.contents(name))["Kptfile"].data


async def test_what_somebody_else_pushes_shows_after_a_sync(engine: Engine, remote: Path, tmp_path: Path) -> None:
    name = (await engine.create("app")).name
    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(remote), str(work))
    git(work, "checkout", "-q", "drafts/app/v1")
    (work / "app" / "new.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: new\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "by hand")
    git(work, "push", "-q", "origin", "drafts/app/v1")

    await engine.sync()

    assert "new.yaml" in await engine.contents(name)
    assert engine.body(name)["status"]["selfLock"]["git"]["commit"] == refs(remote)["refs/heads/drafts/app/v1"]


async def test_a_draft_whose_branch_somebody_deleted_goes(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
    await eventually(lambda: not engine.claims.held(NAMESPACE, name))
    await engine.sync()
    git(remote, "update-ref", "-d", "refs/heads/drafts/app/v1")

    await engine.sync()

    assert engine.entry(name) is None


async def test_an_edit_that_meets_a_foreign_commit_keeps_both_histories(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        git(
            remote,
            "branch",
            "-f",
            "drafts/app/v1",
            git(remote, "commit-tree", "drafts/app/v1^{tree}", "-p", "drafts/app/v1", "-m", "foreign"),
        )
        foreign = refs(remote)["refs/heads/drafts/app/v1"]

        await engine.save(name, note_txt="ours\n")

        await eventually(lambda: refs(remote)["refs/heads/drafts/app/v1"] != foreign)
        head = refs(remote)["refs/heads/drafts/app/v1"]
        assert git(remote, "merge-base", "--is-ancestor", foreign, head) == ""
        assert git(remote, "show", f"{head}:app/note.txt") == "ours"
        await eventually(lambda: engine.body(name)["status"]["selfLock"]["git"]["commit"] == head)


async def test_an_approval_onto_a_moved_branch_is_made_again(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    moved = git(remote, "commit-tree", "main^{tree}", "-p", "main", "-m", "somebody else")
    git(remote, "update-ref", "refs/heads/main", moved)

    await engine.approve(name)

    assert git(remote, "merge-base", "--is-ancestor", moved, "main") == ""
    assert engine.body(name)["spec"]["revision"] == 1


async def test_after_a_crash_between_push_and_record_the_approval_is_found(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remote has the tag, the log still says Proposed: the next start makes them agree."""
    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")

        async def die(*_arguments: object, **_named: object) -> None:
            raise asyncio.CancelledError

        monkeypatch.setattr(engine.service._recorder, "published", die)
        approval = asyncio.create_task(engine.approve(name))
        await eventually(lambda: "refs/tags/app/v1" in refs(remote))
        approval.cancel()
        held.tasks[0].cancel()
        assert engine.body(name)["spec"]["lifecycle"] == "Proposed"

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)

        body = engine.body(name)
        assert (body["spec"]["lifecycle"], body["spec"]["revision"]) == ("Published", 1)
        assert body["spec"]["tasks"][0]["type"] == "init"
        assert await engine.store.outbox.parcels("ns/repo") == []


async def test_a_draft_that_was_never_pushed_survives_a_restart_and_is_pushed(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path, push_delay=3600) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.save(name, note_txt="kept\n")
    assert "refs/heads/drafts/app/v1" not in refs(remote)

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        assert (await engine.contents(name))["note.txt"].data == b"kept\n"
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        assert git(remote, "show", "drafts/app/v1:app/note.txt") == "kept"


async def test_a_remote_that_is_made_anew_loses_old_drafts_and_takes_new_ones(tmp_path: Path, remote: Path) -> None:
    """Upstream keeps its old drafts then; ours go, except what was never pushed."""
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        old = (await engine.create("old")).name
        await eventually(lambda: "refs/heads/drafts/old/v1" in refs(remote))
        await engine.sync()

    async with running_engine(tmp_path, push_delay=2) as engine:
        await engine.register("repo", remote)
        fresh = (await engine.create("fresh")).name
        git(remote, "update-ref", "-d", "refs/heads/drafts/old/v1")
        anew = git(remote, "commit-tree", git(remote, "write-tree"), "-m", "anew")
        git(remote, "update-ref", "refs/heads/main", anew)
        git(remote, "reflog", "expire", "--expire=now", "--all")
        git(remote, "gc", "-q", "--prune=now")

        await engine.sync()

        assert engine.entry(old) is None
        assert engine.entry(fresh) is not None
        await eventually(lambda: "refs/heads/drafts/fresh/v1" in refs(remote))
        assert git(remote, "merge-base", "--is-ancestor", anew, "drafts/fresh/v1") == ""
        assert "README.md" in await engine.contents(fresh)


async def test_pushing_synchronously_refuses_what_the_remote_refuses(tmp_path: Path, remote: Path) -> None:
    hook = remote / "hooks" / "update"
    async with running_engine(tmp_path, push_drafts="sync") as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        assert refs(remote)["refs/heads/drafts/app/v1"] == engine.body(name)["status"]["selfLock"]["git"]["commit"]
        before = engine.entry(name)
        hook.write_text("#!/bin/sh\necho no more >&2\nexit 1\n")
        hook.chmod(0o755)

        with pytest.raises(Forbidden, match="refused the push"):
            await engine.save(name, note_txt="never\n")

        assert engine.entry(name) is before


async def test_a_protected_branch_refuses_one_approval_and_keeps_the_proposal(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    hook = remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" = refs/heads/main ] && { echo protected >&2; exit 1; }\nexit 0\n')
    hook.chmod(0o755)

    with pytest.raises(Forbidden, match="refused the push"):
        await engine.approve(name)

    assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
    assert "refs/tags/app/v1" not in refs(remote)
    hook.unlink()
    await engine.approve(name)
    assert "refs/tags/app/v1" in refs(remote)


async def test_drafts_that_are_never_pushed_can_still_be_published(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path, push_drafts="never") as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")
        await asyncio.sleep(0.3)
        assert [ref for ref in refs(remote) if "app" in ref] == []

        await engine.approve(name)

        assert "refs/tags/app/v1" in refs(remote)
        git(remote, "fsck", "--strict")


async def test_deleting_goes_through_deletion_proposed_and_reaches_git(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    await engine.approve(name)

    with pytest.raises(Forbidden, match="must be proposed for deletion"):
        await engine.delete(name)
    await engine.move(name, "DeletionProposed")
    await eventually(lambda: "refs/heads/deletionProposed/app/v1" in refs(remote))
    await engine.delete(name)

    assert not [ref for ref in refs(remote) if ref.endswith("app/v1")]
    assert engine.entry(name) is None
    assert engine.entry("repo.app.main") is not None

    await engine.move("repo.app.main", "DeletionProposed")
    await engine.delete("repo.app.main")

    assert "app/Kptfile" not in git(remote, "ls-tree", "-r", "--name-only", "main")
    assert engine.index.package(NAMESPACE, "repo", "app") is None


async def test_a_deleted_draft_leaves_no_branch_and_its_name_is_free(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))

    await engine.delete(name)

    await eventually(lambda: "refs/heads/drafts/app/v1" not in refs(remote))
    again = await engine.create("app")
    assert again.uid == engine.body(name)["metadata"]["uid"]


async def test_a_revision_that_is_named_as_upstream_cannot_be_deleted(engine: Engine) -> None:
    upstream = (await engine.create("base")).name
    await engine.move(upstream, "Proposed")
    await engine.approve(upstream)
    task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}
    clone = (await engine.create("copy", task=task)).name
    await engine.move(upstream, "DeletionProposed")

    with pytest.raises(Forbidden, match=re.escape(f"referenced as upstream by: {clone}")):
        await engine.delete(upstream)


@pytest.mark.parametrize(
    ("package", "workspace", "task", "error", "sentence"),
    [
        ("app", "v1", None, AlreadyExists, "workspaceNames must be unique"),
        ("app", "v2", None, AlreadyExists, 'package "app" already exists in repository "repo"'),
        ("app/sub", "v1", None, Conflict, "packages cannot be nested"),
        ("other", "v1", {"type": "eval"}, Invalid, 'Unsupported value: "eval"'),
        ("other", "v1", {"type": "clone", "clone": {}}, Invalid, "invalid clone source"),
        (
            "other",
            "v1",
            {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "repo.none.v1"}}}},
            Invalid,
            'failed to fetch package revision "repo.none.v1"',
        ),
        ("app", "v2", {"type": "edit", "edit": {"sourceRef": {"name": "repo.app.v1"}}}, Invalid, "must be published"),
    ],
)
async def test_a_refused_create_changes_nothing(
    engine: Engine, package: str, workspace: str, task: Json | None, error: type[Exception], sentence: str
) -> None:
    await engine.create("app")
    before = engine.store.rv

    with pytest.raises(error) as refused:
        await engine.create(package, workspace=workspace, task=task)

    assert sentence in str(refused.value)
    assert engine.store.rv == before


async def test_an_unknown_repository_is_not_found(engine: Engine) -> None:
    with pytest.raises(NotFound, match=r'repositories\.config\.porch\.kpt\.dev "nowhere" not found'):
        await engine.create("app", repository="nowhere")


async def test_overlapping_writes_of_one_revision_conflict_at_once(engine: Engine) -> None:
    name = (await engine.create("app")).name

    results = await asyncio.gather(
        *(engine.save(name, **{f"f{n}_txt": "x\n"}) for n in range(4)), return_exceptions=True
    )

    refused = [result for result in results if isinstance(result, Conflict)]
    assert refused
    assert len(refused) < 4
    assert all("another request is already in progress" in str(error) for error in refused)


async def test_saving_the_same_files_again_writes_nothing(engine: Engine) -> None:
    name = (await engine.create("app")).name
    saved = await engine.save(name, note_txt="x\n")

    again = await engine.save(name, note_txt="x\n")

    assert again.rv == saved.rv


async def test_removing_a_repository_forgets_its_revisions_and_leaves_git(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    key = ObjectKey(RESOURCE, NAMESPACE, "repo")
    entry = engine.store.get(key)
    assert entry is not None

    await engine.store.write([Mutation(key, Op.DELETE, entry.rv, entry.uid, encode_body(decode(entry)))])

    await eventually(lambda: engine.entry(name) is None)
    assert "refs/heads/drafts/app/v1" in refs(remote)


async def test_objects_that_are_lost_from_the_clone_are_fetched_again(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    await engine.approve(name)
    held = engine.repositories.get(NAMESPACE, "repo")
    objects = held.repository.folder / "objects"
    for part in objects.glob("??"):
        shutil.rmtree(part)

    with pytest.raises(ServiceUnavailable, match="cannot be read"):
        await engine.contents(name)

    await eventually(lambda: not held.repository.damaged)
    assert "Kptfile" in await engine.contents(name)


@pytest.mark.parametrize("failure", ["reported", "unknown"])
async def test_an_approval_that_arrived_although_it_seemed_to_fail_is_answered_with_success(
    engine: Engine, remote: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """A remote may move the refs and report failure, or the connection may break after it took the push."""
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    clone = engine.repositories.get(NAMESPACE, "repo").repository.clone
    push = clone.push
    seen: list[int] = []

    def fail_once(*arguments: Any) -> None:
        known = dict(clone.refs)
        push(*arguments)
        seen.append(1)
        if len(seen) == 1:
            clone._refs.replace(known)
            moved = {"refs/heads/main": refs(remote)["refs/heads/main"]}
            raise RefMoved(moved) if failure == "reported" else RemoteUnavailable("x", "broken", outcome_unknown=True)

    monkeypatch.setattr(clone, "push", fail_once)

    published = await engine.approve(name)

    assert published.name == name
    assert engine.body(name)["spec"]["revision"] == 1
    assert git(remote, "tag") == "app/v1"


async def test_a_turn_that_fails_in_a_way_nobody_thought_of_leaves_nobody_waiting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    repository = engine.repositories.get(NAMESPACE, "repo").repository

    def broken() -> None:
        raise RuntimeError("nobody thought of this")

    with monkeypatch.context() as patch:
        patch.setattr(repository, "take_turn", broken)
        with pytest.raises(InternalError, match="the push did not begin"):
            async with asyncio.timeout(60):
                await engine.approve(name)

    assert (await engine.approve(name)).name == name


async def test_an_edit_made_while_an_older_parcel_waits_to_be_pushed_is_pushed_whole(
    tmp_path: Path, remote: Path
) -> None:
    """The parcel holds the objects of the first save only; the branch must not be moved to the second one with it."""
    async with running_engine(tmp_path, push_delay=3600) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        parcels = await engine.store.outbox.parcels("ns/repo")
        await engine.save(name, note_txt="later\n")
        recorder = engine.service._recorder
        stale = DraftJob(held.repository, engine.store, recorder, engine.claims, parcels[0])

        await held.queue.submit(stale)

        assert stale.postponed
        assert "refs/heads/drafts/app/v1" not in refs(remote)
        fresh = DraftJob(
            held.repository, engine.store, recorder, engine.claims, (await engine.store.outbox.parcels("ns/repo"))[0]
        )
        await held.queue.submit(fresh)
        assert git(remote, "show", "drafts/app/v1:app/note.txt") == "later"


async def test_a_clone_with_a_parent_lies_below_the_parents_package_path(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path) as engine:
        deployment = new_remote(tmp_path / "deployment.git")
        await engine.register("repo", remote)
        await engine.register("deploy", deployment, deployment=True)
        base = (await engine.create("base")).name
        task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": base}}}}
        parent = await engine.create("edge", repository="deploy", task=task)

        child = await engine.create("amf", repository="deploy", task=task, parent={"name": parent.name})

        context = (await engine.contents(child.name))["package-context.yaml"].data
        assert b"package-path: edge/amf" in context
        with pytest.raises(Invalid, match=r'cannot get parent package "deploy\.none\.v1"'):
            await engine.create("smf", repository="deploy", task=task, parent={"name": "deploy.none.v1"})


async def test_a_dry_run_answers_like_the_real_thing_and_changes_nothing(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    await eventually(lambda: "refs/heads/proposed/app/v1" in refs(remote))
    before, known = engine.store.rv, refs(remote)

    def publish(body: Json) -> Json:
        body["spec"]["lifecycle"] = "Published"
        return body

    approved = await engine.service.update(NAMESPACE, name, publish, "alice", Door.APPROVAL, dry_run=True)
    created = await engine.service.create(
        NAMESPACE,
        {"metadata": {}, "spec": {"repository": "repo", "packageName": "b", "workspaceName": "v1"}},
        "alice",
        dry_run=True,
    )
    _, gone = await engine.service.delete(NAMESPACE, name, lambda _entry: None, "alice", dry_run=True)

    assert decode(approved)["spec"]["revision"] == 1
    assert decode(approved)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}
    assert decode(approved)["metadata"]["resourceVersion"] == engine.body(name)["metadata"]["resourceVersion"]
    assert "resourceVersion" not in decode(created)["metadata"]
    assert created.name == "repo.b.v1"
    assert gone
    assert engine.entry("repo.b.v1") is None
    assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
    assert (engine.store.rv, refs(remote)) == (before, known)


async def test_finalizers_hold_a_deleted_draft_until_the_last_one_goes(engine: Engine) -> None:
    name = (await engine.create("app")).name

    def hold(body: Json) -> Json:
        body["metadata"]["finalizers"] = ["example.com/hold"]
        return body

    def release(body: Json) -> Json:
        body["metadata"]["finalizers"] = []
        return body

    def grow(body: Json) -> Json:
        body["metadata"]["finalizers"] = ["example.com/hold", "example.com/more"]
        return body

    await engine.service.update(NAMESPACE, name, hold, "alice", Door.MAIN, dry_run=False)
    await engine.delete(name)
    assert engine.body(name)["metadata"]["deletionTimestamp"]
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        await engine.service.update(NAMESPACE, name, grow, "alice", Door.MAIN, dry_run=False)

    await engine.service.update(NAMESPACE, name, release, "alice", Door.MAIN, dry_run=False)

    assert engine.entry(name) is None


async def test_in_a_terminating_namespace_a_delete_only_unregisters(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    await engine.approve(name)
    namespace: Json = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    key = ObjectKey("namespaces", "", NAMESPACE)
    await engine.store.write([Mutation(key, Op.CREATE, 0, "u", encode_body(namespace))])

    await engine.delete(name)

    assert engine.entry(name) is None
    assert "refs/tags/app/v1" in refs(remote)


async def test_a_sync_that_finds_objects_missing_fetches_everything_again(tmp_path: Path, remote: Path) -> None:
    """A power cut may take objects that the clone's refs need; the refs alone do not show it."""
    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")
        await engine.approve(name)
        folder = held.repository.folder
    for part in (folder / "objects").glob("pack/pack-*"):
        part.unlink()
    (folder / "porch-synced").unlink()

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)

        assert "Kptfile" in await engine.contents(name)
        assert engine.body(name)["spec"]["lifecycle"] == "Published"


async def test_a_database_that_lacks_what_a_clone_was_told_of_is_told(tmp_path: Path, remote: Path) -> None:
    """A server that was stopped while its database lost commits has nothing else that remembers them."""
    async with running_engine(tmp_path) as engine:
        note = (await engine.register("repo", remote)).repository.folder / "porch-synced"
        await eventually(note.exists)
    digest, at, *rest = note.read_text().split()
    note.write_text(" ".join([digest, str(int(at) + 1000), *rest]))

    with capture_logs() as logs:
        async with running_engine(tmp_path) as engine:
            await engine.register("repo", remote)

    (told,) = (one for one in logs if one["log_level"] == "error")
    assert "replaced by an older state" in told["event"]
    assert (told["repository"], told["noted"]) == (f"{NAMESPACE}/repo", int(at) + 1000)


class UnreadableJob:
    """A job whose own content cannot be read."""

    name = package = "broken"

    def plan(self, view: RefView) -> None:
        view.read("0" * 40)

    async def settle(self) -> None:
        raise AssertionError("it was never planned")


async def test_a_job_that_cannot_be_read_does_not_fail_those_that_share_its_push(engine: Engine) -> None:
    name = (await engine.create("app")).name
    await engine.move(name, "Proposed")
    queue = engine.repositories.get(NAMESPACE, "repo").queue

    async with queue._conversation:
        waiting = asyncio.gather(queue.submit(UnreadableJob()), engine.approve(name), return_exceptions=True)
        await eventually(lambda: any(isinstance(one.job, PublishJob) for one in queue._waiting))
    broken, approved = await waiting

    assert isinstance(broken, ServiceUnavailable)
    assert not isinstance(approved, BaseException)
    assert engine.body(name)["spec"]["lifecycle"] == "Published"


async def test_a_draft_that_the_remote_refuses_does_not_hold_up_the_next_one(
    engine: Engine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_pushing, "FIRST_RETRY", 3600.0)
    hook = remote / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" = refs/heads/drafts/bad/v1 ] && exit 1\nexit 0\n')
    hook.chmod(0o755)
    pushes: list[int] = []
    push_parcels = DraftPusher.push_parcels

    async def counted(pusher: DraftPusher, held: Held) -> bool:
        try:
            return await push_parcels(pusher, held)
        finally:
            pushes.append(1)

    monkeypatch.setattr(DraftPusher, "push_parcels", counted)
    held = engine.repositories.get(NAMESPACE, "repo")
    held.tasks[1].cancel()
    held.tasks[1] = asyncio.create_task(engine.repositories._pusher.keep_pushed(held))
    await engine.create("bad")
    await eventually(lambda: pushes)

    await engine.create("good")

    await eventually(lambda: "refs/heads/drafts/good/v1" in refs(remote))
    assert engine.entry("repo.bad.v1") is not None


async def test_pushing_goes_on_after_an_unexpected_error(
    engine: Engine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_pushing, "FIRST_RETRY", 0.05)
    push_parcels = DraftPusher.push_parcels
    failed: list[int] = []

    async def fail_once(pusher: DraftPusher, held: Held) -> bool:
        if not failed:
            failed.append(1)
            raise RuntimeError("nobody thought of this")
        return await push_parcels(pusher, held)

    monkeypatch.setattr(DraftPusher, "push_parcels", fail_once)

    await engine.create("app")

    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
    assert failed

"""What others do to a registered repository with Git, and what they keep there that is no package: told, never in the way."""

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_fixture import NAMESPACE, Engine, Json, eventually, git, new_remote, running_engine

from apiserver.rules.lifecycle import Door
from krm.meta.errors import Invalid

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: theirs\n"
MARK = "porch.kpt.dev/published-commit"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    (tmp_path / "data").mkdir()
    async with running_engine(tmp_path / "data") as running:
        await running.register("repo", remote)
        yield running


def push(remote: Path, ref: str, *files: tuple[str, str, str], onto: str = "") -> str:
    """Commit (mode, path, data) on top of a ref's own history, or of another commit; return the commit."""
    lines = [f"commit {ref}", "committer Them <them@example.com> 1700000000 +0000", "data 6", "theirs"]
    if onto:
        lines.append(f"from {onto}")
    for mode, path, data in files:
        if mode == "160000":
            lines.append(f"M {mode} {data} {path}")
        else:
            lines += [f"M {mode} inline {path}", f"data {len(data.encode())}", data]
    command = ["git", "-C", str(remote), "fast-import", "--quiet", "--force"]
    subprocess.run(command, input="\n".join([*lines, ""]).encode(), check=True, timeout=60)
    return git(remote, "rev-parse", f"{ref}^{{commit}}")


def package(path: str, kptfile: str = KPTFILE) -> tuple[str, str, str]:
    return "100644", f"{path}/Kptfile", kptfile


async def publish(engine: Engine, name: str = "app", workspace: str = "v1") -> str:
    made = (await engine.create(name, workspace=workspace)).name if workspace == "v1" else ""
    if not made:
        task = {"type": "edit", "edit": {"sourceRef": {"name": f"repo.{name}.v1"}}}
        made = (await engine.create(name, workspace=workspace, task=task)).name
    await engine.move(made, "Proposed")
    await engine.approve(made)
    return made


def told(engine: Engine, reason: str) -> list[tuple[str, str]]:
    return [(name, message) for name, why, message, _ in engine.events.reported if why == reason]


async def test_a_published_revision_whose_tag_is_moved_shows_the_new_content_and_the_commit_that_was_published(
    engine: Engine, remote: Path
) -> None:
    name = await publish(engine)
    published = git(remote, "rev-parse", "refs/tags/app/v1")
    moved = push(remote, "refs/tags/app/v1", package("app"), ("100644", "app/new.txt", "x"), onto=published)

    await engine.sync()

    body = engine.body(name)
    assert body["metadata"]["annotations"][MARK] == published
    assert body["status"]["selfLock"]["git"]["commit"] == moved
    assert "new.txt" in await engine.contents(name)
    assert body["spec"]["lifecycle"] == "Published"
    ((who, message),) = told(engine, "TagMoved")
    assert who == name
    assert published in message
    assert moved in message


async def test_the_mark_of_a_moved_tag_goes_when_the_tag_is_moved_back(engine: Engine, remote: Path) -> None:
    name = await publish(engine)
    published = git(remote, "rev-parse", "refs/tags/app/v1")
    for number in range(2):  # the commit that was published is remembered, not the last one before
        push(remote, "refs/tags/app/v1", package("app"), ("100644", f"app/{number}.txt", "x"), onto=published)
        await engine.sync()
        assert engine.body(name)["metadata"]["annotations"][MARK] == published

    git(remote, "update-ref", "refs/tags/app/v1", published)
    await engine.sync()

    assert MARK not in engine.body(name)["metadata"].get("annotations", {})


async def test_the_revision_of_a_deleted_tag_goes_and_the_label_moves_back(engine: Engine, remote: Path) -> None:
    first, second = await publish(engine), await publish(engine, workspace="v2")
    assert engine.body(second)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}

    git(remote, "update-ref", "-d", "refs/tags/app/v2")
    await engine.sync()

    assert engine.entry(second) is None
    assert engine.body(first)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}
    assert told(engine, "DeletedInGit") == [(second, "its tag was deleted in Git by somebody else")]


async def test_a_rewritten_branch_is_followed_and_reported(engine: Engine, remote: Path) -> None:
    await publish(engine)
    await engine.create("drafted")
    old = git(remote, "rev-parse", "refs/heads/main")
    git(remote, "update-ref", "-d", "refs/heads/main")
    new = push(remote, "refs/heads/main", package("theirs"))

    await engine.sync()

    assert engine.entry("repo.app.main") is None
    assert engine.body("repo.theirs.main")["spec"]["revision"] == -1
    ((who, message),) = told(engine, "BranchRewritten")
    assert who == "repo"
    assert old in message
    assert new in message
    await engine.move("repo.drafted.v1", "Proposed")
    assert (await engine.approve("repo.drafted.v1")).name
    assert git(remote, "merge-base", "--is-ancestor", new, "refs/heads/main") == ""


async def test_what_others_push_to_a_draft_or_delete_of_it_is_shown_and_told(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    ref = "refs/heads/drafts/app/v1"
    await eventually(lambda: git(remote, "for-each-ref", ref))
    held = engine.repositories.get(NAMESPACE, "repo")
    await eventually(lambda: held.repository.clone.refs.get(ref))
    before = git(remote, "rev-parse", ref)
    await engine.sync()
    moved = push(remote, ref, package("app"), ("100644", "app/theirs.txt", "x"), onto=before)

    await engine.sync()

    assert "theirs.txt" in await engine.contents(name)
    assert told(engine, "ChangedInGit")[0] == (name, f"changed by a push to Git: {moved}")
    git(remote, "update-ref", "-d", ref)
    await engine.sync()
    assert engine.entry(name) is None
    assert told(engine, "DeletedInGit") == [(name, "its branch was deleted in Git by somebody else")]


async def test_a_tag_outdoes_the_branches_of_its_workspace_and_a_proposal_the_draft(
    engine: Engine, remote: Path
) -> None:
    """However often it is read, whatever comes first."""
    main = git(remote, "rev-parse", "refs/heads/main")
    for ref in ("refs/heads/drafts/app/v1", "refs/heads/drafts/other/v1", "refs/heads/proposed/other/v1"):
        push(remote, ref, package(ref.split("/")[3]), onto=main)
    await engine.sync()
    assert engine.body("repo.app.v1")["spec"]["lifecycle"] == "Draft"
    tagged = push(remote, "refs/tags/app/v1", package("app"), ("100644", "app/new.txt", "x"), onto=main)
    held = engine.repositories.get(NAMESPACE, "repo")

    for number in range(3):
        await engine.sync()
        assert engine.body("repo.app.v1")["status"]["selfLock"]["git"]["commit"] == tagged
        assert engine.body("repo.app.v1")["spec"]["lifecycle"] == "Published"
        assert engine.body("repo.other.v1")["spec"]["lifecycle"] == "Proposed"
        push(remote, "refs/heads/drafts/app/v1", package("app", f"{KPTFILE}# {number}\n"), onto=main)
        push(remote, "refs/heads/drafts/other/v1", package("other", f"{KPTFILE}# {number}\n"), onto=main)
        if number == 1:
            held.synchronizer.compare_everything()

    git(remote, "update-ref", "-d", "refs/heads/proposed/other/v1")
    await engine.sync()
    assert engine.body("repo.other.v1")["spec"]["lifecycle"] == "Draft"


async def test_what_is_no_package_is_left_out_and_reported_and_in_nobodys_way(engine: Engine, remote: Path) -> None:
    main = git(remote, "rev-parse", "refs/heads/main")
    push(remote, "refs/tags/nothing/v1", ("100644", "README.md", "x"), onto=main)
    push(remote, "refs/tags/link/v1", ("120000", "link/Kptfile", "elsewhere"), onto=main)
    push(remote, "refs/tags/folder/v1", ("100644", "folder/Kptfile/inner", "x"), onto=main)
    push(remote, "refs/tags/large/v1", package("large", "x" * (1024 * 1024 + 1)), onto=main)
    push(remote, "refs/heads/drafts/empty/v1", ("100644", "README.md", "x"), onto=main)
    push(remote, "refs/tags/Upper_Case/v1", package("Upper_Case"), onto=main)
    push(remote, "refs/tags/long/" + "w" * 100, package("long"), onto=main)
    git(remote, "update-ref", "refs/tags/blob/v1", git(remote, "hash-object", "-w", "config"))
    good = push(remote, "refs/tags/good/v1", package("good"), onto=main)

    await engine.sync()

    assert [entry.name for entry in engine.index.revisions(NAMESPACE, "repo")] == ["repo.good.v1"]
    assert engine.body("repo.good.v1")["status"]["selfLock"]["git"]["commit"] == good
    reported = {message.split(":")[0] for who, message in told(engine, "LeftOut") if who == "repo"}
    assert reported == {
        "refs/tags/nothing/v1",
        "refs/tags/link/v1",
        "refs/tags/folder/v1",
        "refs/tags/large/v1",
        "refs/heads/drafts/empty/v1",
        "refs/tags/Upper_Case/v1",
        "refs/tags/long/" + "w" * 100,
        "refs/tags/blob/v1",
    }


async def test_refs_that_mean_nothing_to_porch_are_not_even_reported(engine: Engine, remote: Path) -> None:
    main = git(remote, "rev-parse", "refs/heads/main")
    for ref in ("refs/tags/release", "refs/heads/feature/x", "refs/pull/7/head", "refs/notes/commits"):
        git(remote, "update-ref", ref, main)
    (remote / "refs" / "heads" / "drafts").mkdir(parents=True, exist_ok=True)
    (remote / "refs" / "heads" / "drafts" / "-odd").write_text(main + "\n")

    await engine.sync()

    assert list(engine.index.revisions(NAMESPACE, "repo")) == []
    assert told(engine, "LeftOut") == []


async def test_links_submodules_and_annotated_tags_are_no_obstacle(engine: Engine, remote: Path) -> None:
    main = git(remote, "rev-parse", "refs/heads/main")
    files = (package("odd"), ("120000", "odd/link", "../../etc/passwd"), ("160000", "odd/module", "1" * 40))
    commit = push(remote, "refs/heads/scratch", *files, onto=main)
    git(remote, "tag", "-a", "-m", "inner", "inner", commit)
    git(remote, "tag", "-a", "-m", "annotated", "odd/v1", "inner")

    await engine.sync()

    assert engine.body("repo.odd.v1")["status"]["selfLock"]["git"]["commit"] == commit
    assert "Kptfile" in await engine.contents("repo.odd.v1")
    assert told(engine, "LeftOut") == []


@pytest.mark.parametrize(
    "kptfile", ["a: [", "", "kind: Kptfile\n---\nkind: Kptfile\n", "- a list\n", "a: &a [*a]\n", "\x00\x01"]
)
async def test_a_kptfile_that_cannot_be_read_shows_a_revision_without_metadata(
    kptfile: str, engine: Engine, remote: Path
) -> None:
    main = git(remote, "rev-parse", "refs/heads/main")
    push(remote, "refs/tags/odd/v1", package("odd", kptfile), onto=main)
    push(remote, "refs/tags/good/v1", package("good"), onto=main)

    await engine.sync()

    assert {entry.name for entry in engine.index.revisions(NAMESPACE, "repo")} == {"repo.odd.v1", "repo.good.v1"}
    assert engine.body("repo.odd.v1")["spec"]["packageMetadata"] == {}


async def test_a_file_that_is_not_safe_to_write_is_named_when_its_package_is_cloned_or_edited(
    engine: Engine, remote: Path
) -> None:
    push(remote, "refs/heads/drafts/theirs/v1", package("theirs"), ("100644", "theirs/...", "x"))
    await engine.sync()
    await eventually(lambda: "PipelineFailed" in str(engine.body("repo.theirs.v1")["status"]["conditions"]))
    clone = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "repo.theirs.v1"}}}}

    def label(body: Json) -> Json:
        body["spec"]["packageMetadata"] = {"labels": {"a": "b"}}
        return body

    for attempt in (
        engine.create("app", task=clone),
        engine.service.update(NAMESPACE, "repo.theirs.v1", label, "alice", Door.MAIN, dry_run=False),
    ):
        with pytest.raises(Invalid, match=r"'\.\.\.'"):
            await attempt

"""Creating revisions against a real remote: what each task gives, what is refused and in which order."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_fixture import NAMESPACE, Engine, Json, eventually, git, new_remote, running_engine
from remotes import commit_files, files_at, refs

from krm.meta.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound, StatusError
from krm.package.kptfile import parse_kptfile

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    async with running_engine(tmp_path) as running:
        await running.register("repo", remote)
        yield running


async def publish(engine: Engine, name: str) -> str:
    await engine.move(name, "Proposed")
    await engine.approve(name)
    return name


async def texts(engine: Engine, name: str) -> dict[str, str]:
    return {path: file.data.decode() for path, file in (await engine.contents(name)).items()}


async def refused(engine: Engine, spec: Json) -> StatusError:
    with pytest.raises(StatusError) as refusal:
        await engine.service.create(NAMESPACE, {"metadata": {}, "spec": spec}, "alice", dry_run=False)
    return refusal.value


def spec_of(package: str = "app", workspace: str = "v1", **more: object) -> Json:
    return {"repository": "repo", "packageName": package, "workspaceName": workspace, **more}


def clone_of(upstream: str) -> Json:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}


def edit_of(source: str) -> Json:
    return {"type": "edit", "edit": {"sourceRef": {"name": source}}}


# --- the order of checks -------------------------------------------------------------------------


async def test_the_first_check_that_fails_is_the_one_that_is_told(engine: Engine) -> None:
    """Each case would also fail by what the cases after it fail by (3.1)."""
    two = [{"type": "init"}, {"type": "init"}]

    assert isinstance(await refused(engine, {}), BadRequest)
    missing = await refused(engine, {"repository": "none", "packageName": "A/", "lifecycle": "Published"})
    assert isinstance(missing, NotFound)
    assert missing.message == 'repositories.config.porch.kpt.dev "none" not found'
    fields = await refused(engine, spec_of("A//b", "V 1", lifecycle="Published", parent={"name": "no"}))
    assert {cause.field for cause in fields.causes} == {"spec.packageName", "spec.workspaceName", "spec.lifecycle"}
    assert 'spec.lifecycle: Invalid value: "Published": value can be only created as Draft' in fields.message
    parent = await refused(engine, spec_of(parent={"name": "no"}, tasks=two))
    assert parent.message.startswith('Internal error occurred: cannot get parent package "no": ')
    tasks = await refused(engine, spec_of(tasks=two))
    assert tasks.message == "Internal error occurred: task list must not contain more than one task"


async def test_a_package_deeper_than_git_may_keep_it_is_refused(engine: Engine) -> None:
    too_deep = "/".join(["a"] * 33)

    error = await refused(engine, spec_of(too_deep))

    assert isinstance(error, Invalid)
    assert [cause.field for cause in error.causes] == ["spec.packageName"]
    assert too_deep in error.message
    await engine.create(too_deep.removesuffix("/a"))


@pytest.mark.parametrize("package", ["a/b/c", "app"])
async def test_names_that_are_taken_are_refused_with_upstreams_sentences(engine: Engine, package: str) -> None:
    name = await publish(engine, (await engine.create(package)).name)

    same = await refused(engine, spec_of(package, tasks=[edit_of(name)]))
    clone = await refused(engine, spec_of(package, "v2", tasks=[clone_of(name)]))
    init = await refused(engine, spec_of(package, "v2"))

    assert all(isinstance(error, AlreadyExists) for error in (same, clone, init))
    assert same.message == (
        "Internal error occurred: package revision workspaceNames must be unique; package revision with name "
        f"{package} in repo repo with workspaceName v1 already exists"
    )
    assert clone.message == (
        f'Internal error occurred: `clone` cannot create a new revision for package "{package}" that already exists in '
        'repo "repo"; make subsequent revisions using `copy`'
    )
    assert init.message == f'Internal error occurred: package "{package}" already exists in repository "repo"'


async def test_only_full_paths_clash(engine: Engine) -> None:
    """Upstream compares the last segment of one with the path of the other."""
    await engine.create("x/b")

    assert (await engine.create("b")).name == "repo.b.v1"
    assert (await engine.create("y/b")).name == "repo.y.b.v1"
    for nested, outer in (("x/b/c", "x/b"), ("x", "x/b")):
        error = await refused(engine, spec_of(nested))
        assert isinstance(error, Conflict)
        assert error.message == (
            f'Internal error occurred: package path "{nested}" conflicts with existing package "{outer}": '
            "packages cannot be nested"
        )


async def test_packages_that_are_created_at_the_same_time_are_not_nested(engine: Engine) -> None:
    outcomes = await asyncio.gather(
        engine.create("a"), engine.create("a/b"), engine.create("a", workspace="v2"), return_exceptions=True
    )

    made = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(made) == 1
    assert all(isinstance(outcome, Conflict) for outcome in outcomes if outcome is not made[0])
    assert (await engine.create("b/a")).name == "repo.b.a.v1"


async def test_the_name_of_the_registered_branch_is_no_workspace(engine: Engine) -> None:
    error = await refused(engine, spec_of(workspace="main"))

    assert isinstance(error, Invalid)
    assert [cause.field for cause in error.causes] == ["spec.workspaceName"]


async def test_a_name_of_a_megabyte_is_refused_without_repeating_it(engine: Engine) -> None:
    long = "x" * 1_000_000

    for spec in (spec_of(long), spec_of("a/" + long), spec_of(workspace=long), spec_of(lifecycle=long)):
        assert len((await refused(engine, spec)).message) < 3000
    deep = await refused(engine, spec_of("/".join(["a"] * 200)))
    assert "longer than 253 characters" in deep.message


# --- edit ------------------------------------------------------------------------------------------


async def test_edit_copies_a_published_revision_of_the_same_package_only(engine: Engine) -> None:
    first = await publish(engine, (await engine.create("app")).name)
    other = await publish(engine, (await engine.create("other")).name)
    draft = (await engine.create("app", workspace="v2", task=edit_of(first))).name

    assert await texts(engine, draft) == await texts(engine, first)
    for source, why in (
        (other, "source revision must be from same package repo/app"),
        (draft, "source revision must be published"),
        ("repo.app.main", "source revision may not be the placeholder package revision repo/repo.app.main"),
        ("repo.app.v8", 'failed to fetch package "repo.app.v8": cannot find package revision "repo.app.v8"'),
    ):
        error = await refused(engine, spec_of(workspace="v3", tasks=[edit_of(source)]))
        assert error.message == f"Internal error occurred: {why}"


# --- init with a subpackage, and subpackages in general ---------------------------------------------


async def test_init_makes_a_subpackage_in_the_package(engine: Engine, remote: Path) -> None:
    init = {"subpackage": "/net/core/", "description": "the core", "keywords": ["five"], "site": "https://x.example"}

    name = (await engine.create("app", task={"type": "init", "init": init})).name

    files = await texts(engine, name)
    assert set(files) == {
        f"{folder}{file}" for folder in ("", "net/core/") for file in ("Kptfile", "README.md", "package-context.yaml")
    }
    nested, root = (parse_kptfile(files[path].encode()) for path in ("net/core/Kptfile", "Kptfile"))
    assert (nested.name, nested.info["description"]) == ("core", "the core")
    assert (root.name, root.info) == ("app", {})
    await publish(engine, name)
    await engine.sync()
    assert sorted(package.path for package in engine.index.packages(NAMESPACE, "repo")) == ["app"]
    assert files_at(remote, "refs/heads/main", "app") == files


@pytest.mark.parametrize("subpackage", ["..", "a/../b", ".git", "a\\b", "a//b", "Kptfile/x", "x" * 5000, "a\nb"])
async def test_a_subpackage_cannot_lie_outside_its_package(engine: Engine, subpackage: str) -> None:
    error = await refused(engine, spec_of(tasks=[{"type": "init", "init": {"subpackage": subpackage}}]))

    assert isinstance(error, Invalid)
    assert [cause.field for cause in error.causes] == ["spec.tasks[0].init.subpackage"]
    assert len(error.message) < 1000
    assert engine.entry("repo.app.v1") is None


async def test_subpackages_are_kept_by_every_task_and_are_no_packages(engine: Engine, remote: Path) -> None:
    name = (await engine.create("app")).name
    files = {f"{folder}/Kptfile": KPTFILE.format(name=folder[-3:]) for folder in ("sub", "sub/two")}
    await engine.save(name, **files)
    first = await publish(engine, name)
    second = await publish(engine, (await engine.create("app", workspace="v2", task=edit_of(first))).name)
    clone = await publish(engine, (await engine.create("copy", task=clone_of(second))).name)
    await engine.sync()

    for made in (first, second, clone, "repo.copy.main"):
        assert {"sub/Kptfile", "sub/two/Kptfile"} <= set(await texts(engine, made))
    assert sorted(package.path for package in engine.index.packages(NAMESPACE, "repo")) == ["app", "copy"]


# --- what follows a branch, and tags that are no numbers ---------------------------------------------


async def test_a_foreign_commit_shows_in_the_revision_of_the_branch_and_only_there(
    engine: Engine, remote: Path
) -> None:
    name = await publish(engine, (await engine.create("app")).name)
    other = await publish(engine, (await engine.create("other")).name)
    before = engine.body("repo.other.main")
    touched = commit_files(remote, {"app/more.txt": "more\n"}, "by hand")
    commit_files(remote, {"README.md": "# more\n"}, "something else")

    await engine.sync()

    body = engine.body("repo.app.main")
    assert body["status"]["selfLock"]["git"] == {
        "repo": remote.as_uri(), "directory": "app", "ref": "main", "commit": touched,
    }  # fmt: skip
    assert (await texts(engine, "repo.app.main"))["more.txt"] == "more\n"
    assert "more.txt" not in await texts(engine, name)
    assert engine.body("repo.other.main") == before
    lock = engine.body(other)["status"]["selfLock"]["git"]["commit"]
    assert before["status"]["selfLock"]["git"]["commit"] == lock


async def test_the_branch_says_the_same_of_its_packages_to_a_server_that_was_not_there(
    engine: Engine, remote: Path, tmp_path: Path
) -> None:
    first = await publish(engine, (await engine.create("app")).name)
    await publish(engine, (await engine.create("kept")).name)
    gone = await publish(engine, (await engine.create("gone")).name)
    await publish(engine, (await engine.create("app", workspace="v2", task=edit_of(first))).name)
    commit_files(remote, {"app/more.txt": "more\n"}, "by hand")
    await engine.sync()
    await engine.move(gone, "DeletionProposed")
    await engine.delete(gone)
    commit_files(remote, {"foreign/Kptfile": KPTFILE.format(name="foreign")}, "a package by hand")
    await engine.sync()
    names = [f"repo.{package}.main" for package in ("app", "kept", "gone", "foreign")]
    known = [engine.body(name) for name in names]
    (tmp_path / "second").mkdir()

    async with running_engine(tmp_path / "second") as other:
        await other.register("repo", remote)
        found = [other.body(name) for name in names]

    for before, after in zip(known, found, strict=True):
        assert (after["spec"], after["status"]) == (before["spec"], before["status"])


async def test_a_tag_that_is_no_number_has_its_own_workspace_and_is_deleted_as_a_tag(
    engine: Engine, remote: Path
) -> None:
    name = await publish(engine, (await engine.create("app")).name)
    commit = refs(remote)["refs/tags/app/v1"]
    git(remote, "update-ref", "refs/tags/app/v2.0.0", commit)
    git(remote, "update-ref", "refs/tags/app/stable", commit)
    await engine.sync()

    for workspace in ("v2.0.0", "stable"):
        body = engine.body(f"repo.app.{workspace}")
        assert (body["spec"]["revision"], body["spec"]["workspaceName"]) == (-1, workspace)
        assert body["spec"]["lifecycle"] == "Published"
    await engine.move("repo.app.v2.0.0", "DeletionProposed")
    await eventually(lambda: "refs/heads/deletionProposed/app/v2.0.0" in refs(remote))
    await engine.delete("repo.app.v2.0.0")

    left = refs(remote)
    assert "refs/tags/app/v2.0.0" not in left
    assert "refs/heads/deletionProposed/app/v2.0.0" not in left
    assert left["refs/tags/app/stable"] == left["refs/tags/app/v1"] == left["refs/heads/main"] == commit
    assert engine.body(name)["spec"]["revision"] == 1
    assert engine.body(name)["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}


async def test_further_tags_on_the_commit_of_an_approval_are_revisions_of_their_own(
    engine: Engine, remote: Path
) -> None:
    name = await publish(engine, (await engine.create("app")).name)
    commit = refs(remote)["refs/tags/app/v1"]
    for tag in ("1", "v5", "v01"):
        git(remote, "update-ref", f"refs/tags/app/{tag}", commit)

    for _ in range(2):
        engine.repositories.get(NAMESPACE, "repo").repository.synced = False
        await engine.sync()

        numbers = {entry.name: entry.fields[0] for entry in engine.index.revisions(NAMESPACE, "repo")}
        assert numbers == {name: "1", "repo.app.v5": "5", "repo.app.main": "-1"}
        assert engine.body(name)["status"]["selfLock"]["git"]["ref"] == "app/v1"


async def test_the_path_of_the_parent_precedes_that_of_a_clone_in_its_context(engine: Engine, tmp_path: Path) -> None:
    await engine.register("site", new_remote(tmp_path / "site.git"), deployment=True)
    blueprint = await publish(engine, (await engine.create("blue")).name)
    outer = (await engine.create("outer", "site", task=clone_of(blueprint))).name

    name = (await engine.create("inner", "site", task=clone_of(blueprint), parent={"name": outer})).name

    assert "package-path: outer/inner\n" in (await texts(engine, name))["package-context.yaml"]
    assert "parent" not in engine.body(name)["spec"]


async def test_a_revision_of_the_branch_does_not_hold_its_upstream(engine: Engine) -> None:
    """Only the clones themselves do (4.7): else no upstream could go before somebody removed packages from branches."""
    blueprint = await publish(engine, (await engine.create("blue")).name)
    clone = await publish(engine, (await engine.create("app", task=clone_of(blueprint))).name)
    await engine.move(blueprint, "DeletionProposed")

    with pytest.raises(Forbidden, match=f"referenced as upstream by: {clone}$"):
        await engine.delete(blueprint)
    await engine.move(clone, "DeletionProposed")
    await engine.delete(clone)
    await engine.delete(blueprint)

    assert engine.entry("repo.app.main") is not None
    assert engine.entry(blueprint) is None


async def test_tasks_that_came_from_git_hold_their_upstream_too(engine: Engine, remote: Path, tmp_path: Path) -> None:
    blueprint = await publish(engine, (await engine.create("blue")).name)
    clone = await publish(engine, (await engine.create("app", task=clone_of(blueprint))).name)
    (tmp_path / "second").mkdir()

    async with running_engine(tmp_path / "second") as other:
        await other.register("repo", remote)
        await other.move(blueprint, "DeletionProposed")

        with pytest.raises(Forbidden, match=f"referenced as upstream by: {clone}$"):
            await other.delete(blueprint)

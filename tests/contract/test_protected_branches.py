"""Remotes that refuse some pushes: what users are told, and that everything waits until somebody allows it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, Engine, eventually, git, new_remote, running_engine
from git_server import GitServer, git_server

from apiserver.engine import draft_pushing
from apiserver.engine.repository_status import RESOURCE
from krm.meta.errors import Forbidden, ServiceUnavailable
from storage.bodies import decode
from storage.interfaces import ObjectKey

PROTECTED = "[ \"$1\" = refs/heads/main ] && { echo 'GH006: protected branch' >&2; exit 1; }\nexit 0\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    async with running_engine(tmp_path) as running:
        await running.register("repo", remote)
        yield running


def hook(remote: Path, name: str, script: str) -> Path:
    path = remote / "hooks" / name
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    return path


def refs(remote: Path) -> dict[str, str]:
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def condition(engine: Engine, type_: str = "Writable", name: str = "repo") -> dict[str, Any]:
    entry = engine.store.get(ObjectKey(RESOURCE, NAMESPACE, name))
    assert entry is not None
    conditions = (decode(entry).get("status") or {}).get("conditions") or []
    found: dict[str, Any] = next((one for one in conditions if one["type"] == type_), {})
    return found


async def proposed(engine: Engine, package: str = "app", repository: str = "repo") -> str:
    name = (await engine.create(package, repository)).name
    await engine.move(name, "Proposed")
    return name


async def test_a_protected_branch_keeps_the_proposal_and_says_why_everywhere(engine: Engine, remote: Path) -> None:
    name = await proposed(engine)
    protection = hook(remote, "update", PROTECTED)
    before = refs(remote)["refs/heads/main"]

    with pytest.raises(Forbidden) as refused:
        await engine.approve(name)

    said = refused.value.message
    for part in ("branch main", "hook declined", "GH006: protected branch", "allow", "nothing was changed"):
        assert part in said
    assert "refs/tags" not in said, "the tag only shares the push"
    assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
    assert refs(remote)["refs/heads/main"] == before
    await eventually(lambda: condition(engine).get("status") == "False")
    assert condition(engine)["reason"] == "PushRefused"
    assert name in condition(engine)["message"]
    assert condition(engine, "Ready")["status"] == "True", "it can still be read"
    told = {of for of, reason, _, warning in engine.events.reported if reason == "PushRefused" and warning}
    assert told == {name, "repo"}

    protection.unlink()
    await engine.approve(name)

    assert engine.body(name)["spec"]["lifecycle"] == "Published"
    await eventually(lambda: condition(engine).get("status") == "True")
    assert condition(engine)["reason"] == "PushAccepted"


async def test_a_repository_that_never_refused_has_no_such_condition(engine: Engine) -> None:
    await engine.approve(await proposed(engine))
    await asyncio.sleep(0.1)

    assert condition(engine) == {}


async def test_approvals_that_share_a_push_with_a_refused_one_are_published(engine: Engine, remote: Path) -> None:
    names = [await proposed(engine, package) for package in ("one", "two", "bad", "three")]
    hook(remote, "update", '[ "$1" = refs/tags/bad/v1 ] && { echo no such tag >&2; exit 1; }\nexit 0\n')

    outcomes = await asyncio.gather(*(engine.approve(name) for name in names), return_exceptions=True)

    assert [isinstance(outcome, Forbidden) for outcome in outcomes] == [False, False, True, False]
    assert "tag bad/v1: hook declined" in str(outcomes[2])
    assert sorted(ref for ref in refs(remote) if ref.startswith("refs/tags/")) == [
        "refs/tags/one/v1", "refs/tags/three/v1", "refs/tags/two/v1",
    ]  # fmt: skip
    assert [engine.body(name)["spec"]["lifecycle"] for name in names] == [
        "Published",
        "Published",
        "Proposed",
        "Published",
    ]
    git(remote, "fsck", "--strict")


async def test_a_draft_that_is_refused_waits_and_goes_once_it_is_allowed(engine: Engine, remote: Path) -> None:
    protection = hook(remote, "pre-receive", "echo drafts are not welcome\nexit 1\n")
    name = (await engine.create("app")).name

    await eventually(lambda: condition(engine).get("status") == "False")

    assert "drafts are not welcome" in condition(engine)["message"]
    assert "branch drafts/app/v1: pre-receive hook declined" in condition(engine)["message"]
    assert "app" not in str(refs(remote))
    protection.unlink()
    await engine.save(name, note_txt="again\n")
    await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
    await eventually(lambda: condition(engine).get("status") == "True")


async def test_drafts_that_are_refused_are_not_sent_along_with_every_other_push(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was a push of its own, before which an approval had to wait."""
    monkeypatch.setattr(draft_pushing, "FIRST_RETRY", 3600.0)
    hook(remote, "update", 'case "$1" in refs/heads/drafts/app*) exit 1;; esac\nexit 0\n')
    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        for number in range(5):
            await engine.create(f"app{number}")
        await eventually(lambda: len(held.refused) == 5)
        pushes = engine.registry.get_sample_value("porch_git_push_duration_seconds_count", {"result": "refused"})

        await engine.create("welcome")
        await eventually(lambda: "refs/heads/drafts/welcome/v1" in refs(remote) and held.outbox.drafts == 5)

        refused = engine.registry.get_sample_value("porch_git_push_duration_seconds_count", {"result": "refused"})
        assert refused == pushes
        (remote / "hooks" / "update").unlink()
        held.push_all_again()
        await eventually(lambda: not held.outbox.drafts)
        assert {f"refs/heads/drafts/app{number}/v1" for number in range(5)} <= refs(remote).keys()


@pytest.mark.parametrize("setting", ["receive.denyNonFastForwards", "receive.denyDeletes", "receive.fsckObjects"])
async def test_usual_settings_of_hosts(engine: Engine, remote: Path, setting: str) -> None:
    name = await proposed(engine)
    await eventually(lambda: "refs/heads/proposed/app/v1" in refs(remote))
    git(remote, "config", setting, "true")

    if setting == "receive.denyDeletes":
        with pytest.raises(Forbidden, match="branch proposed/app/v1: deletion prohibited"):
            await engine.approve(name)
        git(remote, "config", setting, "false")

    await engine.approve(name)
    assert "refs/tags/app/v1" in refs(remote)


async def test_what_the_remote_cannot_do_just_now_is_tried_again(engine: Engine, remote: Path) -> None:
    name = await proposed(engine)
    await eventually(lambda: "refs/heads/proposed/app/v1" in refs(remote))
    lock = remote / "refs" / "heads" / "main.lock"
    lock.touch()
    asyncio.get_running_loop().call_later(0.3, lock.unlink)

    await engine.approve(name)

    assert engine.body(name)["spec"]["lifecycle"] == "Published"
    assert condition(engine) == {}


async def test_what_the_remote_cannot_do_for_long_is_no_refusal(engine: Engine, remote: Path) -> None:
    name = await proposed(engine)
    (remote / "refs" / "heads" / "main.lock").touch()

    with pytest.raises(ServiceUnavailable, match="cannot be used"):
        await engine.approve(name)

    assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
    assert condition(engine) == {}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path / "served", "porch:canary-secret") as running:
        new_remote(tmp_path / "served" / "repo.git")
        git(tmp_path / "served" / "repo.git", "config", "http.receivepack", "true")
        yield running


async def test_a_user_who_may_only_read_is_told_which_secret_to_change(tmp_path: Path, served: GitServer) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.secret("reader", "kubernetes.io/basic-auth", username="porch", password="canary-reader")
        await engine.register_url("repo", f"{served.url}/repo", secret="reader")
        name = await proposed(engine)

        with pytest.raises(Forbidden) as refused:
            await engine.approve(name)

        assert f"Secret {NAMESPACE}/reader" in refused.value.message
        assert "canary" not in refused.value.message
        assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
        await eventually(lambda: condition(engine).get("status") == "False")

        await engine.secret("reader", "kubernetes.io/basic-auth", username="porch", password="canary-secret")
        await engine.approve(name)

        assert engine.body(name)["spec"]["lifecycle"] == "Published"


async def test_drafts_that_wait_for_another_secret_go_at_once(
    tmp_path: Path, served: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_pushing, "FIRST_RETRY", 3600.0)
    async with running_engine(tmp_path) as engine:
        await engine.secret("s", "kubernetes.io/basic-auth", username="porch", password="canary-wrong")
        await engine.register_url("repo", f"{served.url}/repo", secret="s")
        await engine.create("app")
        await eventually(lambda: condition(engine).get("status") == "False")

        await engine.secret("s", "kubernetes.io/basic-auth", username="porch", password="canary-secret")

        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(served.root / "repo.git"))
        await eventually(lambda: condition(engine).get("status") == "True")


async def test_a_secret_that_is_exchanged_while_a_push_knocks_is_used_at_once(
    tmp_path: Path, served: GitServer
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.secret("s", "kubernetes.io/basic-auth", username="porch", password="canary-secret")
        held = await engine.register_url("repo", f"{served.url}/repo", secret="s")
        name = await proposed(engine)
        await eventually(lambda: "refs/heads/proposed/app/v1" in refs(served.root / "repo.git"))
        served.credentials = "porch:canary-new"
        ask = held.repository.converse
        knocked: list[bool] = []

        async def exchange_first(function: Callable[..., Any], *arguments: Any) -> Any:
            try:
                return await ask(function, *arguments)
            finally:
                if not knocked:
                    knocked.append(True)
                    await engine.secret("s", "kubernetes.io/basic-auth", username="porch", password="canary-new")

        held.repository.converse = exchange_first  # type: ignore[method-assign] # the moment of the exchange matters

        await engine.approve(name)

        assert knocked == [True]
        assert engine.body(name)["spec"]["lifecycle"] == "Published"


async def test_a_host_that_repeats_our_password_does_not_get_it_into_messages(
    tmp_path: Path, served: GitServer
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.secret("s", "kubernetes.io/basic-auth", username="porch", password="canary-secret")
        await engine.register_url("repo", f"{served.url}/repo", secret="s")
        name = await proposed(engine)
        hook(
            served.root / "repo.git",
            "update",
            "echo bad password canary-secret of cG9yY2g6Y2FuYXJ5LXNlY3JldA==\nexit 1\n",
        )

        with pytest.raises(Forbidden, match=r"bad password \*\*\*") as refused:
            await engine.approve(name)

        await eventually(lambda: condition(engine).get("status") == "False")
        everything = refused.value.message + str(condition(engine)) + str(engine.events.reported)
        assert "canary-secret" not in everything
        assert "cG9yY2g6" not in everything


async def test_a_remote_without_atomic_pushes_is_refused_with_the_reason(engine: Engine, remote: Path) -> None:
    git(remote, "config", "receive.advertiseAtomic", "false")
    name = await proposed(engine)

    with pytest.raises(Forbidden, match="no atomic pushes"):
        await engine.approve(name)

    assert engine.body(name)["spec"]["lifecycle"] == "Proposed"
    await eventually(lambda: "no atomic pushes" in condition(engine).get("message", ""))

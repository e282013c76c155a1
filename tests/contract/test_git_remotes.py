"""The same story against a remote over HTTP, over SSH, in a directory through git, and in a directory without git."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from git_server import GitServer, create_repository, git_server, run_git
from ssh_server import SshServer, ssh_server

from krm.package.contents import File
from storage.git.clone import Clone, RefUpdate
from storage.git.commits import Identity, build_commit
from storage.git.errors import (
    AuthenticationFailed,
    LimitExceeded,
    NotARepository,
    ObjectMissing,
    PushRejected,
    PushWithdrawn,
    RefMoved,
    RemoteUnavailable,
    UnsafeAddress,
)
from storage.git.objects import GitObject, blob
from storage.git.packfile import PackLimits
from storage.git.remote import Credentials, Remote, SshKey
from storage.git.trees import read_package, replace_subtree, subtree, write_package

WHO = Identity("test", "test@example.com")
MAIN = "refs/heads/main"
GIT = shutil.which("git")


@dataclass
class Place:
    repository: Path
    remote: Remote
    clone: Clone
    git: str | None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    with git_server(tmp_path_factory.mktemp("served"), "porch:secret") as running:
        yield running


@pytest.fixture(scope="module")
def ssh(server: GitServer) -> Iterator[SshServer]:
    with ssh_server(server.root) as running:
        yield running


@pytest.fixture(
    params=["http", "http without git", "file", "file without git", "ssh", "ssh without git", "ssh version 0"]
)
def place(request: pytest.FixtureRequest, server: GitServer, ssh: SshServer, tmp_path: Path) -> Place:
    repository = create_repository(server.root / f"{tmp_path.name}.git")
    git = None if "without" in request.param else GIT
    clone = Clone.open(tmp_path / "clone", git=git)
    credentials: Credentials | SshKey = Credentials("porch", "secret")
    url = f"{server.url}/{repository.stem}" if "http" in request.param else f"file://{repository}"
    if "ssh" in request.param:
        url, credentials = ssh.url(repository.name), SshKey(ssh.key, ssh.known_hosts)
    ssh.accepts_protocol = "version 0" not in request.param
    return Place(repository, Remote(url, credentials, timeout=10), clone, git)


@pytest.fixture
def http(server: GitServer, tmp_path: Path) -> Iterator[Place]:
    repository = create_repository(server.root / f"{tmp_path.name}.git")
    clone = Clone.open(tmp_path / "clone")
    server.faults.__init__()  # type: ignore[misc] # every test starts without faults
    yield Place(
        repository, Remote(f"{server.url}/{repository.stem}", Credentials("porch", "secret"), timeout=2), clone, GIT
    )
    server.faults.__init__()  # type: ignore[misc] # and leaves none


def synced(place: Place) -> Clone:
    place.clone.fetch(place.remote, place.clone.list_remote(place.remote))
    return place.clone


def new_commit(clone: Clone, path: str, text: str, *, parent: str | None = None) -> tuple[str, list[GitObject]]:
    head = parent or clone.refs[MAIN]
    package, objects = write_package({"Kptfile": File(text.encode()), "sub/x.yaml": File(b"a: 1\n")})
    root, trees = replace_subtree(clone, clone.commit(head).tree, path, package)
    commit = build_commit(root, (head,), WHO, f"change {path}", 1_700_000_000)
    return commit.oid, [*objects, *trees, commit]


def foreign_commit(repository: Path, message: str = "foreign") -> str:
    """Let someone else move main, with git itself."""
    tree = run_git(repository, "rev-parse", "main^{tree}")
    commit = run_git(repository, "commit-tree", tree, "-p", "main", "-m", message)
    run_git(repository, "update-ref", MAIN, commit)
    return commit


def test_what_is_pushed_is_what_git_reads(place: Place) -> None:
    clone = synced(place)
    before = clone.refs[MAIN]
    oid, objects = new_commit(clone, "a/pkg", "v1")

    clone.push(place.remote, [RefUpdate(MAIN, before, oid), RefUpdate("refs/tags/a/pkg/v1", None, oid)], objects)
    clone.add_objects(objects)

    assert run_git(place.repository, "fsck", "--full", "--strict") == ""
    assert run_git(place.repository, "show", "a/pkg/v1:a/pkg/Kptfile") == "v1"
    assert clone.refs[MAIN] == clone.refs["refs/tags/a/pkg/v1"] == oid
    assert clone.list_remote(place.remote) == dict(clone.refs)
    package = subtree(clone, clone.commit(oid).tree, "a/pkg")
    assert package is not None
    assert read_package(clone, package)["Kptfile"] == File(b"v1")


def test_a_draft_is_made_moved_and_dropped_by_pushes_of_one_commit(place: Place) -> None:
    clone = synced(place)
    oid, objects = new_commit(clone, "p", "draft")
    draft, proposed = "refs/heads/drafts/p/w", "refs/heads/proposed/p/w"

    clone.push(place.remote, [RefUpdate(draft, None, oid)], objects)
    clone.push(place.remote, [RefUpdate(draft, oid, None), RefUpdate(proposed, None, oid)], [])

    assert clone.list_remote(place.remote).get(proposed) == oid
    assert draft not in clone.list_remote(place.remote)
    clone.push(place.remote, [RefUpdate(proposed, oid, None)], [])
    assert sorted(clone.list_remote(place.remote)) == [MAIN]


def test_a_push_that_expects_the_wrong_value_tells_the_actual_one_and_changes_nothing(place: Place) -> None:
    clone = synced(place)
    oid, objects = new_commit(clone, "p", "x")
    moved = foreign_commit(place.repository)

    with pytest.raises(RefMoved) as refused:
        clone.push(
            place.remote, [RefUpdate(MAIN, clone.refs[MAIN], oid), RefUpdate("refs/tags/p/v1", None, oid)], objects
        )

    assert refused.value.moved == {MAIN: moved}
    assert clone.list_remote(place.remote) == {MAIN: moved}


def test_fetching_brings_what_someone_else_pushed(place: Place) -> None:
    clone = synced(place)
    moved = foreign_commit(place.repository)
    run_git(place.repository, "tag", "-m", "annotated", "p/v1", moved)

    synced(place)

    assert clone.refs[MAIN] == moved
    assert clone.read(clone.refs["refs/tags/p/v1"]).kind == "tag"
    assert clone.is_ancestor(clone.commit(moved).parents[0], moved)
    assert not clone.is_ancestor(moved, clone.commit(moved).parents[0])


def test_an_empty_remote_has_no_refs_and_takes_the_first_push(place: Place) -> None:
    shutil.rmtree(place.repository)
    create_repository(place.repository, empty=True)
    assert synced(place).refs == {}
    tree, objects = write_package({"README.md": File(b"# new\n")})
    commit = build_commit(tree, (), WHO, "Initial commit", 1_700_000_000)

    place.clone.push(place.remote, [RefUpdate(MAIN, None, commit.oid)], [*objects, commit])

    assert run_git(place.repository, "show", "main:README.md") == "# new"


def test_a_remote_made_anew_replaces_everything(place: Place) -> None:
    old = dict(synced(place).refs)
    shutil.rmtree(place.repository)
    create_repository(place.repository)
    new = foreign_commit(place.repository, "another history")

    synced(place)

    assert place.clone.refs == {MAIN: new}
    assert old != place.clone.refs


def test_a_clone_remembers_pushes_after_a_restart(place: Place) -> None:
    clone = synced(place)
    oid, objects = new_commit(clone, "p", "x")
    clone.push(place.remote, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)
    clone.add_objects(objects)

    again = Clone.open(clone.path, git=place.git)

    assert again.refs == clone.refs
    assert again.read(oid).kind == "commit"


def test_a_place_without_a_repository_says_so(place: Place, tmp_path: Path) -> None:
    shutil.rmtree(place.repository)

    with pytest.raises(NotARepository):
        place.clone.list_remote(place.remote)


def test_a_hook_that_refuses_is_a_rejection_and_not_a_race(http: Place) -> None:
    hook = http.repository / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho policy says no\nexit 1\n")
    hook.chmod(0o755)
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")

    with pytest.raises(PushRejected) as refused:
        clone.push(http.remote, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)

    assert set(refused.value.reasons) == {"refs/heads/drafts/p/w"}


def test_a_writer_between_listing_and_update_makes_the_whole_push_fail(http: Place, server: GitServer) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    server.faults.before_push.append(lambda: foreign_commit(http.repository))

    with pytest.raises(RefMoved) as refused:
        clone.push(
            http.remote, [RefUpdate(MAIN, clone.refs[MAIN], oid), RefUpdate("refs/tags/p/v1", None, oid)], objects
        )

    assert list(refused.value.moved) == [MAIN]
    assert "refs/tags/p/v1" not in clone.list_remote(http.remote)


def test_a_push_that_is_withdrawn_on_its_way_changes_nothing(place: Place) -> None:
    clone = synced(place)
    package, objects = write_package({"Kptfile": File(b"v1"), "large.bin": File(os.urandom(300_000))})
    root, trees = replace_subtree(clone, clone.commit(clone.refs[MAIN]).tree, "p", package)
    commit = build_commit(root, (clone.refs[MAIN],), WHO, "change p", 1_700_000_000)
    publish = [RefUpdate(MAIN, clone.refs[MAIN], commit.oid), RefUpdate("refs/tags/p/v1", None, commit.oid)]
    objects = [*objects, *trees, commit]
    before = run_git(place.repository, "for-each-ref")
    parts = 0 if place.remote.is_local else 2  # a program beside us is given all at once

    for leave in {0, parts}:
        answers = iter([True] * leave)
        with pytest.raises(PushWithdrawn):
            clone.push(place.remote, publish, objects, lambda answers=answers: next(answers, False))  # type: ignore[misc] # bound at once

        assert run_git(place.repository, "for-each-ref") == before
        assert clone.list_remote(place.remote) == clone.refs

    clone.push(place.remote, publish, objects, lambda: True)
    assert run_git(place.repository, "rev-parse", "main", "p/v1").split() == [commit.oid] * 2


def test_a_withdrawn_push_that_only_removes_refs_removes_none(place: Place) -> None:
    clone = synced(place)
    oid, objects = new_commit(clone, "p", "x")
    tag = "refs/tags/p/v1"
    clone.push(place.remote, [RefUpdate(tag, None, oid)], objects)

    with pytest.raises(PushWithdrawn):
        clone.push(place.remote, [RefUpdate(tag, oid, None)], [], lambda: False)

    assert clone.list_remote(place.remote)[tag] == oid


def test_whether_a_push_may_leave_is_asked_when_the_remote_waits_for_its_commands(
    http: Place, server: GitServer
) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    heard: list[str] = []

    def may_send() -> bool:
        heard.extend(method for method, _, _ in server.requests[asked:])
        return False

    asked = len(server.requests)
    with pytest.raises(PushWithdrawn):
        clone.push(http.remote, [RefUpdate("refs/tags/p/v1", None, oid)], objects, may_send)

    assert heard == ["GET"]


def test_wrong_credentials_are_told_apart(http: Place) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    intruder = Remote(http.remote.url, Credentials("porch", "hunter2"))

    with pytest.raises(AuthenticationFailed) as refused:
        clone.push(intruder, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)

    assert "hunter2" not in str(refused.value)


def test_credentials_go_out_at_once_on_connections_that_stay_open(http: Place, server: GitServer) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    requests, connections = len(server.requests), server.connections

    clone.push(http.remote, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)

    made = server.requests[requests:]
    assert [method for method, _, _ in made] == ["GET", "POST"]
    assert all(headers["Authorization"].startswith("Basic ") for _, _, headers in made)
    assert server.connections == connections


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_server_in_trouble_is_unavailable(http: Place, server: GitServer, status: int) -> None:
    server.faults.status = status

    with pytest.raises(RemoteUnavailable):
        http.clone.list_remote(http.remote)


@pytest.mark.parametrize("fault", ["hang", "refuse", "trickle"])
def test_a_server_that_does_not_answer_is_given_up_in_time(http: Place, server: GitServer, fault: str) -> None:
    setattr(server.faults, fault, True)
    remote = Remote(http.remote.url, timeout=0.3)

    with pytest.raises(RemoteUnavailable):
        http.clone.list_remote(remote)


def test_nobody_listening_is_unavailable(http: Place) -> None:
    with pytest.raises(RemoteUnavailable) as refused:
        http.clone.list_remote(Remote("http://127.0.0.1:9/x", timeout=2))

    assert refused.value.problem == "connection refused"


def test_a_push_whose_answer_is_lost_has_an_unknown_outcome(http: Place, server: GitServer) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    server.faults.drop_after_push = True

    with pytest.raises(RemoteUnavailable) as refused:
        clone.push(http.remote, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)

    assert refused.value.outcome_unknown
    assert clone.list_remote(http.remote)["refs/heads/drafts/p/w"] == oid


@pytest.mark.parametrize("to", ["http://localhost:1", "https://127.0.0.1", "http://u:p@127.0.0.1", "file:///etc"])
def test_a_redirect_elsewhere_is_not_followed(http: Place, server: GitServer, to: str) -> None:
    server.faults.redirect = to

    with pytest.raises(UnsafeAddress):
        http.clone.list_remote(http.remote)


def test_a_circle_of_redirects_ends(http: Place, server: GitServer) -> None:
    server.faults.redirect = server.url
    before = len(server.requests)

    with pytest.raises(UnsafeAddress):
        http.clone.list_remote(http.remote)
    assert len(server.requests) - before <= 6


@pytest.mark.parametrize(
    "body",
    [b"", b"hello", b"0000", b"ffff", b"000a# serv", b"001e# service=git-upload-pack\n0000", b"0009ERR x",
     b"001e# service=git-upload-pack\n0000000eversion 2\n0000", b"0000" * 1000],
)  # fmt: skip
def test_a_server_that_talks_nonsense_is_no_repository_or_empty(http: Place, server: GitServer, body: bytes) -> None:
    server.faults.body = body

    with suppress(NotARepository):  # any other error fails the test
        assert http.clone.list_remote(http.remote) == {}


def test_a_pack_over_the_limit_leaves_the_clone_as_it_was(http: Place, tmp_path: Path) -> None:
    clone = Clone.open(tmp_path / "small", limits=PackLimits(pack=100))
    refs = clone.list_remote(http.remote)

    with pytest.raises(LimitExceeded):
        clone.fetch(http.remote, refs)

    assert clone.refs == {}
    assert list((tmp_path / "small" / "objects" / "pack").iterdir()) == []


def test_an_object_over_the_limit_is_refused(http: Place, tmp_path: Path) -> None:
    blob = run_git(http.repository, "hash-object", "-w", "--stdin", data=b"\0" * 1_000_000)
    tree = run_git(http.repository, "mktree", data=f"100644 blob {blob}\tbomb\n".encode())
    run_git(http.repository, "update-ref", MAIN, run_git(http.repository, "commit-tree", tree, "-m", "bomb"))
    clone = Clone.open(tmp_path / "small", limits=PackLimits(object=100_000))

    with pytest.raises(LimitExceeded):
        clone.fetch(http.remote, clone.list_remote(http.remote))

    assert clone.refs == {}


def test_a_broken_clone_starts_over(http: Place) -> None:
    clone = synced(http)
    for pack in (clone.path / "objects" / "pack").glob("*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(b"torn")
    (clone.path / "objects" / "pack" / "tmp_pack_x.pack").write_bytes(b"left behind")

    again = Clone.open(clone.path)
    again.fetch(http.remote, again.list_remote(http.remote))

    assert again.commit(again.refs[MAIN]).message.startswith("Initial commit")
    assert list((clone.path / "objects" / "pack").glob("tmp_*")) == []


def test_a_directory_that_is_no_clone_is_made_one(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "junk").write_text("x")

    clone = Clone.open(tmp_path / "c")

    assert clone.refs == {}
    assert run_git(tmp_path / "c", "rev-parse", "--is-bare-repository") == "true"


def test_a_torn_loose_object_is_missing_rather_than_wrong(http: Place) -> None:
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x")
    clone.add_objects(objects)
    path = clone.path / "objects" / oid[:2] / oid[2:]
    path.write_bytes(path.read_bytes()[:30])

    with pytest.raises(ObjectMissing):
        clone.read(oid)


def test_consolidation_keeps_every_object_readable_and_git_agrees(http: Place) -> None:
    clone = synced(http)
    head = clone.refs[MAIN]
    kept: list[GitObject] = []
    for number in range(120):
        head, objects = new_commit(clone, f"pkg{number:04d}", f"v{number}", parent=head)
        clone.add_objects(objects)
        kept += objects
        if number == 60:
            clone.consolidate(force=True)
    clone.consolidate(force=True)

    assert all(clone.read(item.oid) == item for item in kept)
    assert all(Clone.open(clone.path).read(item.oid) == item for item in kept)
    assert run_git(clone.path, "fsck", "--full").count("missing") == 0
    assert list((clone.path / "objects").glob("??/*")) == []
    assert len(list((clone.path / "objects" / "pack").glob("*.pack"))) == 1


def test_consolidating_while_packs_are_added_loses_none(tmp_path: Path) -> None:
    """A pack that is still being written must not look like a broken one to whoever tidies up."""
    clone = Clone.open(tmp_path / "clone.git")
    added: list[str] = []
    done = threading.Event()

    def tidy() -> None:
        while not done.is_set():
            clone.consolidate(force=True)

    tidying = threading.Thread(target=tidy)
    tidying.start()
    try:
        for number in range(60):
            objects = [blob(b"%d of %d" % (one, number)) for one in range(10)]
            clone.add_objects(objects)
            added += [one.oid for one in objects]
    finally:
        done.set()
        tidying.join()

    assert [oid for oid in added if not clone.has(oid)] == []
    assert {clone.read(oid).oid for oid in added} == set(added)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_every_way_a_server_may_speak_is_understood(
    http: Place, server: GitServer, protocol: int, gzip: bool, chunked: bool
) -> None:
    for setting, value in {"protocol": protocol, "gzip": gzip, "chunked": chunked, "private": True}.items():
        setattr(server.faults, setting, value)
    clone = synced(http)
    oid, objects = new_commit(clone, "p", "x" * 5000)

    clone.push(http.remote, [RefUpdate("refs/heads/drafts/p/w", None, oid)], objects)
    other = Clone.open(clone.path.with_name("other"))
    other.fetch(http.remote, other.list_remote(http.remote))

    assert other.refs["refs/heads/drafts/p/w"] == oid
    assert other.commit(oid).parents == (clone.refs[MAIN],)
    with pytest.raises(AuthenticationFailed):
        clone.list_remote(Remote(http.remote.url, timeout=2))


@pytest.mark.parametrize("text", ["", "\r\n", "canary: x\r\nX-Evil: 1"])
def test_credentials_cannot_add_headers(http: Place, server: GitServer, text: str) -> None:
    server.faults.private = True
    before = len(server.requests)

    with pytest.raises((AuthenticationFailed, NotARepository, UnsafeAddress)) as refused:
        http.clone.list_remote(Remote(http.remote.url, Credentials(text, text), timeout=2))

    assert "canary" not in str(refused.value)
    assert all("X-Evil" not in headers for _, _, headers in server.requests[before:])


def test_git_gets_nothing_of_ours_before_the_separator(tmp_path: Path) -> None:
    odd = create_repository(tmp_path / "--upload-pack=id" / "r.git")
    recorder, said = tmp_path / "git", tmp_path / "said"
    recorder.write_text(f'#!/bin/sh\necho "$@" >> {said}\nexec {GIT} "$@"\n')
    recorder.chmod(0o755)
    clone = Clone.open(tmp_path / "clone", git=str(recorder))
    remote = Remote(odd.as_uri(), timeout=10)
    refs = clone.list_remote(remote)
    clone.fetch(remote, refs)
    clone.push(remote, [RefUpdate("refs/heads/x", None, refs[MAIN])], [])

    carried = [line for line in said.read_text().splitlines() if "-pack --stateless-rpc" in line]

    assert len(carried) >= 3
    for line in carried:
        before, separator, after = line.partition(" -- ")
        assert separator
        assert after == str(odd)
        assert str(tmp_path) not in before

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.git.carriers import git_environment, is_forbidden
from storage.git.commits import (
    COMMITTER,
    Annotation,
    Identity,
    approval_line,
    build_commit,
    first_line,
    format_message,
    parse_annotations,
    parse_commit,
)
from storage.git.errors import CorruptObject, UnsafeAddress, UnsafePath
from storage.git.refs import deletion_ref, draft_ref, parse_ref, proposed_ref, tag_ref
from storage.git.remote import Credentials, Remote, without_userinfo

TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_refs_have_upstreams_names() -> None:
    assert draft_ref("dir/a/b", "w1") == "refs/heads/drafts/dir/a/b/w1"
    assert proposed_ref("a", "w1") == "refs/heads/proposed/a/w1"
    assert tag_ref("a", 3) == "refs/tags/a/v3"
    assert deletion_ref("a", 3) == "refs/heads/deletionProposed/a/v3"
    assert deletion_ref("a", "main") == "refs/heads/deletionProposed/a/main"


@pytest.mark.parametrize(
    ("ref", "directory", "meaning"),
    [
        pytest.param("refs/tags/a/b/v3", "", ("tag", "a/b", "v3", 3), id="tag"),
        pytest.param("refs/tags/d/a/3", "d", ("tag", "a", "3", 3), id="tag without v, below a directory"),
        pytest.param("refs/tags/a/v1.2", "", ("tag", "a", "v1.2", -1), id="other versions are no revisions"),
        pytest.param("refs/tags/a/v0", "", ("tag", "a", "v0", -1), id="zero is none"),
        pytest.param("refs/tags/v1", "", None, id="tag without a package"),
        pytest.param("refs/tags/da/a/v1", "d", None, id="another directory with the same beginning"),
        pytest.param("refs/heads/drafts/d/a/w", "d", ("draft", "a", "w", -1), id="draft"),
        pytest.param("refs/heads/proposed/a/w", "", ("proposed", "a", "w", -1), id="proposed"),
        pytest.param("refs/heads/deletionProposed/a/v2", "", ("deletion", "a", "v2", 2), id="deletion"),
        pytest.param("refs/heads/main", "d", ("branch", "", "main", -1), id="branch"),
        pytest.param("refs/notes/commits", "", None, id="something else"),
    ],
)
def test_a_ref_says_what_it_means(ref: str, directory: str, meaning: tuple[str, str, str, int] | None) -> None:
    found = parse_ref(ref, directory)

    assert (found and (found.kind, found.package, found.name, found.revision)) == meaning


@pytest.mark.parametrize("name", ["a..b", "a b", "-x", "a~", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{1}", ".a", "a.lock", "a.", "a//b", "\x7f", "a\n"])  # fmt: skip
def test_a_name_git_or_a_command_line_would_misread_is_refused(name: str) -> None:
    with pytest.raises(UnsafePath):
        draft_ref("pkg", name)


def test_a_commit_reads_back_and_its_committer_is_the_service() -> None:
    task = {"type": "clone", "clone": {"upstreamRef": {}}}
    message = format_message(first_line("clone"), Annotation("d/a", "w1", "0", task))

    made = build_commit(TREE, ("1" * 40, "2" * 40), Identity("Ann <x>", "ann@example.com\n"), message, 1_700_000_000)
    info = parse_commit(made.data)

    assert (info.tree, info.parents) == (TREE, ("1" * 40, "2" * 40))
    assert (info.author_name, info.author_email, info.author_time) == ("Ann x", "ann@example.com", 1_700_000_000)
    assert f"committer {COMMITTER.name} <{COMMITTER.email}> 1700000000 +0000".encode() in made.data
    assert info.message.startswith("Creating new revision by cloning\n\nkpt:{")
    assert parse_annotations(info.message) == [Annotation("d/a", "w1", "0", task)]


def test_annotations_that_are_not_understood_are_skipped() -> None:
    message = 'x\n\nkpt:{bad\n kpt:{"package":"a","revision":"v1"}\nkpt:[]\nkpt:{"package":1}\nnot kpt:{}\n'

    assert parse_annotations(message) == [Annotation("a", "v1", "v1")]


def test_an_approval_commit_has_no_task() -> None:
    message = format_message(approval_line("a/b", 3), Annotation("a/b", "w", "3"))

    assert message.splitlines()[0] == "Approving package revision a/b/3"
    assert '"task"' not in message


@given(st.binary(max_size=200))
def test_any_bytes_are_a_commit_or_a_typed_error(data: bytes) -> None:
    for candidate in (data, b"tree " + TREE.encode() + b"\n" + data):
        with suppress(CorruptObject):  # any other error fails the test
            parse_commit(candidate)


@pytest.mark.parametrize(
    "url",
    ["ssh://host/x", "ext::sh -c id", "git://h/x", "http://-oProxy/x", "http://u:secret@h/x", "file://other/x",
     "file:relative", "file:///a/../b", "http:///x", "http://h:0/x", "http://h/x y", "http://h/x?y", "h:x", "http://h\\@evil/",
     "http://[::1", "https://" + "a" * 3000],
)  # fmt: skip
def test_an_unsafe_address_is_refused_without_repeating_secrets(url: str) -> None:
    with pytest.raises(UnsafeAddress) as refused:
        Remote(url)

    assert "secret" not in str(refused.value)


def test_secrets_do_not_show() -> None:
    remote = Remote("https://git.example/x", Credentials("u", "hunter2"))

    assert "hunter2" not in repr(remote) + str(remote.credentials) + remote.address
    assert without_userinfo("https://u:hunter2@git.example/x") == "https://git.example/x"


def test_metadata_and_link_local_peers_are_forbidden_and_loopback_is_not() -> None:
    forbidden = ["169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "::ffff:169.254.169.254", "::", "224.0.0.1"]

    assert all(map(is_forbidden, forbidden))
    assert not any(map(is_forbidden, ["127.0.0.1", "10.0.0.1", "::1", "192.0.2.1"]))


def test_a_git_process_inherits_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "evil")
    monkeypatch.setenv("GIT_DIR", "elsewhere")

    environment = git_environment("version=2")

    assert environment["GIT_CONFIG_GLOBAL"] == environment["HOME"] == "/dev/null"
    assert not {"GIT_SSH_COMMAND", "GIT_DIR"} & environment.keys()

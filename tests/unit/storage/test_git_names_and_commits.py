from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.git.address import SshAddress, holds_credentials
from storage.git.carriers import git_environment
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
from storage.git.remote import Credentials, Remote, SshKey

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
    ["ssh://-oProxyCommand=id/x", "ssh://git:secret@h/x", "ssh://git@h/", "ssh://h/a'b", "ssh://h/$(id)", "ssh://h/../x",
     "ssh://-l@h/x", "git@h:-x", "git@h::x", "git@-h:x", "git@h:a b", "-x@h:y", "ext::sh -c id", "ext::x@h:y", "git://h/x", "http://-oProxy/x", "http://u:secret@h/x", "file://other/x",
     "file:relative", "FILE:///a", "file:///a/../b", "http:///x", "http://h:0/x", "http://h/x y", "http://h/x?y", "h:x", "http://h\\@evil/",
     "http://[::1", "https://" + "a" * 3000],
)  # fmt: skip
def test_an_unsafe_address_is_refused_without_repeating_secrets(url: str) -> None:
    with pytest.raises(UnsafeAddress) as refused:
        Remote(url)

    assert "secret" not in str(refused.value)


def test_secrets_do_not_show() -> None:
    remote = Remote("https://git.example/x", Credentials("u", "hunter2"))

    assert "hunter2" not in repr(remote) + str(remote.credentials) + remote.address
    key = Remote("git@git.example:x", SshKey(b"hunter2", b"git.example ssh-rsa AAAA"))
    assert "hunter2" not in repr(key) + str(key.credentials) + key.address


@pytest.mark.parametrize(
    ("url", "held"),
    [
        ("https://u:secret@h/x", True),
        ("https://token@h/x", True),
        ("https://u:a/b@c@h/x", False),
        ("ssh://git:secret@h/x", True),
        ("ssh://git@h/x", False),
        ("git@h:x", False),
        ("https://h/x@y", False),
        ("file:///a@b", False),
        ("", False),
    ],
)
def test_credentials_in_an_address_are_told_from_the_user_of_an_ssh_address(url: str, held: bool) -> None:
    assert holds_credentials(url) is held


@pytest.mark.parametrize(
    ("url", "user", "host", "port", "path"),
    [
        ("ssh://git@git.example:2222/a/b.git", "git", "git.example", 2222, "/a/b.git"),
        ("ssh://git.example/a", "git", "git.example", 22, "/a"),
        ("ssh://me@[::1]:22/~me/a", "me", "::1", 22, "~me/a"),
        ("git@git.example:a/b.git", "git", "git.example", 22, "a/b.git"),
        ("me@[::1]:a", "me", "::1", 22, "a"),
    ],
)
def test_both_forms_of_ssh_addresses_are_read(url: str, user: str, host: str, port: int, path: str) -> None:
    assert Remote(url).ssh == SshAddress(user, host, port, path)


def test_a_git_process_inherits_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_SSH_COMMAND", "evil")
    monkeypatch.setenv("GIT_DIR", "elsewhere")

    environment = git_environment("version=2")

    assert environment["GIT_CONFIG_GLOBAL"] == environment["HOME"] == "/dev/null"
    assert not {"GIT_SSH_COMMAND", "GIT_DIR"} & environment.keys()

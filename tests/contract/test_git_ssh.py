"""Remotes over SSH: who may log in, which hosts are believed, and what happens when a server misbehaves.

The story that all kinds of remotes share is in ``test_git_remotes.py``.
"""

import ipaddress
import pwd
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncssh
import pytest
from git_server import create_repository, run_git
from ssh_server import SshServer, ssh_server

from storage.git import ssh_connections
from storage.git.clone import Clone, RefUpdate
from storage.git.errors import (
    AuthenticationFailed,
    GitError,
    HostKeyUnknown,
    NotARepository,
    PushRejected,
    RemoteUnavailable,
    UnsafeAddress,
)
from storage.git.network import NetworkPolicy
from storage.git.remote import Credentials, Remote, SshKey
from storage.git.ssh_connections import IDLE_SECONDS


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    create_repository(tmp_path / "r.git")
    with ssh_server(tmp_path) as running:
        yield running


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone.open(tmp_path / "clone")


def remote(server: SshServer, timeout: float = 10) -> Remote:
    return Remote(server.url("r.git"), SshKey(server.key, server.known_hosts), timeout=timeout)


def test_connections_are_shared_by_conversations_one_after_the_other(server: SshServer, clone: Clone) -> None:
    for _ in range(5):
        clone.list_remote(remote(server))

    # Giving back and taking race once in a while; without sharing it would be ten logins.
    assert server.logins <= 2
    assert IDLE_SECONDS < 60


def test_conversations_at_the_same_time_do_not_wait_for_each_other(server: SshServer, clone: Clone) -> None:
    with ThreadPoolExecutor(12) as pool:
        listings = list(pool.map(lambda _: clone.list_remote(remote(server)), range(24)))

    assert all(listing == listings[0] for listing in listings)
    assert list(listings[0]) == ["refs/heads/main"]


def test_a_host_that_nobody_vouched_for_is_not_logged_in_at(server: SshServer, clone: Clone) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key()
    assert server.host_key is not None
    shown = server.host_key.get_fingerprint()
    for known in (b"", b"[127.0.0.1]:%d " % server.port + other, b"nonsense \xff\n", b"#"):
        with pytest.raises(HostKeyUnknown, match="known_hosts") as refused:
            clone.list_remote(Remote(server.url("r.git"), SshKey(server.key, known), timeout=30))

        assert shown in str(refused.value)
    assert server.logins == 0


def test_a_revoked_host_key_stays_refused(server: SshServer, clone: Clone) -> None:
    revoked = b"@revoked " + server.known_hosts + b"\n" + server.known_hosts

    with pytest.raises(HostKeyUnknown):
        clone.list_remote(Remote(server.url("r.git"), SshKey(server.key, revoked), timeout=30))


def test_known_hosts_of_the_user_are_not_looked_at(
    server: SshServer, clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_bytes(server.known_hosts)
    (tmp_path / ".ssh" / "config").write_text(f"Host *\n  User other\n  IdentityFile {tmp_path}/none\n")
    (tmp_path / ".ssh" / "id_ed25519").write_bytes(server.key)
    monkeypatch.setenv("HOME", str(tmp_path))
    stranger = asyncssh.generate_private_key("ssh-ed25519").export_private_key()

    with pytest.raises(HostKeyUnknown):
        clone.list_remote(Remote(server.url("r.git"), SshKey(server.key), timeout=30))
    with pytest.raises(AuthenticationFailed):
        clone.list_remote(Remote(server.url("r.git"), SshKey(stranger, server.known_hosts), timeout=30))

    assert list(clone.list_remote(remote(server))) == ["refs/heads/main"]


@pytest.mark.parametrize(
    "key", [b"", b"junk", b"-----BEGIN OPENSSH PRIVATE KEY-----\nxx\n-----END OPENSSH PRIVATE KEY-----\n"]
)
def test_a_secret_without_a_key_says_so(server: SshServer, clone: Clone, key: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="ssh-privatekey is no private key"):
        clone.list_remote(Remote(server.url("r.git"), SshKey(key, server.known_hosts), timeout=30))


def test_an_encrypted_key_says_what_is_wrong(server: SshServer, clone: Clone) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", passphrase="canary-passphrase")

    with pytest.raises(AuthenticationFailed, match="without a passphrase"):
        clone.list_remote(Remote(server.url("r.git"), SshKey(key, server.known_hosts), timeout=30))


@pytest.mark.parametrize("credentials", [None, Credentials("git", "canary")])
def test_an_ssh_address_needs_a_key(server: SshServer, clone: Clone, credentials: Credentials | None) -> None:
    with pytest.raises(AuthenticationFailed, match=r"kubernetes\.io/ssh-auth") as refused:
        clone.list_remote(Remote(server.url("r.git"), credentials, timeout=30))

    assert "canary" not in str(refused.value)


def test_a_key_that_is_exchanged_counts_from_the_next_conversation_on(server: SshServer, clone: Clone) -> None:
    old = remote(server)
    clone.list_remote(old)
    server.key = server.new_key()

    assert list(clone.list_remote(remote(server))) == ["refs/heads/main"]
    assert server.logins >= 2


def test_a_key_that_may_only_read_is_refused_when_it_pushes(server: SshServer, clone: Clone) -> None:
    there = remote(server)
    refs = clone.list_remote(there)
    clone.fetch(there, refs)
    server.faults.read_only = True

    with pytest.raises(PushRejected, match="this key may only read"):
        clone.push(there, [RefUpdate("refs/heads/x", None, refs["refs/heads/main"])], [])


def test_a_repository_that_is_not_there_says_what_the_host_said(server: SshServer, clone: Clone) -> None:
    with pytest.raises(NotARepository, match="not appear to be a git repository"):
        clone.list_remote(Remote(server.url("none.git"), SshKey(server.key, server.known_hosts), timeout=30))


@pytest.mark.parametrize("said", [b"Welcome!\r\n", b"zzzz", b"0009ERR x", b"\x00" * 5000, b"0000"])
def test_a_server_that_talks_nonsense_is_no_repository_or_empty(server: SshServer, clone: Clone, said: bytes) -> None:
    server.faults.garbage = said

    try:
        refs = clone.list_remote(remote(server, timeout=2))
    except (NotARepository, RemoteUnavailable):
        refs = {}

    assert refs == {}


def test_a_server_that_hangs_is_given_up_in_time(server: SshServer, clone: Clone) -> None:
    server.faults.hang = True
    begun = time.monotonic()

    with pytest.raises(RemoteUnavailable, match=r"no answer in time|not done within"):
        clone.list_remote(remote(server, timeout=0.5))

    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("after", [1, 200, 2000, 60_000])
def test_an_answer_that_is_cut_short_is_never_taken_for_whole(server: SshServer, clone: Clone, after: int) -> None:
    repository = server.root / "r.git"
    head = run_git(repository, "rev-parse", "main")
    commands = "".join(f"create refs/heads/drafts/p{number:04}/w {head}\n" for number in range(2000))
    run_git(repository, "update-ref", "--stdin", data=commands.encode())
    server.faults.cut_after = after

    for accepts in (True, False):
        server.accepts_protocol = accepts
        with pytest.raises((RemoteUnavailable, NotARepository)):
            clone.list_remote(remote(server, timeout=30))

    server.faults.cut_after = 0
    assert len(clone.list_remote(remote(server))) == 2001


def test_a_push_that_is_cut_short_is_never_taken_for_done(server: SshServer, clone: Clone) -> None:
    there = remote(server, timeout=30)
    refs = clone.list_remote(there)
    clone.fetch(there, refs)
    seen, low, high = {"not sent"}, 1, 4000
    while "unknown" not in seen and high - low > 1:
        after = server.faults.cut_after = (low + high) // 2
        ref = f"refs/heads/x{after}"
        try:
            clone.push(there, [RefUpdate(ref, None, refs["refs/heads/main"])], [])
        except (RemoteUnavailable, NotARepository, PushRejected) as error:
            unknown = isinstance(error, RemoteUnavailable) and error.outcome_unknown
            outcome = "unknown" if unknown else "not sent"
        else:
            outcome = "done"
        server.faults.cut_after = 0
        seen.add(outcome)
        low, high = (after, high) if outcome == "not sent" else (low, after)

        assert outcome == "unknown" or (ref in clone.list_remote(there)) == (outcome == "done")

    # Between the end of the greeting and that of the report, nobody can tell.
    assert seen == {"not sent", "unknown", "done"}


def test_a_push_whose_connection_breaks_before_the_greeting_is_not_taken_for_a_refusal(
    server: SshServer, clone: Clone
) -> None:
    there = remote(server)
    refs = clone.list_remote(there)
    clone.fetch(there, refs)
    server.faults.hang = True
    with ThreadPoolExecutor(1) as pool:
        push = pool.submit(clone.push, there, [RefUpdate("refs/heads/x", None, refs["refs/heads/main"])], [])
        while not server.commands[-1].startswith("git-receive-pack"):
            time.sleep(0.01)
        server.drop_connections()

        with pytest.raises(RemoteUnavailable) as broken:
            push.result(10)
    assert not broken.value.outcome_unknown


def test_connections_that_the_server_closed_are_replaced(server: SshServer, clone: Clone) -> None:
    clone.list_remote(remote(server))
    server.drop_connections()

    assert list(clone.list_remote(remote(server))) == ["refs/heads/main"]
    assert server.logins >= 2


def test_no_shell_sees_more_than_one_word(server: SshServer, clone: Clone) -> None:
    clone.list_remote(remote(server))

    assert {command.split(" ", 1)[1] for command in server.commands} == {f"'{server.root}/r.git'"}


def test_a_denied_network_is_not_connected_to_over_ssh(server: SshServer, clone: Clone) -> None:
    policy = NetworkPolicy((ipaddress.ip_network("127.0.0.0/8"),))

    with pytest.raises(UnsafeAddress, match="no repository may use"):
        clone.list_remote(
            Remote(server.url("r.git"), SshKey(server.key, server.known_hosts), network=policy, timeout=2)
        )

    assert server.logins == 0


def test_nobody_listening_is_unavailable(clone: Clone) -> None:
    with pytest.raises(RemoteUnavailable, match="connection refused"):
        clone.list_remote(
            Remote(
                "ssh://git@127.0.0.1:9/x",
                SshKey(asyncssh.generate_private_key("ssh-ed25519").export_private_key()),
                timeout=2,
            )
        )


def test_a_user_without_a_name_can_log_in(monkeypatch: pytest.MonkeyPatch, server: SshServer, clone: Clone) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    monkeypatch.setattr(ssh_connections, "_shared", [])

    assert list(clone.list_remote(remote(server))) == ["refs/heads/main"]


def test_known_hosts_that_cannot_be_read_say_so(server: SshServer, clone: Clone) -> None:
    for known in (b"@nobody host ssh-rsa AAAA\n", b"|1|%%% ssh-rsa AAAA\n"):
        with pytest.raises(HostKeyUnknown, match="known_hosts"):
            clone.list_remote(Remote(server.url("r.git"), SshKey(server.key, known), timeout=30))


def test_threads_do_not_grow_with_conversations(server: SshServer, clone: Clone) -> None:
    clone.list_remote(remote(server))
    before = threading.active_count()
    for _ in range(10):
        with pytest.raises(GitError):
            clone.list_remote(Remote(server.url("none.git"), SshKey(server.key, server.known_hosts), timeout=30))

    assert threading.active_count() <= before

"""Where connections to remotes may lead."""

import ipaddress
import socket
import time

import pytest

from storage.git.errors import UnsafeAddress
from storage.git.network import NetworkPolicy, connect, is_forbidden


def test_metadata_and_link_local_peers_are_forbidden_and_loopback_is_not() -> None:
    forbidden = [
        "169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "::ffff:169.254.169.254", "::", "224.0.0.1",
        "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "100.100.100.200",
    ]  # fmt: skip

    assert all(map(is_forbidden, forbidden))
    assert not any(map(is_forbidden, ["127.0.0.1", "10.0.0.1", "::1", "192.0.2.1", "2001:db8::1"]))


def test_denied_networks_are_refused_however_the_address_is_written() -> None:
    policy = NetworkPolicy((ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fc00::/7")))

    assert all(map(policy.refuses, ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "169.254.0.1"]))
    assert not any(map(policy.refuses, ["127.0.0.1", "192.0.2.1", "2001:db8::1"]))


def test_a_name_that_leads_to_a_denied_address_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        answers = [
            [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.9", port))],
            [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))],
        ]
        # The name changes its mind once it was looked up, as an attacker's would.
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: answers.pop(0))
        policy = NetworkPolicy((ipaddress.ip_network("192.0.2.0/24"),))

        with pytest.raises(UnsafeAddress, match=r"rebinds\.example leads to 192\.0\.2\.9"):
            connect("rebinds.example", port, policy, 1)

        assert len(answers) == 1
        listening.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_each_address_of_a_name_is_tried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # localhost may mean ::1 first, where nobody listens.
        connected = connect("localhost", listening.getsockname()[1], NetworkPolicy(), 5)

        assert connected.getpeername()[0] == "127.0.0.1"
        connected.close()


def test_a_name_with_many_dead_addresses_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing answers there (RFC 5737), or something says at once that there is no way.
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{host}", 9)) for host in range(1, 100)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
    begun = time.monotonic()

    with pytest.raises(OSError):  # noqa: PT011 -- which kind depends on the network
        connect("dead.example", 9, NetworkPolicy(), 0.5)

    assert time.monotonic() - begun < 20, "half a second for each of 99 addresses would be fifty"


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "no-such-host.invalid", "\udcff"])
def test_what_is_no_host_cannot_be_resolved(host: str) -> None:
    with pytest.raises(OSError):  # noqa: PT011 -- which kind depends on the resolver
        connect(host, 1, NetworkPolicy(), 1)

"""Where connections to remotes may lead: a name is resolved once, each address is judged, and that one is connected.

Source: users.md 7.3 row 4. A tenant who registers a repository chooses where the server connects to.
"""

import ipaddress
import socket
import time
from dataclasses import dataclass

from storage.git.errors import UnsafeAddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_METADATA = frozenset({"fd00:ec2::254", "100.100.100.200"})
"""Addresses of cloud metadata services that are not link-local."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """Networks that no remote may be in, besides those that never may (see :func:`is_forbidden`)."""

    denied: tuple[Network, ...] = ()

    def refuses(self, address: str) -> bool:
        """Tell whether an IP address must not be connected to."""
        if is_forbidden(address):
            return True
        judged = _judged(address)
        return any(judged in network for network in self.denied if network.version == judged.version)


def is_forbidden(address: str) -> bool:
    """Tell whether an IP address is link-local (cloud metadata), multicast or unspecified."""
    judged = _judged(address)
    return str(judged) in _METADATA or judged.is_link_local or judged.is_multicast or judged.is_unspecified


def connect(host: str, port: int, policy: NetworkPolicy, timeout: float | None) -> socket.socket:
    """Return a connection to the first address of ``host`` that answers.

    ``timeout`` is in seconds and bounds all tries together, however many addresses a name has; the first gets half of it.

    What is connected to is an address that was judged: a name that resolves differently the next time gains nothing.

    Raises:
        UnsafeAddress: the policy refuses one of the addresses.
        OSError: the name cannot be resolved (``socket.gaierror``), or no address answers.
    """
    # IDNA as socket.create_connection does it; a name that cannot be encoded is no name.
    try:
        name = host.strip("[]").encode("idna")
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from error
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    for *_, address in found:
        if policy.refuses(str(address[0])):
            raise UnsafeAddress(f"{host} leads to {address[0]}, which no repository may use")
    problem: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
    begun = time.monotonic()
    for family, kind, protocol, _, address in found:
        left = None if timeout is None else timeout - (time.monotonic() - begun)
        if left is not None and left <= 0:
            break
        attempt = socket.socket(family, kind, protocol)
        try:
            attempt.settimeout(left if left is None or len(found) == 1 else left / 2)
            attempt.connect(address)
            attempt.settimeout(timeout)
            attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            attempt.close()
            problem = error
        else:
            return attempt
    raise problem


def _judged(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address that is really meant: an IPv4 address may be dressed up as an IPv6 one."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _NAT64:
            return ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        return parsed.ipv4_mapped or parsed.sixtofour or parsed
    return parsed

"""Kubernetes' functions on IP addresses, address ranges and URLs. Source: "CEL in Kubernetes"."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from krm.expressions.errors import CelEvaluationError
from krm.expressions.values import no_overload

Ip = IPv4Address | IPv6Address
Cidr = IPv4Interface | IPv6Interface

_MAX_TEXT: Final = 8192
_SAFE_IN_PATH: Final = "/%:@!$&'()*+,;=~"


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL."""

    parts: SplitResult


def ip(value: Any) -> Ip:
    """Read an address.

    Raises:
        CelEvaluationError: it is none, has a zone, or is an IPv4 address written as IPv6.
    """
    if isinstance(value, Cidr):
        return value.ip
    if not isinstance(value, str):
        raise no_overload()
    try:
        address = ip_address(value)
    except ValueError as error:
        raise CelEvaluationError(f"IP Address {value[:64]!r} parse error during conversion from string") from error
    if isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None):
        raise CelEvaluationError(f"IP Address {value[:64]!r}: IPv4-mapped addresses and zones are not allowed")
    return address


def cidr(value: Any) -> Cidr:
    """Read a range of addresses.

    Raises:
        CelEvaluationError: it is none.
    """
    if not isinstance(value, str):
        raise no_overload()
    address, _, bits = value.partition("/")
    if not bits.isascii() or not bits.isdigit() or (len(bits) > 1 and bits.startswith("0")):
        raise CelEvaluationError(f"network address parse error during conversion from string: {value[:64]!r}")
    try:
        return ip_interface(f"{ip(address)}/{bits}")
    except ValueError as error:
        raise CelEvaluationError(
            f"network address parse error during conversion from string: {value[:64]!r}"
        ) from error


def url(value: Any) -> Url:
    """Read an absolute URL, or a path from the root.

    Raises:
        CelEvaluationError: it is neither.
    """
    if not isinstance(value, str):
        raise no_overload()
    try:
        parts = urlsplit(value[:_MAX_TEXT])
        _ = parts.port
    except ValueError as error:
        raise CelEvaluationError(f"URL parse error during conversion from string: {value[:64]!r}") from error
    if not (parts.scheme or value.startswith("/")) or " " in parts.netloc or len(value) > _MAX_TEXT:
        raise CelEvaluationError(f"URL parse error during conversion from string: {value[:64]!r}")
    return Url(parts)


def _can(read: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, str):
            raise no_overload()
        try:
            read(value)
        except CelEvaluationError:
            return False
        return True

    return check


def _contains_ip(owner: Cidr, address: Any) -> bool:
    return (address if isinstance(address, Ip) else ip(address)) in owner.network


def _contains_cidr(owner: Cidr, other: Any) -> bool:
    inner = (other if isinstance(other, Cidr) else cidr(other)).network
    return inner.version == owner.version and inner.subnet_of(owner.network)  # type: ignore[arg-type] # of one version


def _is_global_unicast(address: Ip) -> bool:
    return not (
        address.is_multicast
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or address == IPv4Address("255.255.255.255")
    )


def _is_link_local_multicast(address: Ip) -> bool:
    if isinstance(address, IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02  # noqa: PLR2004 - ff02::/16, RFC 4291


def _host(value: Url) -> str:
    return value.parts.netloc.rpartition("@")[2]


def _hostname(value: Url) -> str:
    host = _host(value)
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "ip": ip,
    "isIP": _can(ip),
    "cidr": cidr,
    "isCIDR": _can(cidr),
    "url": url,
    "isURL": _can(url),
}
METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "ip": ip,
    "family": lambda address: address.version,
    "isUnspecified": lambda address: address.is_unspecified,
    "isLoopback": lambda address: address.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda address: address.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "masked": lambda owner: ip_interface(str(owner.network)),
    "prefixLength": lambda owner: owner.network.prefixlen,
    "getScheme": lambda value: value.parts.scheme,
    "getHost": _host,
    "getHostname": _hostname,
    "getPort": lambda value: str(value.parts.port) if value.parts.port is not None else "",
    "getEscapedPath": lambda value: quote(value.parts.path, safe=_SAFE_IN_PATH),
    "getQuery": lambda value: parse_qs(value.parts.query, keep_blank_values=True),
}
NAMESPACE: Final[Mapping[str, Callable[..., Any]]] = {"isCanonical": lambda text: str(ip(text)) == text}

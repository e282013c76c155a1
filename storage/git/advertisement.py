"""Read what a remote says about its refs, fast: whole bodies, byte searches, no object per ref beyond the result.

The protocol's pieces (pkt-lines, capabilities) are those of gitprotocol-common and gitprotocol-v2; dulwich's own
readers build three dictionaries and a set per listing, which costs more than the network at 10,000 refs.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from dulwich.protocol import pkt_line

from storage.git.errors import LimitExceeded, NotARepository

MAX_REFS = 1_000_000
"""Refs accepted from one remote."""

MAX_BODY = 256 << 20
"""Bytes of an advertisement: a million refs of 250 bytes each."""

_HEX = 40
_PREFIXES = (b"refs/heads/", b"refs/tags/")


@dataclass(frozen=True, slots=True)
class Advertisement:
    """What stands at the head of a conversation: protocol version, capabilities, and where the refs begin."""

    version: int
    capabilities: frozenset[bytes]
    body: bytes = field(repr=False)
    start: int = 0


def read_advertisement(body: bytes, service: bytes) -> Advertisement:
    """Read the answer to ``info/refs``.

    Raises:
        NotARepository: it is no Git advertisement, or one of a repository with other object ids.
    """
    line, at = _line(body, 0)
    if line is not None and line.rstrip(b"\n") == b"# service=" + service:
        line, at = _line(body, at)  # the flush after it
        if line is None:
            start = at
            line, at = _line(body, at)
        else:
            raise NotARepository("the remote's greeting is malformed")
    else:
        start = 0
    if line is not None and line.rstrip(b"\n") == b"version 2":
        lines = list(pkt_lines(body, at))
        return _checked(Advertisement(2, frozenset(lines), body, len(body)))
    if line is not None and line.rstrip(b"\n") == b"version 1":
        start = at  # nothing but this line tells it from version 0
        line, at = _line(body, at)
    if line is None:
        return Advertisement(0, frozenset(), body, start)
    if line.startswith(b"ERR "):
        raise NotARepository(f"the remote says: {line[4:204].decode('utf-8', 'replace').strip()}")
    name, separator, capabilities = line.partition(b"\0")
    if not separator or len(name) < _HEX + 2:
        raise NotARepository("the remote's list of refs is malformed")
    return _checked(Advertisement(0, frozenset(capabilities.split()), body, start))


def all_refs(advertisement: Advertisement) -> dict[str, str]:
    """Return every branch and tag of a version 0 advertisement, without HEAD and peeled entries."""
    return refs_in(advertisement.body, advertisement.start)


def refs_in(body: bytes, start: int = 0) -> dict[str, str]:
    """Return the branches and tags of a run of ``<id> <name>`` lines, as versions 0 and 2 both send it.

    Names that are not UTF-8 are left out: no package revision can have one.

    Raises:
        LimitExceeded: there are more than :data:`MAX_REFS`.
        NotARepository: a line is malformed.
    """
    refs: dict[str, str] = {}
    for line in pkt_lines(body, start):
        if not line.startswith(_PREFIXES, _HEX + 1):
            continue
        name = line[_HEX + 1 :]
        end = name.find(b"\0")
        name = (name if end < 0 else name[:end]).rstrip(b"\n")
        if name.endswith(b"^{}"):
            continue
        space = name.find(b" ")  # attributes of version 2
        try:
            refs[(name if space < 0 else name[:space]).decode()] = line[:_HEX].decode("ascii")
        except UnicodeDecodeError:
            continue
        if len(refs) > MAX_REFS:
            raise LimitExceeded(f"the remote has more than {MAX_REFS} refs")
    return refs


def some_refs(advertisement: Advertisement, names: Collection[bytes]) -> dict[bytes, bytes]:
    """Return the ids of the named refs only, found by searching the bytes; absent ones are left out."""
    found: dict[bytes, bytes] = {}
    body = advertisement.body
    for name in names:
        for end in (b"\n", b"\0"):
            at = body.find(b" " + name + end, advertisement.start)
            if at >= _HEX:
                found[name] = body[at - _HEX : at]
                break
    return found


def ls_refs_request(capabilities: Collection[bytes], agent: bytes) -> bytes:
    """Build the version 2 command that lists branches and tags, unpeeled."""
    lines = [pkt_line(b"command=ls-refs\n"), pkt_line(agent)]
    if any(capability.startswith(b"object-format=") for capability in capabilities):
        lines.append(pkt_line(b"object-format=sha1"))
    lines.append(b"0001")
    lines += [pkt_line(b"ref-prefix " + prefix + b"\n") for prefix in _PREFIXES]
    return b"".join([*lines, b"0000"])


def pkt_lines(body: bytes, at: int = 0) -> Iterator[bytes]:
    """Yield the lines of a body up to its flush.

    Raises:
        NotARepository: there is no flush: whoever sent it was cut short, and refs may be missing.
    """
    while at < len(body):
        line, at = _line(body, at)
        if line is None:
            return
        yield line
    raise NotARepository("the remote's answer ends early")


def _line(body: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the line at an offset (None: a flush or delimiter) and where the next one starts."""
    try:
        size = int(body[at : at + 4], 16)
    except ValueError as error:
        raise NotARepository("the remote does not speak Git's protocol") from error
    if size < 4:  # noqa: PLR2004 -- the length counts its own four digits; less is a control packet
        return None, at + 4
    if at + size > len(body):
        raise NotARepository("the remote's answer ends in the middle of a line")
    return body[at + 4 : at + size], at + size


def _checked(advertisement: Advertisement) -> Advertisement:
    for capability in advertisement.capabilities:
        name, _, value = capability.strip().partition(b"=")
        if name == b"object-format" and value != b"sha1":
            raise NotARepository("the remote uses object ids other than SHA-1, which are not supported")
    return advertisement

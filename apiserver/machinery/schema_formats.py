"""The ``format`` keyword of custom resources: which formats kube-apiserver checks, and what it lets pass.

Formats that are not in ``FORMATS`` say something to people and tools only. Every check is linear in the length of the
text: texts come from strangers. Source: ``kube-api.md`` 2.15; the looseness of single checks is kube-apiserver's (1.34).
"""

import ipaddress
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

import re2

_MAX_TEXT: Final = 8192
"""Characters that a formatted text may have; all formats but byte and password are far shorter."""


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re2.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_BYTE = re2.compile(
    r"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}="
)
_TOP_LEVEL: Final = 2
"""Letters that the last of several labels of a host name has at least."""
_DATE_TIME = re2.compile(r"(\d{4}-\d\d-\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:.\d+)?(?:[Zz]|[-+]\d\d:\d\d)")
_GO_DURATION = re2.compile(r"[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+)")
_SPOKEN_DURATION = re2.compile(
    r"(?i)\d\s*(?:(?:ns|us|µs|ms|s|m|h|hr|d|w|wk)|(?:nano|micro|milli|sec|min|hour|day|week)[a-zµ]*)(?:[^a-zµ]|$)"
)
_ATOM: Final = r"[-a-zA-Z0-9!#$%&'*+/=?^_`{|}~\x{80}-\x{10ffff}]+"
_QUOTED: Final = r'"(?:[^"\\\r\n]|\\.)*"'
_ADDRESS: Final = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_ATOM}(?:\.{_ATOM})*|\[[0-9a-fA-F.:]+\])"
_EMAIL = re2.compile(rf"\s*(?:{_ADDRESS}|(?:(?:{_ATOM}|{_QUOTED}|[.\s])*)<\s*{_ADDRESS}\s*>)\s*")
_URI_PARTS = re2.compile(r"(?:([a-zA-Z][-a-zA-Z0-9+.]*):(?://([^/?]*))?)?(.*)")
_BAD_ESCAPE = re2.compile(r"%(?:[^0-9a-fA-F]|$|[0-9a-fA-F](?:[^0-9a-fA-F]|$))")
_AUTHORITY = re2.compile(r"(?:[^\s<>\"@\[\]]*@)?(?:\[[0-9a-fA-F:.]+(?:%25[^\]]*)?\]|[^\s:\[\]@\\^`{}|%]*)(?::\d*)?")
_CARD = re2.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}"
)
_MAC = re.compile(
    r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2}|(?:[0-9a-f]{2}\1){14})?[0-9a-f]{2}",
    re.IGNORECASE,
)
_DOTTED_MAC = re.compile(
    r"[0-9a-f]{4}(?:(?:\.[0-9a-f]{4}){2}|(?:\.[0-9a-f]{4}){3}|(?:\.[0-9a-f]{4}){9})", re.IGNORECASE
)
_NOT_DIGIT = re.compile(r"[^0-9]")
_ISBN_10 = 10
_ISBN_13 = 13
_MAX_LABEL = 63
_OCTETS = 4
_OCTET_LIMIT = 256


def is_date(text: str) -> bool:
    """Tell whether the text is a full date of RFC 3339."""
    if len(text) != len("2006-01-02"):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return "-" in text and text[:4].isascii()


def is_date_time(text: str) -> bool:
    """Tell whether the text is a date and time of RFC 3339; any character may stand before the fraction."""
    match = _DATE_TIME.fullmatch(text)
    return match is not None and is_date(match[1])


def is_duration(text: str) -> bool:
    """Tell whether the text is a duration: Go's ``1h30m`` or spoken, like ``2 weeks``."""
    return bool(_GO_DURATION.fullmatch(text) or _SPOKEN_DURATION.search(text))


def is_byte(text: str) -> bool:
    """Tell whether the text is padded base64; none at all is not."""
    return _BYTE.fullmatch(text) is not None


def is_ip(text: str) -> bool:
    """Tell whether the text is an address of either family, leading zeros and all."""
    return _ipv4(text) or _ipv6(text)


def _ipv4(text: str) -> bool:
    octets = text.split(".")
    return len(octets) == _OCTETS and all(
        octet.isascii() and octet.isdigit() and int(octet) < _OCTET_LIMIT
        for octet in octets
        if len(octet) <= _MAX_LABEL
    )


def _ipv6(text: str) -> bool:
    if ":" not in text or "%" in text:
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_ipv4(text: str) -> bool:
    return _ipv4(text) or (_ipv6(text) and ipaddress.IPv6Address(text).ipv4_mapped is not None)


def is_cidr(text: str) -> bool:
    """Tell whether the text is an address and the length of its prefix."""
    address, slash, bits = text.partition("/")
    if not slash or not (bits.isascii() and bits.isdigit()) or len(bits) > _OCTETS:
        return False
    return int(bits) <= (32 if _ipv4(address) else 128) and is_ip(address)


def is_uri(text: str) -> bool:
    """Tell whether the text is what a request line may hold: an absolute address, or a path from the root."""
    if any(char < " " or char == "\x7f" for char in text):
        return False
    match = _URI_PARTS.fullmatch(text)
    if match is None:
        return False
    scheme, authority, rest = match.groups()
    if authority is not None and not _AUTHORITY.fullmatch(authority):
        return False
    rooted = rest.startswith("/")
    if not scheme or (authority is None and not rooted):
        return bool(scheme) or (rooted and not _BAD_ESCAPE.search(rest.partition("?")[0]))
    return not _BAD_ESCAPE.search(rest.partition("?")[0])


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    if not all(0 < len(label) <= _MAX_LABEL and all(_in_label(char) for char in label) for label in labels):
        return False
    if len(labels) == 1:
        return text[0] != "-" and "--" not in text
    if any(label[0] == "-" or label[-1] == "-" for label in labels):
        return False
    last = labels[-1]
    return len(last) >= _TOP_LEVEL and all(char.isalpha() for char in last)


def _in_label(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in "-$+<=>^`|~"
    return unicodedata.category(char)[0] in "LS"


def _is_mac(text: str) -> bool:
    return bool(_MAC.fullmatch(text) or _DOTTED_MAC.fullmatch(text))


def _is_isbn10(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if len(digits) != _ISBN_10 or not digits[:-1].isdigit() or not (digits[-1].isdigit() or digits[-1] == "X"):
        return False
    values = [10 if char == "X" else int(char) for char in digits]
    return digits.isascii() and sum(value * (10 - at) for at, value in enumerate(values)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if len(digits) != _ISBN_13 or not (digits.isascii() and digits.isdigit()):
        return False
    return sum(int(char) * (3 if at % 2 else 1) for at, char in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = _NOT_DIGIT.sub("", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = [int(char) * (2 if at % 2 else 1) for at, char in enumerate(reversed(digits))]
    return math.fsum(value - 9 if value > 9 else value for value in doubled) % 10 == 0  # noqa: PLR2004 - Luhn


_UUID: Final = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?[0-9a-f]{12}"
_ANY_FORM: Final = _UUID % "[0-9a-f]{4}-?[0-9a-f]{4}"
_CHANNEL: Final = r"\s*(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*"

FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "byte": is_byte,
    "cidr": is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "mac": _is_mac,
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": is_uri,
    "uuid": _matches(_ANY_FORM),
    "uuid3": _matches(_UUID % "3[0-9a-f]{3}-?[0-9a-f]{4}"),
    "uuid4": _matches(_UUID % "4[0-9a-f]{3}-?[89ab][0-9a-f]{3}"),
    "uuid5": _matches(_UUID % "5[0-9a-f]{3}-?[89ab][0-9a-f]{3}"),
}
"""Format, without dashes → whether a text has it."""


def format_check(name: str) -> Callable[[str], bool] | None:
    """Return the check of a format, or None if nothing checks it; ``date-time`` and ``datetime`` are one format."""
    check = FORMATS.get(name.replace("-", ""))
    if check is None or check is is_byte:
        return check
    return lambda text: len(text) <= _MAX_TEXT and check(text)

"""Function images: their grammar, full names and versions. Source: ``kpt.md`` 1.3, 2.14 and 4.3."""

import re
from dataclasses import dataclass

DEFAULT_PREFIX = "ghcr.io/kptdev/krm-functions-catalog/"
"""Put before names without a slash."""

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)
_LONGEST = 512
"""Characters of an image reference; also keeps the pattern's work small."""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_PLAIN_TAG = re.compile(r"v?[0-9.]+|[A-Za-z0-9_-]{2,}")
"""Tags that need no second look: versions, and words without a dot."""
_VERSION = re.compile(r"v?([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:\.([0-9]{1,6}))?(?:[-+].*)?")
NEWEST = (1 << 30, 0, 0)
"""The version of images that name none, or name ``latest`` or ``unstable``."""
_ANY = 1 << 30

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Image:
    """A parsed reference with its registry and path."""

    name: str
    """With registry and path, without tag and digest."""
    tag: str
    digest: str

    @property
    def base(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def prefix(self) -> str:
        """The name up to and with the last slash."""
        return self.name[: -len(self.base)]

    @property
    def version(self) -> Version | None:
        """The version the tag stands for, parts it leaves open being the highest; None when it is none."""
        if self.tag in ("", "latest", "unstable", "master"):
            return NEWEST
        found = _VERSION.fullmatch(self.tag)
        if found is None:
            return None
        major, minor, patch = (int(part) if part is not None else _ANY for part in found.groups())
        return major, minor, patch

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + self.digest


def is_reference(text: str) -> bool:
    """Say whether ``text`` is a well-formed image reference."""
    return len(text) <= _LONGEST and _REFERENCE.fullmatch(text) is not None


def is_version_constraint(tag: str) -> bool:
    """Say whether a function's ``tag`` is a range of versions (``~0.2``), or at least cannot be a tag."""
    if _PLAIN_TAG.fullmatch(tag):
        return False
    if _TAG.fullmatch(tag) is None:
        return True
    from krm.functions.version_range import is_range  # most packages have no range, and semver takes 15 ms to import

    return is_range(tag)


def checked_prefix(prefix: str) -> str:
    """Return what goes before short image names, with its closing slash.

    Raises:
        ValueError: it has a scheme, a query or a fragment, or would not begin an image reference.
    """
    problem = ""
    if "://" in prefix:
        problem = "must not include a scheme (e.g. https://)"
    elif "?" in prefix or "#" in prefix:
        problem = "must not include a query or fragment (? or #)"
    elif not is_reference(f"{prefix.rstrip('/')}/name"):
        problem = "must be a registry and path such as ghcr.io/kptdev/krm-functions-catalog"
    if problem:
        raise ValueError(f'invalid image prefix "{prefix}": {problem}')
    return prefix.rstrip("/") + "/"


def parse_image(text: str, tag: str = "", *, prefix: str = DEFAULT_PREFIX) -> Image:
    """Return the full reference: ``prefix`` before short names, ``tag`` over its own, else ``latest``.

    Raises:
        ValueError: ``text`` is no image reference.
    """
    found = _REFERENCE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise ValueError(text)
    name = found["name"] if "/" in found["name"] else prefix + found["name"]
    digest = "" if tag else found["digest"] or ""
    tag = tag or found["tag"] or ("" if digest else "latest")
    return Image(name, tag, digest)

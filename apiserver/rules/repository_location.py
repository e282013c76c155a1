"""Which part of which Git repository a Repository object claims, and when two claims cannot stand beside each other.

Source: ``porch-api.md`` 9 (repository webhook).
"""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

Json = dict[str, Any]

_SCP: Final = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!/)(.+)")
"""``user@host:path``, as ssh writes addresses."""
_USUAL_PORTS: Final = {"http": 80, "https": 443, "ssh": 22}


@dataclass(frozen=True, slots=True)
class Place:
    """A branch of a Git repository, however its address is written."""

    repository: str
    branch: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What one Repository object has of a place; ``directory`` is empty for all of it."""

    namespace: str
    name: str
    place: Place
    directory: str

    def conflicts_with(self, other: "Claim") -> bool:
        """Tell whether two claims on one place cannot both stand: packages of one would be packages of the other."""
        if (self.namespace, self.name) == (other.namespace, other.name) or self.place != other.place:
            return False
        if self.directory == other.directory:
            return self.namespace == other.namespace
        inner, outer = sorted((self.directory, other.directory), key=len, reverse=True)
        return not outer or inner.startswith(f"{outer}/")


def claim_of(body: Json) -> Claim | None:
    """Return what a Repository object claims; None for one that is not about Git, or whose fields make no sense."""
    spec, metadata = body.get("spec"), body.get("metadata")
    git = spec.get("git") if isinstance(spec, dict) else None
    if not isinstance(git, dict) or not isinstance(metadata, dict):
        return None
    url, branch, directory = git.get("repo"), git.get("branch") or "main", git.get("directory") or ""
    if not (isinstance(url, str) and url and isinstance(branch, str) and isinstance(directory, str)):
        return None
    path = "/".join(part for part in directory.split("/") if part not in ("", "."))
    place = Place(normalised_address(url), branch)
    return Claim(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), place, path)


def normalised_address(url: str) -> str:
    """Return the same text for all the ways to write one repository's address: host and path, without ``.git``."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return url
    if not parts.scheme and (found := _SCP.fullmatch(url)):
        host, path, port = found[1].lower(), found[2], None
    else:
        path = unquote(parts.path)
    if port is not None and port != _USUAL_PORTS.get(parts.scheme.lower()):
        host = f"{host}:{port}"
    trimmed = "/".join(part for part in path.split("/") if part).removesuffix(".git")
    return f"{host}/{trimmed}"

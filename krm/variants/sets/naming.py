"""Names of the variants of a set: stable, at most 63 characters, one for each pair of repository and package.

Source: ``variants.md`` 3.5; C-23, C-24.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from krm.meta.names import subdomain_problem

Pair = tuple[str, str]
"""Downstream repository and package: what a variant is for, and its identity within its set."""

MAX_LENGTH: Final = 63
_STUB: Final = 54
"""Characters before the hyphen and the hash."""
_DIGITS: Final = MAX_LENGTH - _STUB - 1
_ATTEMPTS: Final = 3
"""Names that are tried at most when a name is looked for: more are never taken unless somebody wants trouble."""
_OTHER: Final = re.compile(r"[^-a-z0-9.]")


def identifier(set_name: str, pair: Pair) -> str:
    """Return what identifies a variant for people: the names of set, repository and package."""
    return f"{set_name}-{pair[0]}-{pair[1]}"


def names(set_name: str, pairs: Sequence[Pair], existing: Mapping[Pair, str]) -> dict[Pair, str]:
    """Return a name for each pair; what ``existing`` has keeps the name that it has.

    Two pairs with the same identifier get different names: the first, in the order of repository and package, the
    plain one, unless it is taken already. The order of ``pairs`` does not count.
    """
    found = {pair: existing[pair] for pair in pairs if pair in existing}
    taken = set(existing.values())
    for pair in sorted(set(pairs) - found.keys()):
        name, attempt = plain_name(set_name, pair), 0
        while name in taken:
            name, attempt = distinct_name(set_name, pair, attempt), attempt + 1
        taken.add(name)
        found[pair] = name
    return found


def plain_name(set_name: str, pair: Pair) -> str:
    """Return the name of a pair that shares its identifier with no other."""
    return shortened(identifier(set_name, pair))


def shortened(whole: str) -> str:
    """Return an identifier as a name: as it is, or shortened and made valid, with a hash of what it was."""
    if subdomain_problem(whole):
        return f"{_stub(_OTHER.sub('-', whole))}-{_hash(whole)}"
    return whole if len(whole) <= MAX_LENGTH else f"{_stub(whole)}-{_hash(whole)}"


def distinct_name(set_name: str, pair: Pair, attempt: int = 0) -> str:
    """Return the name of a pair whose plain name another one has; the next ``attempt`` if that is taken, too."""
    hashed = _hash(f"{set_name}/{pair[0]}/{pair[1]}" + (f"#{attempt}" if attempt else ""))
    return f"{_stub(_OTHER.sub('-', identifier(set_name, pair)))}-{hashed}"


def could_be_named(set_name: str, pair: Pair, name: str) -> bool:
    """Tell whether a variant of a pair, made by this set and changed by nobody, can have a name."""
    return name == plain_name(set_name, pair) or any(
        name == distinct_name(set_name, pair, attempt) for attempt in range(_ATTEMPTS)
    )


def _stub(text: str) -> str:
    """Cut a text so that a hyphen and a hash may follow."""
    cut = text[:_STUB]
    cut = f"{cut[:-1]}-" if cut.endswith(".") else cut
    return cut if not subdomain_problem(f"{cut}-0") else cut.replace(".", "-")


def _hash(text: str) -> str:
    """Return hexadecimal digits that stand for a text; nothing is secret here."""
    return hashlib.sha1(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:_DIGITS]

"""The administrator's token: in the generated kubeconfig, for clients that cannot use a client certificate.

The data directory keeps only its digest and its end; the token itself stands in the kubeconfig alone, which only
its owner may read. It is made anew at a start when it is missing, revoked (the record was deleted) or near
its end. Source: ``kube-api.md`` 3.6 (d).
"""

import datetime as dt
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from apiserver.auth.bearer import InvalidToken, TokenIdentity, token_digest
from apiserver.auth.identity import AUTHENTICATED, CREDENTIAL_ID
from apiserver.auth.watched_file import WatchedFile
from apiserver.machinery.rest import User

LIFE = dt.timedelta(days=30)
"""How long a token is good for; the server makes a new one at a start in the last third."""
RENEW_BEFORE = dt.timedelta(days=10)

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_ID_LENGTH = 6
_SECRET_LENGTH = 32
_FORM = re.compile(rf"[a-z0-9]{{{_ID_LENGTH}}}\.[a-z0-9]{{{_SECRET_LENGTH}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token: its public part, the digest of the whole, its end, and whose it is."""

    id: str
    digest: str
    """SHA-256 in hexadecimal. No salt and no slow hash: 165 random bits cannot be tried out."""
    expires: dt.datetime
    user: str
    groups: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "TokenRecord":
        """Read the file's text.

        Raises:
            ValueError: it is not a record.
        """
        try:
            record = orjson.loads(text)
            expires = dt.datetime.fromisoformat(record["expires"])
            groups = tuple(map(str, record["groups"]))
            return cls(
                str(record["id"]), str(record["sha256"]), expires.astimezone(dt.UTC), str(record["user"]), groups
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "it is not the record of a token; delete it, and the next start makes a new one"
            ) from error

    def encode(self) -> bytes:
        """Return the file's text."""
        return orjson.dumps(
            {
                "id": self.id,
                "sha256": self.digest,
                "expires": self.expires.isoformat(),
                "user": self.user,
                "groups": self.groups,
            },
            option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
        )

    def matches(self, token: str) -> bool:
        """Tell whether this is the token's record, in a time that does not depend on the token."""
        return hmac.compare_digest(self.digest, token_digest(token).hex())


class BootstrapToken:
    """Knows the administrator by the token whose record lies at ``path``; deleting the file revokes it at once."""

    def __init__(self, path: Path, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)) -> None:
        self._path = path
        self._file = WatchedFile(path, TokenRecord.parse)
        self._now = now

    async def identify(self, token: str) -> TokenIdentity | None:
        """Return the administrator for the token; None for what does not look like one.

        Raises:
            InvalidToken: it looks like one and is wrong, expired or revoked.
        """
        if not _FORM.fullmatch(token):
            return None
        record = self._file.current() if self._path.exists() else None
        if record is None or not record.matches(token):
            raise InvalidToken
        if self._now() >= record.expires:
            raise InvalidToken("bearer token has expired; a start of the server makes a new one")
        groups = tuple(dict.fromkeys((*record.groups, AUTHENTICATED)))
        return TokenIdentity(User(record.user, groups, extra={CREDENTIAL_ID: (f"BOOTSTRAP={record.id}",)}))


def is_still_good(record_path: Path, token: str) -> bool:
    """Tell whether a token is that of the record and not near its end."""
    try:
        record = TokenRecord.parse(record_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return record.matches(token) and dt.datetime.now(dt.UTC) < record.expires - RENEW_BEFORE


def new_token(user: str, groups: Sequence[str]) -> tuple[str, TokenRecord]:
    """Make a token and its record."""
    identity, secret = (_random(length) for length in (_ID_LENGTH, _SECRET_LENGTH))
    token = f"{identity}.{secret}"
    expires = dt.datetime.now(dt.UTC) + LIFE
    return token, TokenRecord(identity, token_digest(token).hex(), expires, user, tuple(groups))


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))

"""Tokens listed in a file: ``token,user,uid,"group1,group2"``, one a line.

Source: ``kube-api.md`` 3.6 (e); the format is that of kube-apiserver's ``--token-auth-file``.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

from apiserver.auth.bearer import TokenIdentity, token_digest
from apiserver.auth.identity import AUTHENTICATED, unique
from apiserver.auth.watched_file import WatchedFile
from apiserver.machinery.rest import User

_COLUMNS = 3
"""Columns every line has: token, user, uid."""


class TokenFile:
    """Knows users by the tokens of a file, which may change at any time; only digests are kept in memory.

    Raises:
        UnusableFile: the file cannot be used at the start. Later that is logged, and the tokens stay what they were.
    """

    def __init__(self, path: Path) -> None:
        self._file = WatchedFile(path, parse_tokens)
        self._file.load()

    async def identify(self, token: str) -> TokenIdentity | None:
        """Return whom a token of the file stands for."""
        user = (self._file.current() or {}).get(token_digest(token))
        return None if user is None else TokenIdentity(user)


def parse_tokens(text: str) -> Mapping[bytes, User]:
    """Read the file: digest of the token → user. Empty lines are skipped; of equal tokens the last counts.

    Raises:
        ValueError: a line has fewer than three columns, or no token or user; the message names the line only.
    """
    users = {}
    reader = csv.reader(text.splitlines(), strict=True, skipinitialspace=True)
    try:
        for row in reader:
            if not row:
                continue
            if len(row) < _COLUMNS or not row[0].strip() or not row[1].strip():
                raise ValueError(f"line {reader.line_num} is not token,user,uid or token,user,uid,groups")
            groups = row[3].split(",") if len(row) > _COLUMNS else ()
            names = unique((*(group.strip() for group in groups), AUTHENTICATED))
            users[token_digest(row[0].strip())] = User(row[1].strip(), names, row[2].strip())
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} is not comma-separated text with double quotes") from error
    return users

"""A migration that SIGKILL ends after its n-th statement: a program of its own, so that nothing of it can be tidied up.

Arguments: the database, upgrade or downgrade, the schema, n. The exit code is 0 if there were not that many statements.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from storage.sql.migrate import downgrade, is_postgres, upgrade


def main() -> None:
    """Migrate, and die."""
    where, direction, revision, last = sys.argv[1:]
    left = int(last)

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(Engine, "after_cursor_execute", count)
    target = where if is_postgres(where) else Path(where)
    {"upgrade": upgrade, "downgrade": downgrade}[direction](target, revision)


if __name__ == "__main__":
    main()

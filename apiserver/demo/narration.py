"""Show what the demo does: a sentence, the command as one would type it, and what it printed."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import TextIO

SHOWN_LINES = 24
"""Lines of one output that are shown; the rest is counted."""
COMMAND_SECONDS = 120.0


class StoryBroken(Exception):
    """Something went otherwise than the story tells; the message says what was expected."""


class Narrator:
    """Runs commands in one folder with one environment, and prints them."""

    def __init__(self, folder: Path, environment: Mapping[str, str], out: TextIO | None = None) -> None:
        self.folder = folder
        self._environment = {**os.environ, **environment}
        self._out = out or sys.stdout

    def chapter(self, title: str) -> None:
        """Print a heading."""
        self._print(f"\n=== {title}")

    def say(self, *sentences: str) -> None:
        """Print what happens next."""
        self._print("\n" + "\n".join(f"# {sentence}" for sentence in sentences))

    def show(self, *command: str, lines: int = SHOWN_LINES, into: str = "", refused: bool = False) -> str:
        """Run a command, print it with its output, and return the output; ``into`` names a file that takes it instead.

        Raises:
            StoryBroken: it failed, or, with ``refused``, did not fail.
        """
        self._print(f"$ {shlex.join(command)}" + (f" > {into}" if into else ""))
        done = self.run(*command)
        printed = done.stdout if done.returncode == 0 else done.stdout + done.stderr
        if into and done.returncode == 0:
            (self.folder / into).write_text(done.stdout)
        else:
            self._print_some(printed.splitlines(), lines)
        if (done.returncode != 0) != refused:
            expected = "be refused" if refused else "succeed"
            raise StoryBroken(f"`{shlex.join(command)}` should {expected}; it exited {done.returncode}")
        return printed

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command silently."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Print a command and start it in the background; its output is the caller's to read."""
        self._print(f"$ {shlex.join(command)} &")
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, name: str, text: str) -> None:
        """Write a file and print it."""
        (self.folder / name).write_text(text)
        self._print(f"$ cat {name}")
        self._print_some(text.splitlines(), SHOWN_LINES * 2)

    def edit(self, name: str, *changes: tuple[str, str]) -> None:
        """Replace text in a file as an editor would, printing each change.

        Raises:
            StoryBroken: the file does not have the text.
        """
        path = self.folder / name
        text = path.read_text()
        self._print(f"$ $EDITOR {name}")
        for old, new in changes:
            if old not in text:
                raise StoryBroken(f"{name} should contain {old!r}")
            text = text.replace(old, new, 1)
            self._print_some([f"- {line}" for line in old.splitlines()], SHOWN_LINES)
            self._print_some([f"+ {line}" for line in new.splitlines()], SHOWN_LINES)
        path.write_text(text)

    def expect(self, holds: bool, what: str) -> None:
        """Print what was checked.

        Raises:
            StoryBroken: it does not hold.
        """
        if not holds:
            raise StoryBroken(f"expected: {what}")
        self._print(f"✓ {what}")

    def print_lines(self, lines: Sequence[str]) -> None:
        """Print lines that came from elsewhere."""
        self._print_some(lines, SHOWN_LINES * 3)

    def _print_some(self, lines: Sequence[str], limit: int) -> None:
        for line in lines[:limit]:
            self._print(line)
        if len(lines) > limit:
            self._print(f"… {len(lines) - limit} more lines")

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class SecondWindow:
    """A command left running; its lines are shown when the story looks at it again."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.lines: list[str] = []
        self._reader = Thread(target=self._read, name="second window", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self.lines.append(line.rstrip("\n"))

    def close(self) -> None:
        """End the command."""
        self._process.terminate()
        self._process.wait(timeout=10)
        self._reader.join(timeout=10)

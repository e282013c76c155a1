"""Real ``kubectl`` for tests: run it, feed it objects, and collect what ``get -w`` prints.

It belongs to the end-to-end fixtures of ``conftest.py``; the machine's kubectl is used, or the one that the
environment variable ``KUBECTL`` names.
"""

import functools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

import pytest
import yaml
from eventually import PATIENCE

KUBECTL = os.environ.get("KUBECTL", "kubectl")
TIMEOUT = 90.0
"""Seconds one kubectl command may take; a hung server must fail a test, not the suite."""

Object = dict[str, Any]


def needs_kubectl(minor: int, what: str) -> None:
    """Skip the test where kubectl is older than 1.``minor`` and cannot do ``what``."""
    if _minor_version() < minor:
        pytest.skip(f"{what} came with kubectl 1.{minor}")


@functools.cache
def _minor_version() -> int:
    command = [KUBECTL, "version", "--client", "--output=json"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout
    version: str = json.loads(printed)["clientVersion"]["gitVersion"]
    return int(version.split(".")[1])


class KubectlFailed(AssertionError):
    """A command that had to succeed did not; carries what it printed."""

    def __init__(self, command: list[str], done: "subprocess.CompletedProcess[str]") -> None:
        super().__init__(f"{' '.join(command)} exited {done.returncode}\n{done.stdout}{done.stderr}")


@dataclass(frozen=True)
class Kubectl:
    """A callable kubectl for one server and one default namespace.

    Calling it returns the completed process, whatever its exit code. The other methods raise
    :class:`KubectlFailed` when the command fails.
    """

    kubeconfig: Path
    namespace: str = "default"
    cache: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="kubectl-cache-"))

    def command(self, *arguments: str) -> list[str]:
        """Return the full command line."""
        return [
            KUBECTL,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.cache}",
            f"--namespace={self.namespace}",
            *arguments,
        ]

    def __call__(
        self, *arguments: str, stdin: str | Object | None = None, timeout: float = TIMEOUT
    ) -> "subprocess.CompletedProcess[str]":
        """Run one command; ``stdin`` may be an object, which is sent as JSON."""
        text = json.dumps(stdin) if isinstance(stdin, dict) else stdin
        command = self.command(*arguments)
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout, check=False)

    def ok(self, *arguments: str, stdin: str | Object | None = None, timeout: float = TIMEOUT) -> str:
        """Run a command that must succeed; return what it printed."""
        done = self(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode:
            raise KubectlFailed(self.command(*arguments), done)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """Run a command with ``-o json`` and return what it printed, decoded."""
        return json.loads(self.ok(*arguments, "-o", "json"))

    def apply(self, *objects: Object) -> str:
        """Apply objects."""
        return self.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def create(self, created: Object) -> Object:
        """Create one object and return it as the server answered."""
        answer: Object = json.loads(self.ok("create", "-o", "json", "-f", "-", stdin=created))
        return answer

    def replace(self, changed: Object, *arguments: str) -> Object:
        """Replace one object and return it as the server answered."""
        answer: Object = json.loads(self.ok("replace", "-o", "json", "-f", "-", *arguments, stdin=changed))
        return answer

    def within(self, namespace: str) -> "Kubectl":
        """Return a kubectl for another namespace."""
        return replace(self, namespace=namespace)

    def watch(self, *arguments: str) -> "WatchedLines":
        """Start a command that keeps printing, such as ``get -w``; use as a context manager."""
        return WatchedLines(self.command(*arguments))


class WatchedLines:
    """The lines that a running command has printed so far. Leaving the context ends the command."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._reader: Thread | None = None
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        self._reader = Thread(target=self._read, name="kubectl watch", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._reader is not None
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, wanted: Callable[[list[str]], bool], timeout: float = PATIENCE) -> list[str]:
        """Wait until the lines satisfy ``wanted`` and return them; fail with what was printed otherwise."""
        deadline = time.monotonic() + timeout
        while not wanted(list(self.lines)):
            if time.monotonic() > deadline:
                printed = "\n".join(self.lines)
                raise AssertionError(f"after {timeout} s {' '.join(self._command)} had printed:\n{printed}")
            time.sleep(0.02)
        return list(self.lines)

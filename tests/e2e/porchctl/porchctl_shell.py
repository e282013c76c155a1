"""Run the command lines of upstream's cases: porchctl as a stand-in, kubectl, kpt as ``porch fn``, and sh."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import remotes
import yaml
from kubectl import KUBECTL, TIMEOUT
from porch_process import PorchProcess
from porchctl_cases import WORKDIR, Place, Step, wait_until_ready
from porchctl_client import Done, Porchctl

_VARIES = re.compile(r"\s*(- )?(resourceVersion|creationTimestamp):")


class Shell:
    """A scratch folder, and the programs with one server and one Git host behind them."""

    def __init__(self, place: Place, server: PorchProcess, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self._kubectl = [KUBECTL, "--kubeconfig", str(server.kubeconfig), "--cache-dir", str(folder / "cache")]
        self._porchctl = Porchctl(place.client)
        (folder / "test_pkgs").symlink_to(remotes.DATA / "porch")

    def porchctl(self, *arguments: str) -> Done:
        """Run porchctl in the case's namespace."""
        return self.run(["porchctl", *arguments, f"--namespace={self._place.client.namespace}"])

    def kubectl(self, *arguments: str) -> Done:
        """Run kubectl in the case's namespace."""
        return self.run(["kubectl", *arguments, f"--namespace={self._place.client.namespace}"])

    def run(self, arguments: Sequence[str], stdin: str = "") -> Done:
        """Run one command line of a case."""
        program, *rest = [self._ours(argument) for argument in arguments]
        done = self._run(program, rest, self._ours(stdin))
        return Done(self._theirs(done.stdout), self._theirs(done.stderr), done.exit_code)

    def _run(self, program: str, arguments: list[str], stdin: str) -> Done:
        if program == "porchctl":
            done = self._porchctl.run(arguments, stdin)
            if arguments[:2] == ["repo", "register"] and not done.exit_code:
                wait_until_ready(self._place.client, _registered(arguments))
            return done
        if program == "kubectl":
            command = [*self._kubectl, *arguments]
        elif program == "kpt":
            command = [sys.executable, "-m", "apiserver", *arguments]
        else:
            command = [program, *arguments]
        ran = subprocess.run(
            command, input=stdin, cwd=self._folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        return Done(ran.stdout, ran.stderr, ran.returncode)

    def _ours(self, text: str) -> str:
        return self._place.ours(text).replace(WORKDIR, str(self._folder))

    def _theirs(self, text: str) -> str:
        return self._place.theirs(text).replace(str(self._folder), WORKDIR)


def _registered(arguments: Sequence[str]) -> str:
    named = [argument.removeprefix("--name=") for argument in arguments if argument.startswith("--name=")]
    return named[0] if named else next(it for it in arguments if "://" in it).rpartition("/")[2]


def wrong(step: Step, done: Done) -> str:
    """Return in what way a command did not do what its case says; nothing if it did.

    Lines are compared sorted and without those that vary, YAML as what it says, and what functions print without the
    lines that only say that they passed. kpt is another program, for which ``porch fn`` stands in: it has to succeed.
    """
    if done.exit_code != step.exit_code:
        return f"exit code {done.exit_code} instead of {step.exit_code}: {done.stderr}"
    if step.arguments[0] == "kpt":
        return ""
    is_yaml = step.stdout.startswith("apiVersion:")
    stdout = [_parsed(it) if is_yaml else _lines(it, step.ignore_whitespace) for it in (step.stdout, done.stdout)]
    if stdout[0] != stdout[1]:
        return f"stdout {done.stdout!r} instead of {step.stdout!r}"
    wanted, printed = (" ".join(_without_passes(it).split()) for it in (step.stderr, done.stderr))
    same = wanted in printed if step.contains_error else wanted == printed
    return "" if same else f"stderr {done.stderr!r} instead of {step.stderr!r}"


def _parsed(text: str) -> object:
    return yaml.safe_load("\n".join(line for line in text.splitlines() if not _VARIES.match(line)))


def _lines(text: str, ignore_whitespace: bool) -> list[str]:
    kept = [line for line in text.splitlines() if not _VARIES.match(line)]
    return sorted(" ".join(line.split()) if ignore_whitespace else line.rstrip() for line in kept)


def _without_passes(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("[PASS]"))

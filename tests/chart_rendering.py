"""Helm, unmodified, with the chart of the project; ``make controlplane`` builds it."""

import functools
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "porch"
CASES = sorted((Path(__file__).parent / "chart" / "values").glob("*.yaml"))
HELM = ROOT / ".build" / "helm"
HELM_4 = ROOT / ".build" / "helm-4"
NAMESPACE = "porch-system"
RELEASE = "porch"
SECONDS = 120
OFFLINE = ("--kube-version", "1.34.2")
"""Of which Kubernetes Helm shall think without one; a build of one's own thinks of 1.20."""
POD_KINDS = {"Deployment", "Job"}

Object = dict[str, Any]
Done = subprocess.CompletedProcess[str]


def built(program: Path) -> Path:
    """Return a program of ``.build``; skip the test where it was not built."""
    if not program.exists():
        pytest.skip(f".build/{program.name} is not there: make .build/{program.name} builds it, from Go modules")
    return program


@dataclass(frozen=True)
class Helm:
    """A callable Helm: returns the completed process, whatever its exit code. ``home`` is where it keeps its files."""

    program: Path
    home: Path
    kubeconfig: Path | None = None
    namespace: str = NAMESPACE

    def __call__(self, *arguments: str) -> Done:
        where = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return subprocess.run(
            [str(self.program), *arguments, *where, "--namespace", self.namespace],
            env={"HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def ok(self, *arguments: str) -> str:
        """Return what Helm printed; fail the test when it failed."""
        done = self(*arguments)
        assert done.returncode == 0, f"{done.args}\n{done.stdout}{done.stderr}"
        return done.stdout

    def template(self, *arguments: str) -> list[Object]:
        """Render the chart."""
        return documents(_rendered(self, arguments))

    def render(self, case: Path, **values: Any) -> list[Object]:
        """Render the chart with a file of values, and some more."""
        return self.template("--values", str(case), *settings(values))


def settings(values: Mapping[str, Any]) -> list[str]:
    """Return options that set values: ``server__replicas=3`` sets ``server.replicas``."""
    return [
        word
        for name, value in values.items()
        for word in ("--set-json", f"{name.replace('__', '.')}={json.dumps(value)}")
    ]


@functools.cache
def _rendered(helm: Helm, arguments: tuple[str, ...]) -> str:
    """Render once what many tests look at."""
    return helm.ok("template", RELEASE, str(CHART), *OFFLINE, *arguments)


def documents(text: str) -> list[Object]:
    return [one for one in yaml.load_all(text, Loader=yaml.CSafeLoader) if one]


def of_kind(objects: Iterable[Object], kind: str) -> list[Object]:
    return [one for one in objects if one["kind"] == kind]


def named(objects: Iterable[Object], kind: str, name: str) -> Object:
    (found,) = (one for one in of_kind(objects, kind) if one["metadata"]["name"] == name)
    return found


def pods(objects: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """Return name and template of everything that makes Pods, and Pods."""
    for one in objects:
        if one["kind"] in POD_KINDS:
            yield one["metadata"]["name"], one["spec"]["template"]
        if one["kind"] == "Pod":
            yield one["metadata"]["name"], one

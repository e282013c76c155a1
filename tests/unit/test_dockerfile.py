"""The image's recipe: least rights, nothing from unnamed places, and everything in it that the program needs.

There is no container engine where the tests run. So the recipe is read, and its own ``pip install`` of the sources is done
with exactly the files that it copies.
"""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 100


class Step(NamedTuple):
    """One instruction of the recipe, in the stage of that name."""

    stage: str
    instruction: str
    arguments: str


def steps() -> list[Step]:
    found, stage = [], ""
    text = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE))
    for line in text.splitlines():
        instruction, _, arguments = line.strip().partition(" ")
        if instruction == "FROM":
            stage = arguments.partition(" AS ")[2] or "last"
        if instruction:
            found.append(Step(stage, instruction, arguments.strip()))
    return found


STEPS = steps()


def of(instruction: str, stage: str | None = None) -> list[str]:
    return [step.arguments for step in STEPS if step.instruction == instruction and stage in (None, step.stage)]


def copied() -> list[tuple[str, str]]:
    """Return source and target of what comes from the project."""
    pairs = []
    for arguments in of("COPY", "build"):
        *sources, target = arguments.split()
        pairs += [(source, target) for source in sources]
    return pairs


def test_both_stages_are_debian_slim_of_the_python_that_the_project_is_tested_with() -> None:
    (python,) = of("ARG")

    assert of("FROM") == ["python:${PYTHON}-slim AS build", "python:${PYTHON}-slim"]
    assert python == "PYTHON=3.11"


def test_it_runs_as_a_numbered_user_without_rights_and_writes_to_one_folder() -> None:
    assert of("USER", "last") == ["10001:10001"]
    assert of("VOLUME", "last") == ["/var/lib/porch"]
    assert of("ENTRYPOINT", "last") == ['["porch"]']
    after = STEPS[[step.instruction for step in STEPS].index("USER") + 1 :]
    assert {step.instruction for step in after} <= {"WORKDIR", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}


def test_nothing_is_fetched_but_pinned_libraries_and_no_place_is_named() -> None:
    text = (ROOT / "Dockerfile").read_text()
    installs = [part for run in of("RUN") for part in run.split("&&") if "pip install" in part]

    assert not of("ADD")
    assert not re.search(r"https?:|index-url|find-links|trusted-host|\b(curl|wget|apt-get)\b", text)
    assert installs
    for install in installs:
        assert "--require-hashes" in install or "--no-deps --no-build-isolation ." in install
        assert "--no-cache-dir" in install


def test_the_exporter_of_traces_is_pinned_where_its_constraints_are() -> None:
    (install,) = (part for run in of("RUN") for part in run.split("&&") if "--constraint" in part)
    words = shlex.split(install)
    pins = (ROOT / words[words.index("--constraint") + 1]).read_text()

    for name in (word for word in words if word.startswith("opentelemetry-")):
        assert re.search(rf"^{name}==\S+ \\\n    --hash=sha256:", pins, re.MULTILINE)


def test_what_is_copied_is_there_and_passes_the_ignore_file() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    allowed = [line[1:] for line in ignored if line.startswith("!")]

    assert ignored.count("*") == 1
    for source, _ in copied():
        assert (ROOT / source).exists()
        kept = source.rstrip("/")
        assert any(fnmatch.fnmatch(pattern.split("/")[0], kept) for pattern in allowed), source


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with nothing but what the recipe copies."""
    sources = tmp_path_factory.mktemp("src")
    for source, _ in copied():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, sources / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, sources)
    return sources


@pytest.fixture(scope="module")
def installed(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install into a folder as the recipe does; return the folder."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-cache-dir"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", target, "."], cwd=sources, check=True, timeout=SECONDS
    )
    return target


COMMANDS = (["--help"], ["serve", "--help"], ["controllers", "--help"], ["migrate", "--help"], ["fn", "--help"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_installed_program_runs_without_the_checkout(command: list[str], installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)}
    # The checkout is installed for development, too: what is imported has to come from the folder.
    program = (
        "import sys, apiserver, krm; from apiserver.__main__ import main;"
        f"assert apiserver.__file__.startswith({str(installed)!r}), apiserver.__file__;"
        f"sys.argv[0] = 'porch'; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_the_installed_program_brings_its_data(sources: Path, installed: Path) -> None:
    needed = {
        path.relative_to(sources)
        for folder in ("apiserver", "controllers", "krm", "migrations", "storage")
        for path in (sources / folder).rglob("*")
        if path.suffix in {".py", ".xz"}
    }

    assert needed
    assert {path for path in needed if not (installed / path).exists()} == set()

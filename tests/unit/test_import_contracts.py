"""Each import contract holds, and each is seen to fail when someone breaks it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]

VIOLATIONS = [
    pytest.param("processes", "krm/meta/violation.py", "import storage.interfaces", id="krm-imports-storage"),
    pytest.param("processes", "storage/violation.py", "import apiserver.app", id="storage-imports-apiserver"),
    pytest.param("processes", "apiserver/violation.py", "import controllers.runtime", id="apiserver-meets-controllers"),
    pytest.param("processes", "controllers/violation.py", "import apiserver.app", id="controllers-meet-apiserver"),
    pytest.param("controllers", "controllers/runtime/violation.py", "import storage.interfaces", id="queue-stores"),
    pytest.param(
        "controllers", "controllers/packagevariant/violation.py", "import dulwich.repo", id="variants-open-git"
    ),
    pytest.param(
        "runtime", "controllers/runtime/violation.py", "import controllers.packagevariant", id="runtime-looks-up"
    ),
    pytest.param(
        "runtime", "controllers/packagevariant/violation.py", "import controllers.settings", id="variants-read-settings"
    ),
    pytest.param("server", "apiserver/engine/violation.py", "import apiserver.resources", id="engine-looks-up"),
    pytest.param("server", "apiserver/auth/violation.py", "import apiserver.engine", id="auth-meets-engine"),
    pytest.param("machinery", "apiserver/machinery/violation.py", "import krm.package", id="machinery-knows-packages"),
    pytest.param(
        "machinery", "apiserver/machinery/violation.py", "import storage.interfaces", id="machinery-knows-storage"
    ),
    pytest.param("engine", "apiserver/engine/violation.py", "import starlette.responses", id="engine-knows-http"),
    pytest.param("engine", "apiserver/engine/violation.py", "import apiserver.machinery.rest", id="engine-knows-rest"),
    pytest.param("rules", "apiserver/rules/violation.py", "import storage.git", id="rules-read-git"),
    pytest.param("rules", "apiserver/rules/violation.py", "import asyncio", id="rules-wait"),
    pytest.param("settings", "apiserver/engine/violation.py", "import apiserver.settings", id="engine-reads-settings"),
    pytest.param("krm", "krm/functions/violation.py", "import dulwich.repo", id="krm-knows-git"),
    pytest.param("storage", "storage/git/violation.py", "import storage.watchcache", id="git-meets-log"),
    pytest.param("storage", "storage/sql/violation.py", "import storage.git", id="sql-imports-git"),
    pytest.param("git", "apiserver/engine/violation.py", "import dulwich.repo", id="engine-speaks-dulwich"),
    pytest.param("sql", "apiserver/resources/violation.py", "import sqlalchemy", id="resource-speaks-sql"),
    pytest.param("toolchain", "krm/package/violation.py", "import krm.functions", id="package-imports-functions"),
    pytest.param("toolchain", "krm/variants/violation.py", "import krm.client", id="rules-of-variants-ask"),
    pytest.param("client", "krm/client/violation.py", "import krm.package", id="client-knows-packages"),
    pytest.param("offline", "krm/functions/violation.py", "import aiohttp", id="functions-call-out"),
    pytest.param("offline", "krm/meta/violation.py", "import kubernetes_asyncio", id="errors-know-a-client"),
    pytest.param("variants", "krm/variants/violation.py", "import asyncio", id="rules-of-variants-wait"),
]


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The working directory comes first on the path, so the copy is what is linted.
    program = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--no-logo", "--no-cache", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources to break things in."""
    folder = tmp_path_factory.mktemp("tree")
    for package in ("krm", "storage", "apiserver", "controllers"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_every_contract_holds(tree: Path) -> None:
    result = lint(tree)

    assert result.returncode == 0, result.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in result.stdout


@pytest.mark.parametrize(("contract", "module", "statement"), VIOLATIONS)
def test_a_contract_fails_when_broken(tree: Path, contract: str, module: str, statement: str) -> None:
    violation = tree / module
    violation.write_text(f"{statement}\n")
    try:
        result = lint(tree, "--contract", contract)
    finally:
        violation.unlink()

    assert result.returncode == 1, result.stdout
    assert "Contracts: 0 kept, 1 broken." in result.stdout


def test_no_contract_is_without_a_violation() -> None:
    """A contract that was never seen to fail may guard nothing."""
    assert {contract["id"] for contract in CONTRACTS} == {case.values[0] for case in VIOLATIONS}

"""The manifests in ``deploy``: fresh, valid by the schemas of Kubernetes, and with nothing in them that the programs do not know."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver import __main__ as program
from apiserver import settings as server
from controllers import settings as controllers

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy").glob("*.yaml"))
VARIABLES = {
    *(
        str(field.validation_alias or server.PREFIX + name.upper())
        for name, field in server.Settings.model_fields.items()
    ),
    *(controllers.PREFIX + name.upper() for name in controllers.Settings.model_fields),
}

each_manifest = pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def containers(path: Path) -> list[dict[str, Any]]:
    return [
        container
        for one in documents(path)
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]


@each_manifest
def test_the_programs_know_every_command_and_variable(path: Path) -> None:
    found = containers(path)

    assert found
    for container in found:
        assert container["args"][0] in program._COMMANDS
        assert {one["name"] for one in container["env"]} <= VARIABLES


@each_manifest
def test_the_programs_accept_the_values_of_the_variables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for container in containers(path):
        given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        with monkeypatch.context() as patched:
            for name, value in given.items():
                patched.setenv(name, value)
            if container["args"] == ["serve"]:
                assert server.Settings().aggregated
            else:
                assert controllers.Settings().lease_namespace == "porch-system"


@each_manifest
def test_every_object_is_valid_by_the_schemas_of_its_kind(path: Path, tmp_path: Path) -> None:
    known = [one for one in documents(path) if not one["apiVersion"].startswith("cert-manager.io/")]
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump_all(known))
    command = [
        sys.executable,
        "-m",
        "apiserver",
        "fn",
        "eval",
        str(tmp_path),
        "--image",
        "kubeconform",
        "--",
        "strict=true",
    ]

    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@each_manifest
def test_helm_is_not_named_as_the_one_who_looks_after_the_objects(path: Path) -> None:
    for one in documents(path):
        assert "app.kubernetes.io/managed-by" not in one["metadata"]["labels"]
        assert "helm.sh/hook" not in one["metadata"].get("annotations", {})


def test_the_manifests_are_fresh_and_a_change_of_the_chart_is_noticed(tmp_path: Path) -> None:
    """If this fails, run ``make manifests`` and commit the files."""
    assert check(ROOT).returncode == 0
    subprocess.run(["cp", "-r", ROOT / "charts", ROOT / "deploy", tmp_path], check=True, timeout=60)
    values = tmp_path / "charts" / "porch" / "values.yaml"
    values.write_text(f"{values.read_text()}# another\n")

    stale = check(tmp_path)

    assert stale.returncode == 1
    assert stale.stderr.splitlines() == [f"deploy/{path.name} is stale: run make manifests" for path in in_order()]


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "charts/raw_manifests.py", "--check"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def in_order() -> list[Path]:
    return sorted(
        MANIFESTS, key=lambda path: ["porch.yaml", "porch-small.yaml", "porch-approval.yaml"].index(path.name)
    )


def test_the_chart_lists_every_setting_that_may_be_given() -> None:
    """If this fails, run ``python charts/setting_names.py`` and commit the schema."""
    command = [sys.executable, "charts/setting_names.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr

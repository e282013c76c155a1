"""The committed OpenAPI documents: written, checked, and complete."""

import json
from pathlib import Path

import pytest

from apiserver import openapi_documents


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    assert openapi_documents.main([]) == 0
    return tmp_path / openapi_documents.FOLDER


def test_each_group_version_has_a_document_and_all_share_one(written: Path) -> None:
    assert {str(path.relative_to(written)) for path in written.rglob("*.json")} >= {
        "swagger.json",
        "v3/api/v1.json",
        "v3/apis/apiextensions.k8s.io/v1.json",
        "v3/apis/config.porch.kpt.dev/v1alpha1.json",
        "v3/apis/config.porch.kpt.dev/v1alpha2.json",
        "v3/apis/porch.kpt.dev/v1alpha1.json",
    }
    kinds = json.loads((written / "v3/apis/porch.kpt.dev/v1alpha1.json").read_bytes())["components"]["schemas"]
    assert any(name.endswith(".PackageRevision") for name in kinds)


def test_what_was_just_written_is_fresh(written: Path) -> None:
    assert openapi_documents.main(["--check"]) == 0


@pytest.mark.parametrize("name", ["swagger.json", "v3/api/v1.json", "v3/apis/gone/v1.json"])
def test_the_check_names_what_is_stale(written: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Changed, missing, or of a group that is no longer served."""
    path = written / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}")

    assert openapi_documents.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"openapi/{name} is stale: run python -m apiserver.openapi_documents"
    ]

    openapi_documents.main([])
    assert openapi_documents.main(["--check"]) == 0

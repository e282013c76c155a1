"""The reference of the API is what the models say, and says of every field what it means and who writes it."""

import re
from pathlib import Path

import pytest

from apiserver.api_reference import GROUPS, FieldRow, Kind, fields_of, files, main
from apiserver.settings import Settings
from apiserver.standalone import create_server
from krm.meta.written_by import Writer

ROOT = Path(__file__).resolve().parents[2]
KINDS = [kind for group in GROUPS for kind in group.kinds]


def rows(kind: Kind) -> list[FieldRow]:
    return [row for top in fields_of(kind.model) for row in top.rows()]


def test_the_pages_are_fresh() -> None:
    for path, text in files().items():
        assert (ROOT / path).read_text() == text, f"{path} is stale: run python -m apiserver.api_reference"


def test_a_stale_page_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    (tmp_path / "docs/reference/api.md").write_text("edited by hand")
    assert main(["--check"]) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_has_a_meaning_in_a_sentence_and_somebody_who_writes_it(kind: Kind) -> None:
    unexplained = [
        row.path
        for row in rows(kind)
        if not re.search(r"\w\W+\w+\W+\w.*[.;]$", row.meaning) or row.writer not in set(Writer)
    ]

    assert unexplained == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_in_a_status_is_written_by_clients_but_the_conditions_of_a_package(kind: Kind) -> None:
    written = [row.path for row in rows(kind) if row.path.startswith("status") and "client" in row.writer]

    assert [path for path in written if not path.startswith("status.conditions")] == []
    assert bool(written) is (kind.name == "PackageRevision")


def test_the_kinds_are_those_that_a_server_defines(tmp_path: Path) -> None:
    server = create_server(Settings(data=tmp_path))
    ours = {group.name for group in GROUPS}
    served = {
        (one.resource.definition.kind, one.resource.definition.version, one.resource.definition.plural)
        for one in server.served
        if one.resource.definition.group in ours
    }

    assert {(kind.name, kind.version, kind.plural) for kind in KINDS} == served

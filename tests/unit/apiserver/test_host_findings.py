"""What the doctor says of a disk; that there is little space left is made up, since no test can fill a disk."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from apiserver.host_findings import examine_host
from apiserver.settings import Settings
from krm.cli.doctor.finding import Diagnosis
from storage.sql.migrate import upgrade


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (600 << 30, []),
        (60 << 30, [("warning", "its disk is nearly full: 61440 MiB of 1000 GiB are free, copies of remotes take 3 MiB")]),
        (9 << 20, [("error", "its disk is full: 9 MiB of 1000 GiB are free, copies of remotes take 3 MiB")]),
    ],
    ids=["enough", "little", "none"],
)  # fmt: skip
async def test_space_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, told: list[tuple[str, str]]
) -> None:
    data = tmp_path / "data"
    (data / "clones" / "one.git" / "objects").mkdir(parents=True)
    data.chmod(0o700)
    (data / "clones" / "one.git" / "HEAD").write_text("ref: refs/heads/main\n")
    (data / "clones" / "one.git" / "objects" / "pack").write_bytes(bytes(3 << 20))
    (data / "secret.key").write_bytes(bytes(32))
    (data / "secret.key").chmod(0o600)
    upgrade(data / "porch.db")
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: Usage(1000 << 30, 0, free))
    diagnosis = Diagnosis()

    await examine_host(Settings(data=data), diagnosis)

    assert [(one.severity.value, one.problem) for one in diagnosis.findings] == told
    assert diagnosis.not_looked_at == []

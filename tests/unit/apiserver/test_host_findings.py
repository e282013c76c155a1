"""What the doctor says of a disk; that there is little space left is made up, since no test can fill a disk."""

import os
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


@pytest.mark.parametrize(("is_mount", "is_ours", "told"), [(True, False, 0), (True, True, 1), (False, False, 1)])
async def test_who_may_look_into_a_volume_is_for_whoever_mounts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_mount: bool, is_ours: bool, told: int
) -> None:
    """In a Pod the directory is the kubelet's, open to its group or to all, and nobody else is there."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o770)
    upgrade(data / "porch.db")
    monkeypatch.setattr(Path, "is_mount", lambda path: path == data and is_mount)
    monkeypatch.setattr(os, "geteuid", lambda: data.stat().st_uid + (not is_ours))
    diagnosis = Diagnosis()

    await examine_host(Settings(data=data), diagnosis)

    found = [one for one in diagnosis.findings if one.problem == "other users of this machine may look into it"]
    assert len(found) == told

"""Lists of packages' files: however large all of them are together, the server holds a few at a time.

Source: ``porch-api.md`` 5.1; ``users.md`` 7.3.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kubectl import Kubectl
from manifests import Register
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, commit_files, git

Json = dict[str, Any]
REVISIONS, MEBIBYTES = 32, 3
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: big\n"


@pytest.fixture
def big(register: Register, empty_remote: Remote) -> None:
    """A package of three MiB with 32 tags and its branch: 99 MiB of files in all."""
    line = "0123456789abcdef" * 64 + "\n"
    text = line * (MEBIBYTES * 1024 * 1024 // len(line))
    commit = commit_files(empty_remote.path, {"big/Kptfile": KPTFILE, "big/large.txt": text}, "A large package")
    for number in range(1, REVISIONS + 1):
        git("update-ref", f"refs/tags/big/v{number}", commit, cwd=empty_remote.path)
    register(repo=empty_remote)


def resident(server: PorchProcess) -> int:
    """Return the most memory that the server ever had, in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


@pytest.mark.usefixtures("big")
def test_files_of_many_revisions_are_listed_without_holding_them_all(
    porch: PorchClient, porch_server: PorchProcess
) -> None:
    path = porch.path("packagerevisionresources")
    porch.request("GET", path + "?limit=2")
    before = resident(porch_server)

    answer = porch.request("GET", path)

    assert answer.code == 200
    assert len(answer.body) > REVISIONS * MEBIBYTES * 1024 * 1024
    listed = answer.object
    assert (listed["kind"], len(listed["items"])) == ("PackageRevisionResourcesList", REVISIONS + 1)
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert {len(item["spec"]["resources"]["large.txt"]) for item in listed["items"]} == {3_145_725}
    grown = resident(porch_server) - before
    assert grown < REVISIONS * MEBIBYTES / 2, f"{grown} MiB"


@pytest.mark.usefixtures("big")
def test_a_compressed_list_is_the_same_list(porch: PorchClient) -> None:
    path = porch.path("packagerevisionresources") + "?limit=2"
    plain = porch.request("GET", path).object
    connection = porch._connection
    connection.request("GET", path, headers={"Accept": "application/json", "Accept-Encoding": "gzip"})
    response = connection.getresponse()
    packed = response.read()

    assert response.getheader("Content-Encoding") == "gzip"
    assert len(packed) < MEBIBYTES * 1024 * 1024
    assert json.loads(gzip.decompress(packed)) == plain
    assert plain["metadata"]["continue"]
    assert plain["metadata"]["remainingItemCount"] == REVISIONS - 1


@pytest.mark.usefixtures("big")
def test_a_table_of_files_counts_them_and_holds_none(kubectl: Kubectl) -> None:
    rows = [line.split() for line in kubectl.ok("get", "packagerevisionresources").splitlines()]

    assert rows[0] == ["NAME", "PACKAGE", "WORKSPACENAME", "REVISION", "REPOSITORY", "FILES"]
    assert len(rows) == 1 + REVISIONS + 1
    assert {row[-1] for row in rows[1:]} == {"2"}


@pytest.mark.usefixtures("big")
def test_what_has_to_be_held_as_a_whole_is_bounded(porch: PorchClient) -> None:
    answer = porch.request("GET", porch.path("packagerevisionresources"), accept="application/yaml")

    assert answer.code == 400
    assert b"over 64 MiB together; narrow the list with a selector or use limit and continue" in answer.body


def test_a_list_of_no_files_is_an_empty_list(porch: PorchClient) -> None:
    listed = porch.request("GET", porch.path("packagerevisionresources"))

    assert listed.object["items"] == []
    assert listed.headers["content-length"] == str(len(listed.body))

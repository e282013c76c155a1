"""Upstream's cases of its command-line client: what is run, what it must print, and what was sent when upstream passed.

``tests/data/porchctl/CASE/config.yaml`` is a case as upstream states it; ``transcript.json.xz`` beside it was recorded
while upstream's server passed it. A case runs in the namespace of its own name, because names and namespaces decide
the uids that it expects.
"""

import json
import lzma
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import remotes
import yaml
from eventually import eventually
from git_server import git_server
from manifests import namespace_object
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess

CASES = remotes.DATA / "porchctl"
GITEA = "http://gitea.gitea.svc.cluster.local:3000"
"""The Git host of the recordings."""
PUSHER = "nephio:secret"
"""Who may push there."""
WORKDIR = "WORKDIR"
"""What the cases call their scratch folder."""


@dataclass(frozen=True)
class Step:
    """One command of a case and what must come of it."""

    arguments: list[str]
    stdin: str
    stdout: str
    stderr: str
    exit_code: int
    ignore_whitespace: bool
    contains_error: bool
    """``stderr`` only has to be a part of what is printed."""


@dataclass(frozen=True)
class Exchange:
    """One recorded request and upstream's answer; bodies that were JSON are decoded."""

    method: str
    path: str
    accept: str
    content_type: str | None
    request: Any
    status: int
    response: Any

    @property
    def is_discovery(self) -> bool:
        """Whether the client asked what there is rather than for an object."""
        return re.fullmatch(r"/apis?(\?.*)?", self.path) is not None


@dataclass(frozen=True)
class Recording:
    """One command of a transcript."""

    command: str
    exchanges: list[Exchange]


def steps(case: str) -> list[Step]:
    """Read a case as upstream states it."""
    stated = yaml.safe_load((CASES / case / "config.yaml").read_text())
    return [
        Step(
            arguments=command["args"],
            stdin=command.get("stdin", ""),
            stdout=command.get("stdout", ""),
            stderr=command.get("stderr", ""),
            exit_code=command.get("exitCode", 0),
            ignore_whitespace=command.get("ignoreWhitespace", False),
            contains_error=command.get("containsErrorString", False),
        )
        for command in stated["commands"]
    ]


def transcript(case: str) -> Iterator[Recording]:
    """Read what porchctl sent; the recorder also saw kubectl of its own harness, which is left out."""
    for command in json.loads(lzma.decompress((CASES / case / "transcript.json.xz").read_bytes())):
        sent = [exchange for exchange in command["requests"] if exchange["agent"].startswith("porchctl/")]
        yield Recording(" ".join(command["args"]), [_exchange(exchange) for exchange in sent])


def _exchange(recorded: dict[str, Any]) -> Exchange:
    return Exchange(
        method=recorded["method"],
        path=recorded["path"],
        accept=recorded["accept"],
        content_type=recorded["contentType"],
        request=recorded["request"],
        status=recorded["status"],
        response=recorded["response"],
    )


@dataclass(frozen=True)
class Place:
    """Where a case runs: its namespace of our server, and the Git host that stands for the recordings'."""

    client: PorchClient
    host: str
    commits: list[str]
    """Those of the blueprints; the recordings have the same."""

    def ours(self, text: str) -> str:
        """Return a text of a case with the address of our Git host."""
        return text.replace(GITEA, self.host)

    def theirs(self, text: str) -> str:
        """Return a text of ours with the address of the recordings' Git host."""
        return text.replace(self.host, GITEA)


@contextmanager
def place_of(case: str, folder: Path, server: PorchProcess) -> Iterator[Place]:
    """Serve the two repositories of a case anew from a folder, and make the namespace of its name; it is gone after."""
    (folder / "nephio").mkdir()
    remotes.empty_remote(folder / "nephio" / "porch-test.git")
    blueprints = remotes.blueprints_remote(folder / "nephio" / "test-blueprints.git")
    commits = remotes.git("rev-list", "--all", cwd=blueprints).split()
    path = f"/api/v1/namespaces/{case}"
    with git_server(folder, PUSHER) as gitea, closing(server.client(case)) as client:
        client.request("POST", "/api/v1/namespaces", namespace_object(case))
        yield Place(client, gitea.url, commits)
        client.request("DELETE", path)
        wait_until_gone(client, path)


def wait_until_ready(client: PorchClient, repository: str) -> None:
    """Wait until a repository of the client's namespace is Ready."""

    def ready() -> None:
        found = client.request("GET", f"{CONFIG}/namespaces/{client.namespace}/repositories/{repository}").object
        conditions = (found.get("status") or {}).get("conditions") or []
        assert [condition["status"] for condition in conditions] == ["True"], found

    eventually(ready, timeout=60)


def wait_until_gone(client: PorchClient, path: str) -> None:
    """Wait until nothing answers at a path."""

    def gone() -> None:
        answer = client.request("GET", path)
        assert answer.code == 404, answer.body.decode()

    eventually(gone)

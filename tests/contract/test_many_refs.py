"""A repository of 10,000 refs: what its first sync costs, and that later ones read only what changed."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_fixture import NAMESPACE, Engine, eventually, git, new_remote, running_engine

from storage.git.objects import Overlay
from storage.interfaces import Entry, ObjectKey

PACKAGES = 500
REVISIONS = 16
DRAFTS, PROPOSALS, FOREIGN = 1000, 500, 499
RENDERED = "status:\n  conditions:\n  - {type: Rendered, status: 'True', reason: RenderSuccess}\n"


def stream() -> Iterator[str]:
    """Yield a fast-import stream: published revisions, drafts and proposals."""
    at = 1_700_000_000

    def commit(ref: str, package: str, workspace: str, text: str, onto: str) -> Iterator[str]:
        nonlocal at
        at += 1
        note = f'kpt:{{"package":"{package}","workspaceName":"{workspace}","revision":"0","task":{{"type":"init","init":{{}}}}}}'
        message = f"Creating new empty revision\n\n{note}\n"
        kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {package}\n{RENDERED}# {text}\n"
        yield f"commit {ref}\ncommitter Them <them@example.com> {at} +0000\ndata {len(message)}\n{message}{onto}"
        yield f"M 100644 inline {package}/Kptfile\ndata {len(kptfile)}\n{kptfile}\n"

    yield from commit("refs/heads/main", "p000", "v0", "first", "from refs/heads/main^0\n")
    for revision in range(1, REVISIONS + 1):
        for package in range(PACKAGES):
            name = f"p{package:03}"
            yield from commit("refs/heads/main", name, f"v{revision}", f"revision {revision}", "")
            yield f"reset refs/tags/{name}/v{revision}\nfrom refs/heads/main\n\n"
    for number in range(DRAFTS + PROPOSALS):
        kind, name = ("drafts", "proposed")[number >= DRAFTS], f"p{number % PACKAGES:03}"
        workspace = f"w{number // PACKAGES}"
        ref = f"refs/heads/{kind}/{name}/{workspace}"
        yield from commit(ref, name, workspace, f"number {number}", "from refs/heads/main\n")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = new_remote(tmp_path_factory.mktemp("many") / "remote.git")
    subprocess.run(
        ["git", "-C", str(path), "fast-import", "--quiet"], input="".join(stream()).encode(), check=True, timeout=120
    )
    main = git(path, "rev-parse", "refs/heads/main")
    foreign = "".join(f"create refs/heads/feature/{number} {main}\n" for number in range(FOREIGN))
    subprocess.run(["git", "-C", str(path), "update-ref", "--stdin"], input=foreign.encode(), check=True, timeout=120)
    git(path, "pack-refs", "--all")
    return path


def stored_repository(engine: Engine) -> Entry:
    found = engine.store.get(ObjectKey("repositories.config.porch.kpt.dev", NAMESPACE, "repo"))
    assert found is not None
    return found


@pytest.mark.timeout(400)
async def test_a_sync_reads_what_changed_among_ten_thousand_refs(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(git(remote, "for-each-ref").splitlines()) == 10_000
    read: list[str] = []
    plain = Overlay.read

    def counted(overlay: Overlay, oid: str) -> object:
        read.append(oid)
        return plain(overlay, oid)

    async with running_engine(tmp_path) as engine:
        began = time.monotonic()
        await engine.register_url("repo", remote.as_uri(), seconds=240)
        took = time.monotonic() - began
        assert engine.index.count(NAMESPACE, "repo") == PACKAGES * (REVISIONS + 1) + DRAFTS + PROPOSALS
        assert took < 240, f"the first sync took {took:.0f} s"
        await eventually(
            lambda: b"Repository Ready" in stored_repository(engine).body
        )  # the last thing that is written
        monkeypatch.setattr(Overlay, "read", counted)
        rv = engine.store.rv

        await engine.sync()
        assert (len(read), engine.store.rv) == (0, rv), "nothing has changed"

        git(remote, "update-ref", "refs/tags/p007/v17", git(remote, "rev-parse", "refs/heads/main"))
        git(remote, "update-ref", "-d", "refs/heads/proposed/p003/w2")
        began = time.monotonic()
        await engine.sync()
        took = time.monotonic() - began

        assert engine.body("repo.p007.v17")["metadata"]["labels"] == {"kpt.dev/latest-revision": "true"}
        assert engine.entry("repo.p003.w2") is None
        assert engine.store.rv - rv <= 4, "the two revisions, and the label that moved"
        assert len(read) < 50
        assert took < 40, f"a sync of two changes took {took:.1f} s"

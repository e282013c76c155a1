"""Repositories and clones by address over the hosts that users have: SSH keys, CAs of their own, tokens."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_fixture import Engine, eventually, git, running_engine
from git_server import GitServer, create_repository, git_server
from remotes import commit_files
from ssh_server import SshServer, ssh_server
from test_git_tls_and_threads import certificate

from krm.meta.errors import Forbidden, Invalid

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n"
CANARY = "canary-16180339887"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SshServer]:
    root = tmp_path / "host"
    create_repository(root / "blueprints.git")
    create_repository(root / "edge.git")
    with ssh_server(root) as running:
        yield running


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[GitServer, str]]:
    root = tmp_path / "secure"
    create_repository(root / "edge.git")
    file, pem = certificate(root)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with git_server(root, f"porch:{CANARY}", tls=context) as running:
        yield running, pem.decode()


async def keyed(engine: Engine, host: SshServer, name: str = "key") -> None:
    data = {"ssh-privatekey": host.key.decode(), "known_hosts": host.known_hosts.decode()}
    await engine.secret(name, "kubernetes.io/ssh-auth", **data)


async def test_packages_live_in_a_repository_over_ssh(tmp_path: Path, host: SshServer) -> None:
    async with running_engine(tmp_path) as engine:
        await keyed(engine, host)
        await engine.register_url("repo", host.url("edge.git"), secret="key")
        name = (await engine.create("app")).name
        await eventually(lambda: "drafts/app/v1" in git(host.root / "edge.git", "for-each-ref"))
        await engine.move(name, "Proposed")
        await engine.approve(name)

        assert "refs/tags/app/v1" in git(host.root / "edge.git", "for-each-ref")
        assert engine.body(name)["status"]["selfLock"]["git"]["repo"].startswith(host.url("edge"))
        git(host.root / "edge.git", "fsck", "--strict")


async def test_a_key_that_is_exchanged_is_used_for_the_next_push(tmp_path: Path, host: SshServer) -> None:
    async with running_engine(tmp_path) as engine:
        await keyed(engine, host)
        await engine.register_url("repo", host.url("edge.git"), secret="key")
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")
        host.key = host.new_key()
        host.drop_connections()

        with pytest.raises(Forbidden, match="refuses the key"):
            await engine.approve(name)
        await keyed(engine, host)
        await engine.approve(name)

        assert engine.body(name)["spec"]["lifecycle"] == "Published"


async def test_a_package_is_cloned_by_its_ssh_address(tmp_path: Path, host: SshServer) -> None:
    async with running_engine(tmp_path) as engine:
        commit_files(host.root / "blueprints.git", {"web/Kptfile": KPTFILE, "web/a.txt": "a\n"}, "a package")
        await keyed(engine, host)
        await engine.register_url("repo", host.url("edge.git"), secret="key")
        locator = {"repo": host.url("blueprints.git"), "directory": "web", "ref": "main", "secretRef": {"name": "key"}}
        task = {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": locator}}}

        name = (await engine.create("cloned", task=task)).name

        assert (await engine.contents(name))["a.txt"].data == b"a\n"
        del locator["secretRef"]
        with pytest.raises(Invalid, match="an SSH address needs a key"):
            await engine.create("other", task=task)


@pytest.mark.parametrize("where", ["the bundle of the namespace", "the Secret itself"])
async def test_a_host_with_a_ca_of_its_own_is_trusted_through(
    tmp_path: Path, secure: tuple[GitServer, str], where: str
) -> None:
    server, pem = secure
    async with running_engine(tmp_path) as engine:
        own = {"ca.crt": pem} if "itself" in where else {}
        await engine.secret("login", "kubernetes.io/basic-auth", username="porch", password=CANARY, **own)
        with pytest.raises(TimeoutError):
            await engine.register_url("distrusted", f"{server.url}/edge/", seconds=1)
        await eventually(lambda: "TLS failed" in engine.repositories.get("ns", "distrusted").problem)
        if not own:
            await engine.secret("ns-ca-bundle", "Opaque", **{"ca.crt": pem})

        await engine.register_url("repo", f"{server.url}/edge", secret="login")
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")
        await engine.approve(name)

        assert engine.body(name)["spec"]["lifecycle"] == "Published"

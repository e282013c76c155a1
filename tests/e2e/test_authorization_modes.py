"""How a server is told whom to let in and what to allow: modes, anonymous requests, a file of tokens, bad settings."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from porch_process import PorchProcess

from apiserver.auth.issuing import user_kubeconfig

Start = Callable[..., PorchProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a server with these arguments; it is stopped in the end."""
    servers: list[PorchProcess] = []

    def run(*arguments: str) -> PorchProcess:
        server = PorchProcess(tmp_path / "data", arguments=arguments)
        servers.append(server)
        server.start()
        return server

    yield run
    for server in servers:
        server.stop()


def login(server: PorchProcess, folder: Path, user: str) -> Kubectl:
    kubeconfig = folder / f"{user}.kubeconfig"
    kubeconfig.write_bytes(user_kubeconfig(server.data, user, ()))
    return Kubectl(kubeconfig, "default", str(folder / f"{user}-cache"))


def with_token(server: PorchProcess, folder: Path, token: str) -> Kubectl:
    kubectl = login(server, folder, token)
    config: Any = json.loads(kubectl.ok("config", "view", "--raw", "-o", "json"))
    config["users"] = [{"name": token, "user": {"token": token}}]
    kubectl.kubeconfig.write_text(json.dumps(config))
    return kubectl


def test_always_allow_lets_known_users_do_everything_and_nobody_else_anything(start: Start, tmp_path: Path) -> None:
    server = start("--authorization", "always-allow", "--anonymous-auth")
    bob = login(server, tmp_path, "bob")

    assert bob.ok("create", "secret", "generic", "s", "--from-literal=k=v") == "secret/s created\n"
    assert bob.ok("auth", "can-i", "--list").splitlines()[1].split() == ["*.*", "[]", "[]", "[*]"]
    assert bob.json("auth", "whoami", "--as=carol")["status"]["userInfo"]["username"] == "carol"
    nobody = server.client(anonymous=True)
    assert nobody.request("GET", "/api/v1/namespaces/default/secrets").code == 401
    nobody.close()


def test_anonymous_requests_are_a_user_like_others_where_they_are_let_in(start: Start, tmp_path: Path) -> None:
    server = start("--anonymous-auth")
    admin = Kubectl(server.kubeconfig, "default", str(tmp_path / "cache"))
    nobody = server.client(anonymous=True)
    path = "/api/v1/namespaces/default/configmaps"

    before = nobody.request("GET", path)
    admin.ok("create", "rolebinding", "open", "--clusterrole=view", "--group=system:unauthenticated")
    after = nobody.request("GET", path)
    nobody.close()

    assert before.code == 403
    assert before.message == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the '
        'namespace "default"'
    )
    assert after.code == 200


def test_tokens_of_a_file_come_and_go_with_the_file(start: Start, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text('first,ann,1,"team-a"\n')
    server = start("--token-file", str(tokens))
    ann = with_token(server, tmp_path, "first")

    assert ann.json("auth", "whoami")["status"]["userInfo"] == {
        "username": "ann",
        "uid": "1",
        "groups": ["team-a", "system:authenticated"],
    }
    tokens.write_text("second,ben,2\n")
    ben = with_token(server, tmp_path, "second")

    def is_ben() -> None:
        answer = ben("auth", "whoami", "-o", "json")
        assert answer.returncode == 0, answer.stderr

    eventually(is_ben)
    assert with_token(server, tmp_path, "first")("auth", "whoami").returncode == 1
    tokens.write_text("second\n")
    assert ben.json("auth", "whoami")["status"]["userInfo"]["username"] == "ben", "a broken file changes nothing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--token-file", "{data}/none"], "none cannot be read", id="no-token-file"),
        pytest.param(["--audit-log", "{data}/file/audit.log"], "audit.log cannot be written", id="no-audit-log"),
    ],
)
def test_a_server_that_could_not_keep_its_promise_does_not_start(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "file").write_text("")
    given = [argument.format(data=tmp_path) for argument in arguments]
    command = [sys.executable, "-m", "apiserver", "serve", "--data", str(tmp_path / "data"), "--port", "0", *given]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 3
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

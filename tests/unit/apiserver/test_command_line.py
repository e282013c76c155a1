"""The porch command: what it refuses and how it says so."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from apiserver.auth.certificates import Files
from apiserver.commands import EXIT_REFUSED, EXIT_USAGE, announce, cli
from apiserver.settings import Settings


@pytest.fixture(autouse=True)
def own_data_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(["--port", "99999"], "--port (or PORCH_PORT)", id="port"),
        pytest.param(["--sync-interval", "0"], "--sync-interval (or PORCH_SYNC_INTERVAL)", id="interval"),
        pytest.param(["--log-level", "loud"], "--log-level (or PORCH_LOG_LEVEL)", id="level"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_variable(arguments: list[str], named: str) -> None:
    result = CliRunner().invoke(cli, ["serve", *arguments])

    assert result.exit_code == EXIT_USAGE
    assert named in result.stderr
    assert "Traceback" not in result.output


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        # A process of its own, because serving takes over logging and signals.
        command = [sys.executable, "-m", "apiserver", "serve", "--data", str(tmp_path / "data"), "--port", str(port)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert result.returncode == EXIT_REFUSED
    assert result.stderr.strip().splitlines()[-1].startswith(f"porch: cannot listen on 127.0.0.1 port {port}")


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        (["--controllers"], {}, "run porch controllers beside it"),
        (["--token-file", "tokens.csv"], {}, "its kube-apiserver knows the tokens"),
        ([], {"PORCH_TLS_CERT_FILE": "tls.crt"}, "set both or none"),
    ],
    ids=["controllers", "tokens", "half a certificate"],
)
def test_what_a_server_of_a_cluster_has_no_use_for_is_refused(
    arguments: list[str], variables: dict[str, str], says: str
) -> None:
    result = CliRunner().invoke(cli, ["serve", "--aggregated", *arguments], env=variables)

    assert result.exit_code == EXIT_USAGE
    assert says in result.stderr


def test_a_server_without_its_cluster_says_what_to_name(tmp_path: Path) -> None:
    nowhere = tmp_path / "no-kubeconfig"

    # A process of its own, because serving takes over logging and signals.
    command = [sys.executable, "-m", "apiserver", "serve", "--aggregated", "--kubeconfig", str(nowhere)]
    result = subprocess.run(
        [*command, "--data", str(tmp_path / "data")], capture_output=True, text=True, timeout=100, check=False
    )

    assert result.returncode == EXIT_REFUSED
    told = result.stderr.strip().splitlines()[-1]
    assert told.startswith(f"porch: there is no kubeconfig {nowhere}; name a kubeconfig with --kubeconfig")


def test_the_announcement_ends_with_what_to_type_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "with space"

    announce(Settings(data=data))(9443, Files.under(data))

    said = capsys.readouterr().out
    assert "https://127.0.0.1:9443" in said
    assert f"export KUBECONFIG='{data}/kubeconfig'" in said
    assert "kubectl get packagerevisions -A" in said

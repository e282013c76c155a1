"""``porch variants`` before it has a server: which one it asks, and how it fails."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from krm.cli import cluster
from krm.cli.failures import CommandFailed
from krm.cli.variants import cli
from krm.variants.summary import read_compact

CONFIG = """
apiVersion: v1
kind: Config
current-context: two
contexts:
- name: one
  context: {cluster: c, user: u, namespace: first}
- name: two
  context: {cluster: c, user: u, namespace: second}
- name: none
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:1"}
users:
- name: u
  user: {token: x}
"""


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, arguments, env={"KUBECONFIG": None, "KUBERNETES_SERVICE_HOST": None, **environment})


@pytest.mark.parametrize(
    ("config", "namespace"),
    [
        (CONFIG, "second"),
        (CONFIG.replace("current-context: two", "current-context: none"), "default"),
        (CONFIG.replace("current-context: two", "current-context: other"), "default"),
        ("", "default"),
        ("contexts: [1, {name: null, context: x}]\n", "default"),
    ],
)
def test_the_namespace_is_that_of_the_context(tmp_path: Path, config: str, namespace: str) -> None:
    file = tmp_path / "config"
    file.write_text(config)

    assert cluster.namespace_of(file) == namespace


def test_the_kubeconfig_is_the_one_that_kubectl_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    usual, named = tmp_path / ".kube" / "config", tmp_path / "named"

    with pytest.raises(CommandFailed, match="there is no kubeconfig"):
        cluster.usual_kubeconfig()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert cluster.usual_kubeconfig() is None

    usual.parent.mkdir()
    usual.write_text(CONFIG)
    named.write_text(CONFIG)
    assert cluster.usual_kubeconfig() == usual
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{named}")
    assert cluster.usual_kubeconfig() == named
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(CommandFailed, match="missing"):
        cluster.usual_kubeconfig()


@pytest.mark.parametrize("command", ["diff", "history"])
def test_a_server_that_cannot_be_asked_is_one_message_and_no_traceback(tmp_path: Path, command: str) -> None:
    file, broken = tmp_path / "config", tmp_path / "broken"
    file.write_text(CONFIG)
    broken.write_text("a: [\n")

    for arguments in (["--kubeconfig", str(file)], ["--kubeconfig", str(broken)], ["--kubeconfig", "/nowhere/x"]):
        result = run(command, "my-pv", *arguments)

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")
        assert "Traceback" not in result.output
    assert run(command).exit_code == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "[" * 100_000, '{"files": 1}', '{"files": {"added": 5}}'])
def test_what_is_no_summary_is_read_as_an_empty_one(text: str) -> None:
    assert read_compact(text).get("files", {}) == {}

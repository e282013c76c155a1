"""The programs of a release as processes of this machine, with the settings and the accounts that the chart gives their Pods."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart_rendering import CHART, Done
from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from porch_process import free_port

STOP_SECONDS = 20.0
COMMANDS = {"serve": "apiserver", "controllers": "controllers"}
"""A container's first argument → the module that ``porch`` starts for it."""
WRITABLE = Path("/mnt")
"""Where a confined program finds the one folder that it may write to."""
CONFINE = f"""mount --bind "$1" {WRITABLE} && mount -o remount,bind,ro / && shift &&
exec unshare --user --map-user=10001 --map-group=10001 setpriv --no-new-privs "$@\""""


@dataclass
class Released:
    """A release whose programs run here; ``folder`` has their logs and what they keep."""

    kubectl: Kubectl
    control_plane: ControlPlane
    folder: Path
    server_port: int

    def __post_init__(self) -> None:
        self.data = self.folder / "data"
        self.data.mkdir()
        self.wrapper = confinement(self.data)
        self.pids: dict[str, int] = {}
        self.ports = {"server": free_port(), "controllers": free_port(), "approval": free_port()}
        """Of metrics, and of the controllers' health."""

    def container(self, component: str) -> dict[str, Any]:
        """Return the container of a Deployment of the release."""
        deployment = self.kubectl.json("get", "deployment", f"porch-{component}")
        (only,) = deployment["spec"]["template"]["spec"]["containers"]
        assert isinstance(only, dict)
        return only

    def environment(self, component: str) -> dict[str, str]:
        """Return the variables that its Pods get."""
        return {one["name"]: one["value"] for one in self.container(component)["env"]}

    def secret(self, name: str) -> dict[str, str]:
        """Return the data of a Secret, still encoded."""
        data = self.kubectl.json("get", "secret", name)["data"]
        assert isinstance(data, dict)
        return data

    def leases(self) -> list[str]:
        """Return the Leases that somebody holds in the release's namespace."""
        held = "{range .items[?(@.spec.holderIdentity)]}{.metadata.name} {end}"
        return self.kubectl.ok("get", "leases", "-o", f"jsonpath={held}").split()

    def logs(self) -> str:
        """Return what the programs printed last."""
        return "\n".join(f"{path.name}:\n{path.read_text()[-4000:]}" for path in sorted(self.folder.glob("*.log")))

    def available(self, seconds: float) -> dict[str, Any]:
        """Wait until kube-apiserver hands requests on, and return the condition that says so."""

        def is_available() -> dict[str, Any]:
            found = self.kubectl.json("get", "apiservice", "v1alpha1.porch.kpt.dev")
            conditions = found.get("status", {}).get("conditions", [])
            said: dict[str, Any] = {one["type"]: one for one in conditions}.get("Available", {})
            assert said.get("status") == "True", f"{said}\n{self.logs()}"
            return said

        return eventually(is_available, timeout=seconds)

    def probe(self, component: str, path: str) -> str:
        """Ask what a probe of the component's container asks, as a kubelet does; return the address that answered 200."""
        container = self.container(component)
        asked = [
            container[name]["httpGet"]
            for name in ("readinessProbe", "livenessProbe", "startupProbe")
            if name in container
        ]
        (probe,) = [one for one in asked if one["path"] == path][:1]
        port = self.server_port if probe["port"] == "https" else self.ports[component]
        url = f"{probe.get('scheme', 'HTTP').lower()}://127.0.0.1:{port}{path}"
        assert get(url)[0] == http.client.OK, url
        return url

    def metrics(self, component: str) -> str:
        """Return what a scraper reads at the component's port."""
        status, body = get(f"http://127.0.0.1:{self.ports[component]}/metrics")
        assert status == http.client.OK
        return body

    def helm_test(self) -> Done:
        """Run what ``helm test`` runs in a Pod, with the account that its hooks make."""
        account = self.account("porch-tests")
        environment = {
            "KUBERNETES_HOST": self.control_plane.url.removeprefix("https://"),
            "TOKEN_FILE": str(account),
            "CA_FILE": str(self.control_plane.ca),
        }
        command = [sys.executable, str(CHART / "files" / "tests" / "answers.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)

    def account(self, name: str) -> Path:
        """Return a file with a token of a service account."""
        path = self.folder / f"{name}.token"
        path.write_text(self.kubectl.ok("create", "token", name, "--duration=1h"))
        return path

    def kubeconfig(self, account: str) -> Path:
        """Return a kubeconfig of a service account."""
        cluster = {"server": self.control_plane.url, "certificate-authority": str(self.control_plane.ca)}
        path = self.folder / f"{account}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": account, "user": {"tokenFile": str(self.account(account))}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": account}}],
            "current-context": "real",
        }
        path.write_text(json.dumps(config))
        return path

    @property
    def seen_data(self) -> Path:
        """Where the programs find the folder that they may write to."""
        return WRITABLE if self.wrapper else self.data

    @contextmanager
    def running(self, component: str, changed: dict[str, str]) -> Iterator[None]:
        """Run a component's program with its Pods' variables, but for what a Pod has and this machine has not."""
        container = self.container(component)
        command = [*self.wrapper, sys.executable, "-m", COMMANDS[container["args"][0]]]
        command += ["serve"] if container["args"] == ["serve"] else []
        here = {name: value for name, value in os.environ.items() if not name.startswith(("PORCH_", "OTEL_"))}
        environment = {**here, **self.environment(component), **changed, "TMPDIR": str(self.seen_data)}
        with (self.folder / f"{component}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pids[component] = process.pid
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=STOP_SECONDS)


def get(url: str) -> tuple[int, str]:
    """Ask without credentials, and without a look at who answers, as kubelets do; 0 when nobody answers."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connection = (
        http.client.HTTPSConnection(host, timeout=10, context=trusting)
        if scheme == "https"
        else http.client.HTTPConnection(host, timeout=10)
    )
    try:
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return 0, str(error)
    finally:
        connection.close()


def confinement(folder: Path) -> list[str]:
    """Return a command that runs another one as a Pod's container would.

    That is: user 10001 without capabilities, which it cannot gain, and everything read-only but ``folder``. Empty where this
    machine does not let its user do that.
    """
    command = ["unshare", "--mount", "--", "sh", "-c", CONFINE, "sh", str(folder)]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=STOP_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    return command


@contextmanager
def released(kubectl: Kubectl, control_plane: ControlPlane, port: int, folder: Path) -> Iterator[Released]:
    """Run server, controllers and approver of the installed release until the context is left."""
    release = Released(kubectl, control_plane, folder, port)
    for name, data in release.secret("porch-tls").items():
        (folder / name).write_bytes(b64decode(data))
    places = {
        "PORCH_HOST": "127.0.0.1",
        "PORCH_PORT": str(port),
        "PORCH_METRICS_PORT": str(release.ports["server"]),
        "PORCH_DATA": str(release.seen_data),
        "PORCH_TLS_CERT_FILE": str(folder / "tls.crt"),
        "PORCH_TLS_PRIVATE_KEY_FILE": str(folder / "tls.key"),
        "PORCH_KUBECONFIG": str(release.kubeconfig("porch-server")),
    }
    with ExitStack() as stack:
        stack.enter_context(release.running("server", places))
        for component in ("controllers", "approval"):
            account = str(release.kubeconfig(f"porch-{component}"))
            changed = {
                "PORCH_CONTROLLERS_KUBECONFIG": account,
                "PORCH_CONTROLLERS_HOST": "127.0.0.1",
                "PORCH_CONTROLLERS_PORT": str(release.ports[component]),
            }
            stack.enter_context(release.running(component, changed))
        yield release

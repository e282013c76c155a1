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

from chart_rendering import CHART, NAMESPACE, Done
from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from porch_process import free_port

STOP_SECONDS = 60.0
COMMANDS = {"serve": "apiserver", "controllers": "controllers"}
"""A container's first argument → the module that ``porch`` starts for it."""
WRITABLE = Path("/mnt")
"""Where a confined program finds the one folder that it may write to."""
ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
"""Where a Pod finds its account; /var/run leads there."""
CONFINE = f"""mount --bind "$1" {WRITABLE} && mount -t tmpfs tmpfs /run && mkdir -p {ACCOUNT} &&
mount --bind "$2" {ACCOUNT} && mount -o remount,bind,ro / && mount -o remount,ro /run && shift 2 &&
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
        self.confined = can_confine(self.folder)
        self.pids: dict[str, int] = {}
        self.ports = {"server": free_port(), "controllers": free_port(), "approval": free_port()}
        """Of metrics, and of the controllers' health."""

    def pod(self, component: str) -> dict[str, Any]:
        """Return the spec of the Pods of a Deployment of the release."""
        spec = self.kubectl.json("get", "deployment", f"porch-{component}")["spec"]["template"]["spec"]
        assert isinstance(spec, dict)
        return spec

    def container(self, component: str) -> dict[str, Any]:
        """Return its container."""
        (only,) = self.pod(component)["containers"]
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
        account = self.credentials("porch-tests")
        environment = {
            "KUBERNETES_HOST": self.control_plane.url.removeprefix("https://"),
            "TOKEN_FILE": str(account / "token"),
            "CA_FILE": str(account / "ca.crt"),
        }
        command = [sys.executable, str(CHART / "files" / "tests" / "answers.py")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)

    def credentials(self, name: str) -> Path:
        """Return a folder with what a Pod of a service account finds at ``ACCOUNT``."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "token").write_text(self.kubectl.ok("create", "token", name, "--duration=1h"))
        (folder / "ca.crt").write_bytes(self.control_plane.ca.read_bytes())
        (folder / "namespace").write_text(NAMESPACE)
        return folder

    def kubeconfig(self, name: str) -> Path:
        """Return a kubeconfig of a service account, for where there is no Pod's folder."""
        account = self.credentials(name)
        path = self.folder / f"{name}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "real",
                    "cluster": {"server": self.control_plane.url, "certificate-authority": str(account / "ca.crt")},
                }
            ],
            "users": [{"name": name, "user": {"tokenFile": str(account / "token")}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
            "current-context": "real",
        }
        path.write_text(json.dumps(config))
        return path

    def identity(self, component: str) -> dict[str, str]:
        """Return the variables that tell a component where the cluster is, and as whom it speaks to it."""
        if self.confined:
            host, _, port = self.control_plane.url.removeprefix("https://").partition(":")
            return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        variable = "PORCH_KUBECONFIG" if component == "server" else "PORCH_CONTROLLERS_KUBECONFIG"
        return {variable: str(self.kubeconfig(f"porch-{component}"))}

    def wrapper(self, component: str) -> list[str]:
        """Return the command that runs a component's program as in its Pod; none where that cannot be."""
        account = self.credentials(self.pod(component)["serviceAccountName"])
        return confinement(self.data, account) if self.confined else []

    @property
    def seen_data(self) -> Path:
        """Where the programs find the folder that they may write to."""
        return WRITABLE if self.confined else self.data

    @contextmanager
    def running(self, component: str, changed: dict[str, str]) -> Iterator[None]:
        """Run a component's program with its Pods' variables, but for what a Pod has and this machine has not."""
        container = self.container(component)
        command = [*self.wrapper(component), sys.executable, "-m", COMMANDS[container["args"][0]]]
        command += ["serve"] if container["args"] == ["serve"] else []
        here = {name: value for name, value in os.environ.items() if not name.startswith(("PORCH_", "OTEL_", "KUBE"))}
        environment = {
            **here,
            **self.environment(component),
            **self.identity(component),
            **changed,
            "TMPDIR": str(self.seen_data),
        }
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


def confinement(folder: Path, account: Path) -> list[str]:
    """Return a command that runs another one as a Pod's container would.

    That is: user 10001 without capabilities, which it cannot gain, everything read-only but ``folder``, and ``account`` where a
    Pod finds it.
    """
    return ["unshare", "--mount", "--", "sh", "-c", CONFINE, "sh", str(folder), str(account)]


def can_confine(folder: Path) -> bool:
    """Tell whether this machine lets its user do that."""
    try:
        subprocess.run([*confinement(folder, folder), "true"], check=True, capture_output=True, timeout=STOP_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


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
        "PORCH_SHUTDOWN_DELAY": "0",
        "PORCH_TLS_CERT_FILE": str(folder / "tls.crt"),
        "PORCH_TLS_PRIVATE_KEY_FILE": str(folder / "tls.key"),
    }
    with ExitStack() as stack:
        stack.enter_context(release.running("server", places))
        for component in ("controllers", "approval"):
            port_of_its_own = {"PORCH_CONTROLLERS_PORT": str(release.ports[component])}
            stack.enter_context(release.running(component, {"PORCH_CONTROLLERS_HOST": "127.0.0.1", **port_of_its_own}))
        yield release

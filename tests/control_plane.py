"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager as processes.

What Porch is compared with: answers are recorded from it (``tests/differential``), benchmarks run beside it, and
other people's clients are checked against it. ``make controlplane`` builds the program; there is no kubelet and no
kube-proxy. Source: ``tests/controlplane/README.md``.
"""

import http.client
import json
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from control_plane_keys import Authority, KeyPair, signing_key
from porch_process import free_port

PROGRAM = Path(__file__).resolve().parent.parent / ".build" / "controlplane"
START_SECONDS = 120.0
"""A start takes about six seconds; the rest is for a busy machine."""
STOP_SECONDS = 60.0
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
)
ANONYMOUS_PATHS = ("/livez", "/readyz", "/healthz", "/version")
"""What needs no credentials here; everything else answers 401 without them, as Porch does."""


class NotBuilt(Exception):
    """There is no control plane program; the message says how to make one."""


class ControlPlaneFailed(AssertionError):
    """A process of the control plane ended, or never became ready; carries the end of its log."""


class ControlPlane:
    """A control plane under ``folder``; use as a context manager. Leaving it stops what it started, by process.

    ``arguments`` are added to kube-apiserver's command line. The folder keeps the logs.
    """

    def __init__(self, folder: Path, *, arguments: Sequence[str] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self.registration: list[dict[str, Any]] = []
        """The Service and the APIService of the release that is installed; none: servers bring their own."""
        self._arguments = list(arguments)
        self._etcd_port = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """kube-apiserver's address."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> Path:
        """The certificate that kube-apiserver's own is signed with."""
        return self.folder / "ca.crt"

    @property
    def client_certificate(self) -> tuple[Path, Path]:
        """Certificate and key of an administrator in ``system:masters``."""
        return self.folder / "admin.crt", self.folder / "admin.key"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    def kubeconfig_of(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user with a certificate of its own; the control plane must have been started."""
        # A colon stands between the files of a kubeconfig's path.
        path = self.folder / f"{user.replace(':', '.')}.kubeconfig"
        self._write_kubeconfig(path, self.authority.client(user, groups))
        return path

    def __enter__(self) -> Self:
        if not PROGRAM.exists():
            raise NotBuilt(f"{PROGRAM} is not there: run make controlplane (it needs Go)")
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop what runs, last started first; kill what does not stop in time."""
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=STOP_SECONDS)
        self._processes.clear()

    def pids(self) -> dict[str, int]:
        """Return the process id of each program, for measuring its memory."""
        return {name: process.pid for name, process in self._processes.items()}

    def log_tail(self, name: str, size: int = 4000) -> str:
        """Return the last ``size`` bytes that a program printed."""
        return (self.folder / f"{name}.log").read_bytes()[-size:].decode(errors="replace")

    def _start(self) -> None:
        self.authority = Authority.new(self.folder, "ca")
        self.front_proxy = Authority.new(self.folder, "front-proxy-ca")
        serving, proxy = self.authority.server("kube-apiserver"), self.front_proxy.client("front-proxy-client")
        tokens = signing_key(self.folder, "service-accounts")
        self._write_kubeconfig(self.kubeconfig, self.authority.client("admin", ("system:masters",)))
        self._run("etcd", self._etcd_arguments())
        self._run("kube-apiserver", self._apiserver_arguments(serving, proxy, tokens))
        self._wait_until(lambda: self._get("/readyz") == http.client.OK)
        self._run("kube-controller-manager", self._controller_arguments(tokens))
        # The account that the controllers make in every namespace shows that they work.
        self._wait_until(lambda: self._get("/api/v1/namespaces/default/serviceaccounts/default") == http.client.OK)

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [str(PROGRAM), name, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    def _etcd_arguments(self) -> list[str]:
        clients = f"http://127.0.0.1:{self._etcd_port}"
        peers = f"http://127.0.0.1:{free_port()}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def _apiserver_arguments(self, serving: KeyPair, proxy: KeyPair, tokens: KeyPair) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.ca}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={tokens.key}",
            f"--service-account-key-file={tokens.certificate}",
            f"--requestheader-client-ca-file={self.folder / 'front-proxy-ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={proxy.certificate}",
            f"--proxy-client-key-file={proxy.key}",
            "--authorization-mode=RBAC",
            f"--authentication-config={self._authentication_config()}",
            # Pods are not run here, and their account would have to exist first.
            "--disable-admission-plugins=ServiceAccount",
            *self._arguments,
        ]

    def _authentication_config(self) -> Path:
        path = self.folder / "authentication.json"
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1beta1",
            "kind": "AuthenticationConfiguration",
            "anonymous": {"enabled": True, "conditions": [{"path": each} for each in ANONYMOUS_PATHS]},
        }
        path.write_text(json.dumps(config))
        return path

    def _controller_arguments(self, tokens: KeyPair) -> list[str]:
        # The administrator's kubeconfig: the role of system:kube-controller-manager alone cannot empty a namespace.
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={tokens.key}",
            f"--root-ca-file={self.ca}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
        ]

    def _write_kubeconfig(self, path: Path, holder: KeyPair) -> None:
        user = {"client-certificate": str(holder.certificate), "client-key": str(holder.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": "holder", "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "holder"}}],
            "current-context": "real",
        }
        path.write_text(json.dumps(config))

    def _get(self, path: str) -> int:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(*map(str, self.client_certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:  # it does not listen yet
            return 0
        finally:
            connection.close()

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise ControlPlaneFailed(f"{name} exited with {process.returncode}:\n{self.log_tail(name)}")
            if time.monotonic() > deadline:
                latest = list(self._processes)[-1]
                raise ControlPlaneFailed(f"not ready after {START_SECONDS} s; {latest}:\n{self.log_tail(latest)}")
            time.sleep(0.1)

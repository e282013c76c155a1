"""The server under test behind a real kube-apiserver: ``python -m apiserver serve --aggregated``, registered as an APIService.

It has the account that the chart gives it, with the rights of the release (``cluster_release.py``) or, where none is installed,
those that it needs and no others. Whoever speaks to it goes through kube-apiserver, so that a test of a standalone server is one
of this server, too.
"""

import base64
import copy
import json
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from porch_client import PORCH, PorchClient
from porch_process import PorchProcess

from apiserver.auth.kubeconfig import kubeconfig_for
from apiserver.crd_files import FOLDER as DEFINITIONS
from apiserver.resources.rbac.defaults import default_cluster_roles

Object = dict[str, Any]
NAMESPACE = "porch-system"
SERVICE = "porch-server"
ROLE = "porch-server"
USER = f"system:serviceaccount:{NAMESPACE}:porch-server"
"""As whom the server speaks to the cluster: the account that the chart gives it."""
CONTROLLERS = f"system:serviceaccount:{NAMESPACE}:porch-controllers"
"""The account of the controllers."""
NAME = f"{SERVICE}.{NAMESPACE}.svc"
"""Whom kube-apiserver expects at the other end."""
RBAC = "rbac.authorization.k8s.io"
API_SERVICE = "v1alpha1.porch.kpt.dev"
AVAILABLE_SECONDS = 120.0
"""Until kube-apiserver sees that a server is there, or is not: a minute (``kube-api.md`` 7.2, 12; ``make bench`` measures it), and one
more for a busy machine, since it looks every half minute at worst."""
ROOT = Path(__file__).resolve().parent.parent


class AggregatedProcess(PorchProcess):
    """One server of ``cluster``. ``data`` survives restarts; so does the port, which the Service names."""

    def __init__(
        self,
        cluster: ControlPlane,
        data: Path,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        own = ["--aggregated", "--kubeconfig", str(cluster.kubeconfig_of(USER))]
        names = {"PORCH_TLS_NAMES": json.dumps([NAME])}
        super().__init__(data, arguments=[*own, *arguments], environment={**names, **(environment or {})})
        self._registered = False

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        return self.cluster.kubeconfig

    def start(self) -> None:
        """Start the server and return when kube-apiserver says that it is available."""
        self.run()
        self.register(self.port)

    def run(self) -> None:
        """Start the server and return when it says that it is ready; the cluster need not know of it."""
        super().start()

    def register(self, port: int) -> None:
        """Tell the cluster which port leads to the API, and return when it does so through kube-apiserver."""
        if not self._registered:  # what was said of an earlier server would be believed of this one
            self.unregister()
        authority = (self.data / "ca.crt").read_bytes()
        registration = objects(port, authority) if not self.cluster.registration else self._released(port, authority)
        Kubectl(self.kubeconfig, "").apply(*registration)
        self._registered = True
        self.wait_until_available()
        eventually(self._is_reached, timeout=AVAILABLE_SECONDS)

    def unregister(self) -> None:
        """Take the API out of the cluster, so that nobody waits for a server that is not there."""
        Kubectl(self.kubeconfig).ok("delete", "apiservice", API_SERVICE, "--ignore-not-found")
        self._registered = False

    def _released(self, port: int, authority: bytes) -> list[Object]:
        """Return the release's Service and APIService, which lead to this machine with a port and an authority of now."""
        service, api = copy.deepcopy(self.cluster.registration)
        api["spec"]["caBundle"] = base64.b64encode(authority).decode()
        api["spec"]["service"]["port"] = port
        return [service, api]

    def _is_reached(self) -> None:
        with closing(self.client()) as client:
            assert client.request("GET", PORCH).code == HTTPStatus.OK
            # kubectl checks what it creates; kube-apiserver fetches the schemas some time after it found the group.
            assert PORCH.removeprefix("/") in client.request("GET", "/openapi/v3").object["paths"]

    def wait_until_available(self, *, available: bool = True) -> None:
        """Wait until kube-apiserver sees the server, or sees that it is gone."""
        kubectl = Kubectl(self.kubeconfig)

        def seen() -> None:
            told = kubectl.json("get", "apiservice", API_SERVICE).get("status", {}).get("conditions", [])
            assert [one["status"] for one in told if one["type"] == "Available"] == [str(available)], told

        eventually(seen, timeout=AVAILABLE_SECONDS)

    def client(self, namespace: str = "default", *, timeout: float = 60.0, anonymous: bool = False) -> PorchClient:
        """Return a client of kube-apiserver with the administrator's certificate, or with none."""
        certificate = None if anonymous else self.cluster.client_certificate
        return PorchClient(
            self.cluster.url, ca=self.cluster.ca, certificate=certificate, namespace=namespace, timeout=timeout
        )

    @property
    def own_kubeconfig(self) -> Path:
        """A kubeconfig of the cluster's administrator for the server itself, past kube-apiserver."""
        certificate, key = self.cluster.client_certificate
        path = self.data.parent / f"{self.data.name}.kubeconfig"
        ca = (self.data / "ca.crt").read_bytes()
        path.write_bytes(
            kubeconfig_for(server=self.url, ca=ca, certificate=certificate.read_bytes(), key=key.read_bytes())
        )
        return path

    def kubeconfig_of(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user of the cluster with a certificate of their own."""
        return self.cluster.kubeconfig_of(user, groups)

    def own_client(self) -> PorchClient:
        """Return a client of the server itself, past kube-apiserver, with the administrator's certificate."""
        return self.direct(self.cluster.client_certificate)

    def direct(self, certificate: tuple[Path, Path] | None) -> PorchClient:
        """Return a client of the server itself, past kube-apiserver."""
        return PorchClient(self.url, ca=self.data / "ca.crt", certificate=certificate)

    def _is_ready(self) -> bool:
        try:
            client = self.direct(None)
        except (OSError, ssl.SSLError):  # the certificates are being made
            return False
        try:
            return client.request("GET", "/readyz").code == 200
        except OSError:
            return False
        finally:
            client.close()


def install_rights(cluster: ControlPlane) -> None:
    """Install the definitions and the rights of the server, which it needs before its first start."""
    kubectl = Kubectl(cluster.kubeconfig, "")  # the objects say where they belong
    kubectl.ok("apply", "-f", str(ROOT / DEFINITIONS))
    kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", "-f", str(ROOT / DEFINITIONS))
    # Of the roles that a standalone server has, those that no cluster brings.
    people = [role for role in default_cluster_roles() if "porch-" in role["metadata"]["name"]]
    kubectl.apply(*rights(), *people, *rights_of_controllers())


def objects(port: int, ca: bytes) -> list[Object]:
    """Return the Service that leads to this machine, and the APIService."""
    return [
        _object("v1", "Service", SERVICE, NAMESPACE, spec={"type": "ExternalName", "externalName": "localhost"}),
        _object(
            "apiregistration.k8s.io/v1",
            "APIService",
            API_SERVICE,
            spec={
                "group": "porch.kpt.dev",
                "version": "v1alpha1",
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "caBundle": base64.b64encode(ca).decode(),
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
            },
        ),
    ]


def rights() -> list[Object]:
    """Return what the server may do: what it must, and nothing else."""
    config, read = "config.porch.kpt.dev", ["get", "list", "watch"]
    rules = [
        {"apiGroups": [config], "resources": ["repositories"], "verbs": [*read, "update"]},
        {"apiGroups": [config], "resources": ["repositories/status"], "verbs": ["update"]},
        {"apiGroups": [config], "resources": ["packagevariants", "packagevariantsets"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": read},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "create", "update"]},
    ]
    reader = "extension-apiserver-authentication-reader"
    return [
        _object("v1", "Namespace", NAMESPACE),
        _object(f"{RBAC}/v1", "ClusterRole", ROLE, rules=rules),
        _bound(USER, ROLE, "ClusterRole", ROLE),
        _bound(USER, f"{ROLE}-delegator", "ClusterRole", "system:auth-delegator"),
        _bound(USER, f"{ROLE}-{reader}", "Role", reader, "kube-system"),
    ]


def rights_of_controllers() -> list[Object]:
    """Return what gives the controllers their roles, and that of reading what variants inject and select."""
    return [
        _bound(CONTROLLERS, f"{role}-of-controllers", "ClusterRole", f"system:{role}")
        for role in ("porch-controllers", "porch-injectables")
    ]


def _bound(user: str, name: str, role_kind: str, role: str, namespace: str = "") -> Object:
    """Bind a user to a role, in the whole cluster where no namespace is given."""
    ref = {"apiGroup": RBAC, "kind": role_kind, "name": role}
    subjects = [{"kind": "User", "name": user, "apiGroup": RBAC}]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return _object(f"{RBAC}/v1", kind, name, namespace, roleRef=ref, subjects=subjects)


def _object(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}

"""The server under test behind a real kube-apiserver: ``python -m apiserver serve --aggregated``, registered as an APIService.

It is the user ``porch-server`` of the cluster, with the rights that it needs and no others. Whoever speaks to it goes through
kube-apiserver, so that a test of a standalone server is one of this server, too.
"""

import base64
import json
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from control_plane import ControlPlane
from eventually import eventually
from kubectl import Kubectl
from porch_client import PorchClient
from porch_process import PorchProcess

from apiserver.crd_files import FOLDER as DEFINITIONS
from apiserver.resources.rbac.defaults import default_cluster_roles

Object = dict[str, Any]
NAMESPACE = "porch-system"
SERVICE = "porch-server"
USER = "porch-server"
NAME = f"{SERVICE}.{NAMESPACE}.svc"
"""Whom kube-apiserver expects at the other end."""
API_SERVICE = "v1alpha1.porch.kpt.dev"
AVAILABLE_SECONDS = 60.0
"""Until kube-apiserver sees that a server is there, or is not (``kube-api.md`` 7.2, 12)."""
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

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        return self.cluster.kubeconfig

    def start(self) -> None:
        """Start the server and return when kube-apiserver says that it is available."""
        super().start()
        Kubectl(self.kubeconfig, "").apply(*objects(self.port, (self.data / "ca.crt").read_bytes()))
        self.wait_until_available()

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
    kubectl.ok("wait", "--for=condition=Established", "--timeout=30s", "-f", str(ROOT / DEFINITIONS))
    # Of the roles that a standalone server has, those that no cluster brings.
    people = [role for role in default_cluster_roles() if "porch-" in role["metadata"]["name"]]
    kubectl.apply(*rights(), *people)


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
    group = "rbac.authorization.k8s.io"
    subjects = [{"kind": "User", "name": USER, "apiGroup": group}]
    version = f"{group}/v1"

    def bound(kind: str, name: str, role_kind: str, role: str, namespace: str = "") -> Object:
        ref = {"apiGroup": group, "kind": role_kind, "name": role}
        return _object(version, kind, name, namespace, roleRef=ref, subjects=subjects)

    reader = "extension-apiserver-authentication-reader"
    return [
        _object("v1", "Namespace", NAMESPACE),
        _object(version, "ClusterRole", USER, rules=rules),
        bound("ClusterRoleBinding", USER, "ClusterRole", USER),
        bound("ClusterRoleBinding", f"{USER}-delegator", "ClusterRole", "system:auth-delegator"),
        bound("RoleBinding", f"{USER}-{reader}", "Role", reader, "kube-system"),
    ]


def _object(version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}

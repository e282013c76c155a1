"""The chart installed in a control plane, as its user does it, for servers and controllers that run on this machine.

They have the accounts and the rights of the release, and are registered with its Service and its APIService; only the port and
the authority are those of whoever runs. Source: issue 9, "Done when".
"""

from pathlib import Path

from chart_rendering import CHART, HELM, NAMESPACE, RELEASE, Helm, built, named, of_kind, settings
from control_plane import ControlPlane
from kubectl import Kubectl
from manifests import namespace_object

VALUES = {
    "service__externalName": "localhost",
    "server__enabled": False,  # in Pods: there are none
    "certificates__source": "existing",
    "certificates__existing__secretName": "porch-tls",
}
DEFINITIONS = ("repositories", "packagevariants", "packagevariantsets")


def install_release(cluster: ControlPlane, home: Path) -> None:
    """Install the chart and return when its definitions serve. Skips the test where Helm is not built."""
    helm = Helm(built(HELM), home, cluster.kubeconfig)
    kubectl = Kubectl(cluster.kubeconfig)
    kubectl.apply(namespace_object(NAMESPACE))
    helm.ok("install", RELEASE, str(CHART), *settings(VALUES))
    kubectl.ok(
        "wait",
        "crd",
        "--for=condition=Established",
        "--timeout=60s",
        *(f"{name}.config.porch.kpt.dev" for name in DEFINITIONS),
    )
    rendered = helm.template(*settings(VALUES))
    cluster.registration = [named(rendered, "Service", "porch-server"), *of_kind(rendered, "APIService")]

"""The guide to the chart, typed as it stands there, in a real control plane. A thread ends Jobs, as Pods would."""

import base64
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chart_rendering import HELM, HELM_4, NAMESPACE, ROOT, Done, built
from control_plane import PROGRAM, ControlPlane
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from ended_jobs import jobs_succeed
from kubectl import Kubectl, Object
from manifests import deployment, namespace_object

pytestmark = pytest.mark.timeout(600)

GUIDES = ROOT / "docs" / "how-to"
SECONDS = 120


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    built(HELM)
    built(PROGRAM)
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as real:
        yield real


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Kubectl:
    return Kubectl(control_plane.kubeconfig, NAMESPACE)


@pytest.fixture(params=[HELM, HELM_4], ids=lambda program: program.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder in which the project's paths mean what they mean at its root, and ``bin/helm`` is one of two Helms."""
    for name in ("charts", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "helm").symlink_to(built(request.param))
    return tmp_path


def blocks(kind: str, guide: str = "install-with-helm") -> list[str]:
    return re.findall(rf"```sh {kind}\n(.*?)```", (GUIDES / f"{guide}.md").read_text(), re.DOTALL)


def type_in(commands: str, cluster: Kubectl, folder: Path) -> Done:
    """Run commands as a user's shell would, but for the first that fails, which ends it."""
    environment = {
        "HOME": str(folder),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
    }
    done = subprocess.run(
        ["sh", "-euc", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done


def test_a_release_is_installed_upgraded_and_removed_as_the_guide_says(cluster: Kubectl, folder: Path) -> None:
    install, upgrade, uninstall, rest = blocks("cluster")

    with jobs_succeed(cluster) as jobs:
        installed = type_in(install, cluster, folder)
        server = cluster.json("get", "deployment", "porch-server")["spec"]
        (container,) = server["template"]["spec"]["containers"]
        assert (server["replicas"], container["image"]) == (2, "registry.example.com/platform/porch:0.1.0")
        assert "PASSWORD" not in installed.stdout + cluster.ok("get", "deployments,configmaps", "-o", "yaml")
        assert jobs == ["porch-migrations"]

        type_in(upgrade, cluster, folder)
        assert jobs == ["porch-migrations"] * 2

    type_in(uninstall, cluster, folder)
    kinds = "deployments,services,secrets,serviceaccounts,roles"
    assert cluster.ok("get", kinds, "-l", "app.kubernetes.io/part-of=porch", "-o", "name") == ""
    definitions = ("get", "crd", "-l", "app.kubernetes.io/part-of=porch", "-o", "name")
    assert len(cluster.ok(*definitions).split()) == 3
    type_in(rest, cluster, folder)
    assert cluster.ok(*definitions) == ""
    cluster.ok("delete", "namespace", NAMESPACE, timeout=SECONDS)


def of_upstream() -> list[Object]:
    """Return what an installation of upstream's has that a release of ours meets: names, and an APIService that trusts anybody (``porch-api.md`` 1.1)."""
    service = {"name": "api", "namespace": "porch-system", "port": 443}
    registered = {"group": "porch.kpt.dev", "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15}
    return [
        namespace_object("porch-system"),
        *(deployment(name, "porch-system") for name in ("porch-server", "porch-controllers")),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1alpha1.porch.kpt.dev"},
            "spec": {**registered, "insecureSkipTLSVerify": True, "service": service},
        },
    ]


def test_a_release_takes_the_place_of_upstreams_and_gives_it_back_as_the_guide_says(
    cluster: Kubectl, folder: Path
) -> None:
    everywhere = Kubectl(cluster.kubeconfig, "")
    everywhere.ok("create", "-f", str(ROOT / "charts" / "porch" / "files" / "crds"))
    everywhere.apply(*of_upstream())
    definitions = everywhere.ok("get", "crd", "-o", "name")

    with jobs_succeed(cluster.within("porch")):
        type_in("".join(blocks("move", "move-from-upstream")), cluster, folder)
    ours = everywhere.json("get", "apiservice", "v1alpha1.porch.kpt.dev")["spec"]
    assert ours["service"]["namespace"] == "porch"
    assert ours["caBundle"]
    assert "insecureSkipTLSVerify" not in ours

    type_in("".join(blocks("move-back", "move-from-upstream")), cluster, folder)
    everywhere.apply(*of_upstream())

    assert everywhere.json("get", "apiservice", "v1alpha1.porch.kpt.dev")["spec"]["service"]["name"] == "api"
    assert len(everywhere.json("get", "deployments", "--namespace=porch-system")["items"]) == 2
    assert everywhere.ok("get", "crd", "-o", "name") == definitions
    everywhere.ok("delete", "apiservice", "v1alpha1.porch.kpt.dev")
    everywhere.ok("delete", *definitions.split())
    everywhere.ok("delete", "namespace", "porch-system", "porch", timeout=SECONDS)


@pytest.mark.parametrize("folder", [HELM], indirect=True, ids=["none"])
def test_without_helm_the_manifests_and_a_certificate_of_ones_own_do(cluster: Kubectl, folder: Path) -> None:
    (commands,) = blocks("raw")

    type_in(commands, cluster, folder)

    registered = cluster.json("get", "apiservice", "v1alpha1.porch.kpt.dev")["spec"]
    secret = cluster.json("get", "secret", "porch-tls")["data"]
    authority = x509.load_pem_x509_certificate(base64.b64decode(registered["caBundle"]))
    leaf = x509.load_pem_x509_certificate(base64.b64decode(secret["tls.crt"]))
    service = registered["service"]
    name = x509.DNSName(f"{service['name']}.{service['namespace']}.svc")
    PolicyBuilder().store(Store([authority])).build_server_verifier(name).verify(leaf, [])
    assert cluster.json("get", "deployment", "porch-server")["spec"]["replicas"] == 1
    assert len(cluster.ok("get", "crd", "-o", "name").split()) == 3

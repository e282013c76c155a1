"""Releases over time in a real control plane: from an earlier chart to this one and back, beside another one, and what is left after it."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import CHART, HELM, NAMESPACE, RELEASE, Helm, Object, built, settings
from control_plane import PROGRAM, ControlPlane
from ended_jobs import jobs_succeed
from kubectl import Kubectl
from manifests import namespace_object

pytestmark = pytest.mark.timeout(600)

CLOSED = Path(__file__).parent / "values" / "closed.yaml"
GONE = "networkPolicy"
"""Values that the earlier chart does not have yet."""
FIELD = "adoptionPolicy"
"""A field of PackageVariants that it does not know yet."""
VARIANT = {
    "apiVersion": "config.porch.kpt.dev/v1alpha1",
    "kind": "PackageVariant",
    "metadata": {"name": "site"},
    "spec": {
        "upstream": {"repo": "a", "package": "b", "workspaceName": "v1"},
        "downstream": {"repo": "c", "package": "d"},
    },
}
KINDS = (
    "deployments,services,secrets,serviceaccounts,configmaps,roles,rolebindings,networkpolicies,poddisruptionbudgets,"
    "horizontalpodautoscalers,persistentvolumeclaims,jobs,pods,clusterroles,clusterrolebindings,apiservices"
)
GONE_SECONDS = 180.0
"""How long a real cluster may take to delete what is deleted step by step; ten seconds alone."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    built(HELM)
    built(PROGRAM)
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as real:
        yield real


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Kubectl]:
    """Return the administrator's kubectl in the release's namespace, where nothing is yet; nothing is left after the test."""
    kubectl = Kubectl(control_plane.kubeconfig, NAMESPACE)
    kubectl.apply(namespace_object(NAMESPACE), namespace_object("edge"))
    yield kubectl
    # A definition goes after its objects. kube-apiserver looks again after a minute when it found some left, so they go first.
    kubectl("delete", "packagevariants", "--all", "--all-namespaces", timeout=GONE_SECONDS)
    kubectl("delete", "customresourcedefinitions", "-l", "app.kubernetes.io/part-of=porch", timeout=GONE_SECONDS)
    for name in (NAMESPACE, "edge"):
        kubectl("delete", "namespace", name, timeout=GONE_SECONDS)


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """Return the administrator's Helm."""
    administrators = Helm(HELM, tmp_path, control_plane.kubeconfig)
    yield administrators
    administrators("uninstall", RELEASE, "--ignore-not-found")


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return a chart as an earlier one might have been: without some values, without a field of a kind, another version."""
    chart = tmp_path / "earlier"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "network-policies.yaml").unlink()
    _edit(chart / "Chart.yaml", lambda content: content.update(version="0.0.9", appVersion="0.0.9"))
    _edit(chart / "values.yaml", lambda content: content.pop(GONE))
    schema = chart / "values.schema.json"
    known = json.loads(schema.read_text())
    del known["properties"][GONE]
    schema.write_text(json.dumps(known))
    (definition,) = (chart / "files" / "crds").glob("*packagevariants.yaml")
    _edit(definition, lambda content: _fields(content).pop(FIELD))
    return chart


def _edit(path: Path, change: Any) -> None:
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def _fields(definition: Object) -> Object:
    (version,) = definition["spec"]["versions"]
    fields: Object = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return fields


def known_fields(kubectl: Kubectl) -> Object:
    return _fields(kubectl.json("get", "crd", "packagevariants.config.porch.kpt.dev"))


def server(kubectl: Kubectl) -> tuple[str, str]:
    """Return image and setting of the server's Pods."""
    (container,) = kubectl.json("get", "deployment", "porch-server")["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    return container["image"], variables["PORCH_SYNC_INTERVAL"]


def test_an_earlier_release_becomes_this_one_and_goes_back_and_keeps_what_people_have(
    cluster: Kubectl, helm: Helm, earlier: Path
) -> None:
    chosen = settings({"server__settings": {"PORCH_SYNC_INTERVAL": 20}, "database__existingSecret__name": "db"})
    with jobs_succeed(cluster) as jobs:
        helm.ok("install", RELEASE, str(earlier), *chosen)
        cluster.ok(
            "wait", "crd", "--for=condition=Established", "--timeout=60s", "packagevariants.config.porch.kpt.dev"
        )
        cluster.within("edge").apply(VARIANT)
        before = cluster.within("edge").json("get", "packagevariant", "site")["metadata"]["uid"]
        certificate = cluster.json("get", "secret", "porch-tls")["data"]
        assert FIELD not in known_fields(cluster)
        assert server(cluster) == ("porch:0.0.9", "20")

        closed = settings({"networkPolicy__enabled": True})
        helm.ok("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", *closed)
        upgraded = known_fields(cluster), server(cluster), cluster.json("get", "secret", "porch-tls")["data"]
        policies = cluster.ok("get", "networkpolicies", "-o", "name").split()

        helm.ok("rollback", RELEASE, "1")
        back = known_fields(cluster), server(cluster)

    assert jobs == ["porch-migrations"] * 2, "one before each, and none before the way back"
    assert FIELD in upgraded[0]
    assert upgraded[1:] == (("porch:0.1.0", "20"), certificate)
    assert sorted(policies) == [
        "networkpolicy.networking.k8s.io/porch-controllers",
        "networkpolicy.networking.k8s.io/porch-server",
    ]
    assert FIELD not in back[0]
    assert back[1] == ("porch:0.0.9", "20")
    assert cluster.ok("get", "networkpolicies", "-o", "name") == ""
    assert cluster.within("edge").json("get", "packagevariant", "site")["metadata"]["uid"] == before


def test_a_second_release_is_refused_before_it_changes_anything(cluster: Kubectl, helm: Helm) -> None:
    here = settings({"service__externalName": "localhost", "server__enabled": False, "certificates__days": 30})
    helm.ok("install", RELEASE, str(CHART), *here)
    registered = cluster.json("get", "apiservice", "v1alpha1.porch.kpt.dev")

    for name in (RELEASE, "second-porch"):
        refused = replace(helm, namespace="edge")("install", name, str(CHART), *here)
        assert refused.returncode == 1
        assert "invalid ownership metadata" in refused.stderr
        assert f'current value is "{NAMESPACE}"' in refused.stderr
        assert "exists and cannot be imported into the current release" in refused.stderr

    assert (
        cluster.within("edge").ok(
            "get", "deployments,services,serviceaccounts,secrets", "-l", "app.kubernetes.io/name=porch", "-o", "name"
        )
        == ""
    )
    assert cluster.json("get", "apiservice", "v1alpha1.porch.kpt.dev")["spec"] == registered["spec"]


def test_an_uninstall_leaves_nothing_but_definitions_and_what_is_of_their_kinds(cluster: Kubectl, helm: Helm) -> None:
    with jobs_succeed(cluster) as jobs:
        helm.ok("install", RELEASE, str(CHART), "--values", str(CLOSED))
    cluster.ok("wait", "crd", "--for=condition=Established", "--timeout=60s", "packagevariants.config.porch.kpt.dev")
    cluster.within("edge").apply(VARIANT)
    ours = ("-l", "app.kubernetes.io/part-of=porch", "-o", "name")
    assert jobs == ["porch-migrations"]
    assert len(cluster.ok("get", KINDS, *ours).split()) > 20

    helm.ok("uninstall", RELEASE)

    assert cluster.ok("get", KINDS, *ours) == ""
    assert "injectables" not in cluster.ok("get", "clusterroles", "-o", "name"), "nor what the cluster made of it"
    assert len(cluster.ok("get", "crd", *ours).split()) == 3
    assert cluster.within("edge").ok("get", "packagevariants", "-o", "name").split() == [
        "packagevariant.config.porch.kpt.dev/site"
    ]

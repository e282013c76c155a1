"""The chart in a real control plane: every object is valid there, and a release is installed, upgraded and removed.

There is no kubelet: Deployments make no Pods, so the programs are started here, with what the chart gives them.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_processes import Released, released
from chart_rendering import (
    CASES,
    CHART,
    HELM,
    HELM_4,
    NAMESPACE,
    RELEASE,
    ROOT,
    SECONDS,
    Done,
    Helm,
    Object,
    built,
    documents,
    pods,
    settings,
)
from control_plane import PROGRAM, ControlPlane
from eventually import eventually
from kubectl import Kubectl
from manifests import credentials, namespace_object, repository
from porch_process import free_port
from remotes import Remote

pytestmark = pytest.mark.timeout(600)

FOREIGN = {
    "Certificate": ("cert-manager.io", "v1", "certificates"),
    "Issuer": ("cert-manager.io", "v1", "issuers"),
    "ServiceMonitor": ("monitoring.coreos.com", "v1", "servicemonitors"),
    "PrometheusRule": ("monitoring.coreos.com", "v1", "prometheusrules"),
}
AVAILABLE_SECONDS = 120.0
FOLLOWED_SECONDS = 120.0


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    built(HELM)
    built(PROGRAM)
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as real:
        yield real


@pytest.fixture(scope="module")
def cluster_helm(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return the administrator's Helm."""
    return Helm(HELM, tmp_path_factory.mktemp("helm"), control_plane.kubeconfig)


def definition(kind: str) -> Object:
    """Stand in for a kind of another project: kube-apiserver checks what it has in common with all kinds."""
    group, version, plural = FOREIGN[kind]
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture(scope="module")
def prepared(control_plane: ControlPlane) -> Kubectl:
    """Return the administrator's kubectl, where the namespaces and the kinds of others are that the cases name."""
    cluster = Kubectl(control_plane.kubeconfig, NAMESPACE)
    cluster.apply(*(namespace_object(name) for name in (NAMESPACE, "edge", "core")), *map(definition, FOREIGN))
    cluster.ok(
        "wait", "crd", "--for=condition=Established", "--timeout=60s", *(f"{p}.{g}" for g, _, p in FOREIGN.values())
    )
    return cluster


def checked(kubectl: Kubectl, manifests: str) -> Done:
    """Have kube-apiserver check objects of all namespaces, unknown fields included."""
    command = kubectl.command("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    anywhere = [word for word in command if not word.startswith("--namespace=")]
    return subprocess.run(anywhere, input=manifests, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_kube_apiserver_takes_every_object_of_every_case_without_a_warning(
    cluster_helm: Helm, prepared: Kubectl, case: Path
) -> None:
    objects = cluster_helm.render(case)

    done = checked(prepared, yaml.safe_dump_all(objects))

    assert done.returncode == 0, done.stderr
    assert "Warning:" not in done.stderr
    assert len(done.stdout.splitlines()) == len(objects)


@pytest.mark.parametrize("name", ["porch", "porch-small", "porch-approval"])
def test_kube_apiserver_takes_the_manifests_for_those_without_helm(prepared: Kubectl, name: str) -> None:
    done = checked(prepared, (ROOT / "deploy" / f"{name}.yaml").read_text())

    assert done.returncode == 0, done.stderr
    assert "Warning:" not in done.stderr


def test_every_pod_is_admitted_where_only_restricted_ones_are(cluster_helm: Helm, prepared: Kubectl) -> None:
    restricted = namespace_object("restricted")
    restricted["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    prepared.apply(restricted)
    templates = [found for case in CASES for found in pods(cluster_helm.render(case))]

    for name, template in templates:
        created = pod(name, template)
        assert prepared.within("restricted")("create", "--dry-run=server", "-f", "-", stdin=created).stderr == ""

    created["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    refused = prepared.within("restricted")("create", "--dry-run=server", "-f", "-", stdin=created)
    assert 'violates PodSecurity "restricted' in refused.stderr


def pod(name: str, template: Object) -> Object:
    """Make the Pod that a controller would make; the scheduler's and kubelet's business is left out."""
    spec = {
        key: value for key, value in template["spec"].items() if key not in {"serviceAccountName", "priorityClassName"}
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"restartPolicy": "Always", **spec}}


@pytest.fixture(scope="module")
def port() -> int:
    """Return the port that the release's server listens at."""
    return int(free_port())


@pytest.fixture(scope="module")
def release(
    cluster_helm: Helm,
    prepared: Kubectl,
    control_plane: ControlPlane,
    port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Released]:
    """Install the chart for a server on this machine, and start the programs as the chart would have Pods start them."""
    cluster_helm.ok("install", RELEASE, str(CHART), *settings(here(port)))
    with released(prepared, control_plane, port, tmp_path_factory.mktemp("release")) as running:
        yield running
    cluster_helm("uninstall", RELEASE)


def here(port: int) -> dict[str, Any]:
    """Return the values for a server that listens at a port of this machine."""
    return {"service__externalName": "localhost", "service__port": port, "approval__enabled": True}


def test_the_server_is_available_and_the_test_of_the_release_agrees(release: Released, cluster_helm: Helm) -> None:
    condition = release.available(AVAILABLE_SECONDS)
    hooks = [one for one in documents(cluster_helm.ok("get", "hooks", RELEASE)) if one["kind"] != "Pod"]
    release.kubectl.apply(*hooks)
    done = release.helm_test()
    release.kubectl.ok("delete", "-f", "-", stdin=yaml.safe_dump_all(hooks))

    assert condition["reason"] == "Passed"
    assert done.returncode == 0, done.stdout
    assert "is available" in done.stdout
    assert release.kubectl.ok("get", "packagerevisions", "-A", "-o", "name") == ""


def test_what_kubelets_and_prometheus_ask_is_answered_without_credentials(release: Released, port: int) -> None:
    release.available(AVAILABLE_SECONDS)

    for path in ("/readyz", "/livez"):
        assert release.probe("server", path) == f"https://127.0.0.1:{port}{path}"
    for component in ("controllers", "approval"):
        for path in ("/readyz", "/healthz"):
            eventually(partial(release.probe, component, path), timeout=FOLLOWED_SECONDS)
        assert "leader_election_master_status" in release.metrics(component)
    assert "porch_repositories{" in release.metrics("server")


def test_the_programs_work_as_an_unknown_user_without_rights_on_a_file_system_that_is_read_only(
    release: Released,
) -> None:
    if not release.confined:
        pytest.skip("this machine does not let its user make namespaces: the programs ran unconfined")

    for pid in release.pids.values():
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        mounts = {line.split()[4]: line.split()[5] for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()}
        assert Path(f"/proc/{pid}/uid_map").read_text().split()[0] == "10001"
        assert (int(status["CapEff"], 16), status["NoNewPrivs"]) == (0, "1")
        assert mounts["/"].startswith("ro")


def test_the_rights_of_the_chart_are_enough_for_a_variant_of_a_private_repository(
    release: Released, empty_remote: Remote
) -> None:
    release.available(AVAILABLE_SECONDS)
    site = release.kubectl.within("edge")
    site.apply(credentials(), repository("packages", empty_remote.url))
    site.ok("wait", "repository/packages", "--for=condition=Ready", f"--timeout={FOLLOWED_SECONDS:.0f}s", timeout=150)
    site.ok("create", "-f", "-", stdin=revision())
    for lifecycle, *where in (("Proposed",), ("Published", "--subresource=approval")):
        body = json.dumps({"spec": {"lifecycle": lifecycle}})
        site.ok("patch", "packagerevision", "packages.web.v1", "--type=merge", "-p", body, *where)
    site.apply(variant())

    def drafted() -> None:
        listed = site.ok("get", "packagerevisions", "-o", "jsonpath={.items[*].spec.packageName}").split()
        assert "web-copy" in listed, release.logs()

    eventually(drafted, timeout=FOLLOWED_SECONDS)

    def told_and_held() -> None:  # Events are written beside, and each process has its own time
        assert site.ok("get", "events", "--field-selector", "involvedObject.kind=PackageRevision", "-o", "name")
        assert {lease.removeprefix("lease.coordination.k8s.io/") for lease in release.leases()} == {
            "porch-controllers",
            "porch-approval",
        }

    eventually(told_and_held, timeout=FOLLOWED_SECONDS)
    assert "forbidden" not in release.logs().lower()
    site.ok("delete", "packagevariant", "copy", "--wait=false")


def revision() -> Object:
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "spec": {
            "repository": "packages",
            "packageName": "web",
            "workspaceName": "v1",
            "tasks": [{"type": "init", "init": {"description": "a web server"}}],
        },
    }


def variant() -> Object:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "copy"},
        "spec": {
            "upstream": {"repo": "packages", "package": "web", "workspaceName": "v1"},
            "downstream": {"repo": "packages", "package": "web-copy"},
        },
    }


RIGHTS = [
    ("view", "get packagerevisions.porch.kpt.dev", True),
    ("view", "get packagevariants.config.porch.kpt.dev", True),
    ("view", "create packagerevisions.porch.kpt.dev", False),
    ("edit", "create packagerevisions.porch.kpt.dev", True),
    ("edit", "update packagerevisionresources.porch.kpt.dev", True),
    ("edit", "create repositories.config.porch.kpt.dev", True),
    ("edit", "update packagerevisions.porch.kpt.dev --subresource=approval", False),
    ("admin", "update packagerevisions.porch.kpt.dev --subresource=approval", True),
    ("porch-author", "update packagerevisions.porch.kpt.dev", True),
    ("porch-author", "update packagerevisions.porch.kpt.dev --subresource=approval", False),
    ("porch-author", "create repositories.config.porch.kpt.dev", False),
    ("porch-approver", "patch packagerevisions.porch.kpt.dev --subresource=approval", True),
    ("porch-approver", "update packagerevisions.porch.kpt.dev", False),
]


@pytest.mark.parametrize(("role", "asked", "allowed"), RIGHTS)
def test_people_get_rights_through_the_roles_of_the_cluster(
    release: Released, role: str, asked: str, allowed: bool
) -> None:
    core = release.kubectl.within("core")
    core("create", "rolebinding", f"{role}-of-test", f"--clusterrole={role}", f"--user=user-{role}")

    def agreed() -> None:
        answer = core("auth", "can-i", *asked.split(), f"--as=user-{role}").stdout.split()
        assert answer[:1] == ["yes" if allowed else "no"]

    eventually(agreed)


def test_an_upgrade_changes_settings_and_keeps_the_certificate_until_two_thirds_of_its_life_are_over(
    release: Released, cluster_helm: Helm, port: int
) -> None:
    first = release.secret("porch-tls"), release.secret("porch-ca")

    cluster_helm.ok(
        "upgrade", RELEASE, str(CHART), *settings({**here(port), "server__settings": {"PORCH_SYNC_INTERVAL": 20}})
    )
    assert release.environment("server")["PORCH_SYNC_INTERVAL"] == "20"
    kept = release.secret("porch-tls"), release.secret("porch-ca")
    release.kubectl.ok("annotate", "secret", "porch-tls", "porch.kpt.dev/made-at=0", "--overwrite")
    cluster_helm.ok("upgrade", RELEASE, str(CHART), *settings(here(port)))
    renewed = release.secret("porch-tls"), release.secret("porch-ca")

    assert kept == first
    assert renewed[0]["tls.crt"] != first[0]["tls.crt"]
    assert renewed[1] == first[1]
    registered = release.kubectl.json("get", "apiservice", "v1alpha1.porch.kpt.dev")["spec"]["caBundle"]
    assert registered == first[1]["tls.crt"] == renewed[0]["ca.crt"]


def test_an_uninstall_leaves_definitions_objects_and_the_volume_and_a_new_release_finds_them(
    release: Released, cluster_helm: Helm, port: int
) -> None:
    kubectl = release.kubectl
    kubectl.within("core").apply(repository("kept", "https://git.example.invalid/kept.git", login=""))
    owned = documents(cluster_helm.ok("get", "manifest", RELEASE))

    told = cluster_helm.ok("uninstall", RELEASE)
    left = sorted(f"{one['kind']}/{one['metadata']['name']}" for one in owned if is_there(kubectl, one))

    assert "CustomResourceDefinition" in told
    assert left == [
        "CustomResourceDefinition/packagevariants.config.porch.kpt.dev",
        "CustomResourceDefinition/packagevariantsets.config.porch.kpt.dev",
        "CustomResourceDefinition/repositories.config.porch.kpt.dev",
        "PersistentVolumeClaim/porch-server-data",
    ]
    assert kubectl.within("core").ok("get", "repositories", "-o", "name").strip().endswith("/kept")
    notes = cluster_helm.ok("install", RELEASE, str(CHART), *settings(here(port)))
    assert "kubectl wait apiservice/v1alpha1.porch.kpt.dev" in notes
    assert "porch-server-data" in notes


def is_there(kubectl: Kubectl, one: Object) -> bool:
    namespaced = kubectl.within(one["metadata"].get("namespace", NAMESPACE))
    return namespaced("get", one["kind"], one["metadata"]["name"]).returncode == 0


def test_definitions_of_somebody_else_are_not_taken_over_unasked(cluster_helm: Helm, prepared: Kubectl) -> None:
    cluster_helm("uninstall", RELEASE)
    name = "repositories.config.porch.kpt.dev"
    prepared.ok("label", "crd", name, "app.kubernetes.io/managed-by-")
    values = settings({"service__externalName": "localhost"})

    refused = cluster_helm("install", RELEASE, str(CHART), *values)

    assert refused.returncode == 1
    assert name in refused.stderr
    assert "invalid ownership metadata" in refused.stderr
    cluster_helm.ok("install", RELEASE, str(CHART), *values, "--take-ownership")
    cluster_helm.ok("uninstall", RELEASE)


@pytest.mark.parametrize("program", [HELM, HELM_4], ids=lambda program: program.name)
def test_an_upgrade_leaves_the_certificates_that_the_servers_keep(
    program: Path, prepared: Kubectl, control_plane: ControlPlane, tmp_path: Path
) -> None:
    helm, name = Helm(built(program), tmp_path, control_plane.kubeconfig), f"self-managed-{program.name}"
    values = settings(
        {
            "certificates__source": "self-managed",
            "fullnameOverride": name,
            "crds__install": False,
            "apiService__create": False,
            "rbac__userRoles": False,
        }
    )
    helm.ok("install", name, str(CHART), *values)
    kept = ("secret", f"{name}-certificates", "-o", "jsonpath={.data}")
    prepared.ok("patch", *kept[:2], "--type=merge", "-p", '{"data":{"ca.key":"a2VwdA=="}}')

    helm.ok("upgrade", name, str(CHART), *values, *settings({"image__tag": "newer"}))

    assert prepared.ok("get", *kept) == '{"ca.key":"a2VwdA=="}'
    helm.ok("uninstall", name)

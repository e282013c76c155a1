"""The chart as Helm renders it: what is there in which case, and that its parts fit together."""

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import (
    CASES,
    CHART,
    HELM,
    HELM_4,
    NAMESPACE,
    OFFLINE,
    Helm,
    Object,
    built,
    documents,
    named,
    of_kind,
    pods,
    settings,
)
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from apiserver import __main__ as program
from apiserver import settings as server_settings
from controllers import settings as controllers_settings

CLUSTER_SCOPED = {"APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace"}
CLUSTERS_OWN = {
    ("ClusterRole", "system:auth-delegator"),
    ("Role", "extension-apiserver-authentication-reader"),
}
DEFAULT, PRODUCTION, SELF_MANAGED, OUTSIDE, BARE = (
    Path(__file__).parent / "values" / f"{name}.yaml"
    for name in ("default", "production", "self-managed", "outside", "bare")
)
SERVER = "porch-server"

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return Helm without a cluster."""
    return Helm(built(HELM), tmp_path_factory.mktemp("helm"))


def kinds(objects: Iterable[Object]) -> set[str]:
    return {one["kind"] for one in objects}


def container(objects: Iterable[Object], name: str = SERVER) -> Object:
    found: list[Object] = dict(pods(objects))[name]["spec"]["containers"]
    assert len(found) == 1
    return found[0]


def environment(objects: Iterable[Object], name: str = SERVER) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(objects, name)["env"]}


@each_case
def test_every_object_has_a_place_a_name_of_its_own_and_labels(helm: Helm, case: Path) -> None:
    objects = helm.render(case)
    named_once = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects}

    assert objects
    assert len(named_once) == len(objects)
    for one in objects:
        assert ("namespace" in one["metadata"]) is (one["kind"] not in CLUSTER_SCOPED)
        if not one["metadata"]["name"].endswith("-extra"):
            assert one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "porch"


@each_case
def test_every_pod_keeps_to_the_restricted_standard(helm: Helm, case: Path) -> None:
    for name, template in pods(helm.render(case)):
        security = template["spec"]["securityContext"]
        (only,) = template["spec"]["containers"]
        user = None if case.stem == "closed" else 10001
        assert (security["runAsNonRoot"], security.get("runAsUser")) == (True, user), name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert only["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "hostNetwork" not in template["spec"]
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        assert {mount["name"] for mount in only["volumeMounts"]} == volumes


@each_case
def test_what_selects_pods_finds_some(helm: Helm, case: Path) -> None:
    objects = helm.render(case)
    labels = [template["metadata"]["labels"] for _, template in pods(objects)]
    services = [one["metadata"]["labels"] for one in of_kind(objects, "Service")]

    for one in objects:
        spec = one.get("spec") or {}
        if one["kind"] in {"PodDisruptionBudget", "Deployment"}:
            assert any(spec["selector"]["matchLabels"].items() <= each.items() for each in labels), one["metadata"]
        if one["kind"] == "NetworkPolicy":
            assert any(spec["podSelector"]["matchLabels"].items() <= each.items() for each in labels), one["metadata"]
        if one["kind"] == "Service" and "selector" in spec:
            assert any(spec["selector"].items() <= each.items() for each in labels) or case == OUTSIDE
        if one["kind"] == "ServiceMonitor":
            assert any(spec["selector"]["matchLabels"].items() <= each.items() for each in services)


@each_case
def test_every_port_that_is_named_is_a_containers(helm: Helm, case: Path) -> None:
    objects = helm.render(case)
    ports = {
        one["metadata"]["name"]: {port["name"] for port in container(objects, one["metadata"]["name"])["ports"]}
        for one in of_kind(objects, "Deployment")
    }

    for one in (*of_kind(objects, "Service"), *of_kind(objects, "NetworkPolicy")):
        if (name := one["metadata"]["name"]) not in ports:
            continue
        rules = one["spec"].get("ports") or [port for rule in one["spec"]["ingress"] for port in rule["ports"]]
        assert {rule.get("targetPort", rule["port"]) for rule in rules} <= ports[name]


@each_case
def test_every_account_and_role_that_is_named_is_there(helm: Helm, case: Path) -> None:
    objects = helm.render(case)
    accounts = {one["metadata"]["name"] for one in of_kind(objects, "ServiceAccount")}
    roles = {(one["kind"], one["metadata"]["name"]) for one in objects} | CLUSTERS_OWN

    for name, template in pods(objects):
        account = template["spec"].get("serviceAccountName")
        assert account in accounts or (name, account) in {("porch-migrations", None), (SERVER, "mine")}
    for one in (*of_kind(objects, "RoleBinding"), *of_kind(objects, "ClusterRoleBinding")):
        assert (one["roleRef"]["kind"], one["roleRef"]["name"]) in roles
        assert {(subject["name"], subject["namespace"]) for subject in one["subjects"]} <= {
            (account, NAMESPACE) for account in accounts
        }


@each_case
def test_the_programs_know_every_command_and_variable(helm: Helm, case: Path) -> None:
    fields = server_settings.Settings.model_fields.items()
    known = {str(field.validation_alias or server_settings.PREFIX + name.upper()) for name, field in fields} | {
        controllers_settings.PREFIX + name.upper() for name in controllers_settings.Settings.model_fields
    }

    for _, template in pods(helm.render(case)):
        (only,) = template["spec"]["containers"]
        assert {one["name"] for one in only.get("env", ())} <= known
        assert only.get("command") == ["python", "/tests/answers.py"] or only["args"][0] in program._COMMANDS


def test_without_a_database_there_is_one_server_with_a_volume_that_stays(helm: Helm) -> None:
    objects = helm.render(DEFAULT)
    server = named(objects, "Deployment", SERVER)["spec"]
    claim = named(objects, "PersistentVolumeClaim", f"{SERVER}-data")

    assert (server["replicas"], server["strategy"]) == (1, {"type": "Recreate"})
    assert "PORCH_DATABASE_URL" not in environment(objects)
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert {"name": "data", "persistentVolumeClaim": {"claimName": f"{SERVER}-data"}} in server["template"]["spec"][
        "volumes"
    ]
    assert not [one for one in of_kind(objects, "PodDisruptionBudget") if one["metadata"]["name"] == SERVER]
    assert not of_kind(objects, "Job")


def test_with_postgresql_there_are_replicas_that_replace_each_other_and_one_job_before_them(helm: Helm) -> None:
    objects = helm.render(DEFAULT, database__existingSecret__name="db")
    server = named(objects, "Deployment", SERVER)["spec"]
    job = named(objects, "Job", "porch-migrations")
    url = {"secretKeyRef": {"name": "db", "key": "url"}}

    assert (server["replicas"], server["strategy"]["rollingUpdate"]) == (2, {"maxUnavailable": 0, "maxSurge": 1})
    assert named(objects, "PodDisruptionBudget", SERVER)["spec"]["minAvailable"] == 1
    assert environment(objects)["PORCH_DATABASE_URL"] == url
    assert environment(objects, "porch-migrations") == {"PORCH_DATABASE_URL": url}
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert not of_kind(objects, "PersistentVolumeClaim")


def test_what_an_autoscaler_counts_the_deployment_leaves_alone(helm: Helm) -> None:
    objects = helm.render(PRODUCTION)
    scaler = named(objects, "HorizontalPodAutoscaler", SERVER)["spec"]

    assert "replicas" not in named(objects, "Deployment", SERVER)["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 6)
    assert scaler["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    assert scaler["scaleTargetRef"]["name"] == SERVER


def test_a_server_that_may_be_the_only_one_holds_up_no_drain_of_its_node(helm: Helm) -> None:
    many, one = helm.render(PRODUCTION), helm.render(PRODUCTION, server__autoscaling__minReplicas=1)
    budget = named(many, "PodDisruptionBudget", SERVER)["spec"]

    assert (budget["minAvailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert SERVER not in {each["metadata"]["name"] for each in of_kind(one, "PodDisruptionBudget")}


def test_settings_reach_the_processes_and_large_numbers_stay_whole(helm: Helm) -> None:
    objects = helm.render(PRODUCTION)
    server = environment(objects)

    assert server["PORCH_AGGREGATED"] == "true"
    assert server["PORCH_SYNC_INTERVAL"] == "30"
    assert server["PORCH_UPSTREAM_CLONES_SIZE"] == "4294967296"
    assert server["PORCH_LOCAL_REPOSITORIES"] == "false"
    assert server["PORCH_DENIED_NETWORKS"] == '["10.0.0.0/8"]'
    assert environment(objects, "porch-controllers")["PORCH_CONTROLLERS_RUN"] == "variants"
    assert environment(objects, "porch-controllers")["PORCH_CONTROLLERS_SET_MAX_DELETIONS"] == "20%"
    assert environment(objects, "porch-approval")["PORCH_CONTROLLERS_RUN"] == "approval"
    assert environment(objects, "porch-approval")["PORCH_CONTROLLERS_LEASE_NAMESPACE"] == NAMESPACE


def test_the_certificate_of_helm_is_for_the_service_and_trusted_by_the_apiservice(helm: Helm) -> None:
    objects = helm.render(DEFAULT)
    (registered,) = of_kind(objects, "APIService")
    secret = named(objects, "Secret", "porch-tls")["data"]
    service = registered["spec"]["service"]
    leaf = x509.load_pem_x509_certificate(base64.b64decode(secret["tls.crt"]))
    authority = x509.load_pem_x509_certificate(base64.b64decode(registered["spec"]["caBundle"]))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    in_four_years = datetime.now(UTC) + timedelta(days=4 * 365)

    verifier = PolicyBuilder().store(Store([authority])).time(in_four_years)
    for name in (f"{SERVER}.{NAMESPACE}.svc", f"{SERVER}.{NAMESPACE}.svc.cluster.local"):
        assert name in names
        verifier.build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert ExtendedKeyUsageOID.SERVER_AUTH in usage
    assert (service["name"], service["namespace"], service["port"]) == (SERVER, NAMESPACE, 443)
    assert dict(pods(objects))[SERVER]["spec"]["volumes"][-1]["secret"]["secretName"] == "porch-tls"
    assert "porch-ca" not in json.dumps(dict(pods(objects)))


def test_cert_manager_signs_by_an_authority_of_the_release_or_by_an_issuer_of_yours(helm: Helm) -> None:
    objects = helm.render(PRODUCTION)
    (registered,) = of_kind(objects, "APIService")
    leaf = named(objects, "Certificate", "porch-tls")["spec"]
    given = helm.render(PRODUCTION, certificates__certManager__issuerRef={"name": "mine", "kind": "ClusterIssuer"})

    assert registered["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/porch-tls"}
    assert "caBundle" not in registered["spec"]
    assert leaf["secretName"] == "porch-tls"
    assert f"{SERVER}.{NAMESPACE}.svc" in leaf["dnsNames"]
    assert named(objects, "Issuer", leaf["issuerRef"]["name"])["spec"]["ca"] == {"secretName": "porch-ca"}
    assert named(objects, "Certificate", "porch-ca")["spec"]["isCA"] is True
    assert not of_kind(objects, "Secret")
    assert not of_kind(given, "Issuer")
    assert named(given, "Certificate", "porch-tls")["spec"]["issuerRef"]["name"] == "mine"


def test_long_names_of_release_and_namespace_stay_what_kubernetes_and_cert_manager_take(helm: Helm) -> None:
    """Services and labels have at most 63 characters, common names 64; only names of roles may have more."""
    release, elsewhere = "packages-of-the-platform-engineering-team-porch-live1", replace(helm, namespace="n" * 63)
    objects = documents(
        elsewhere.ok(
            "template", release, str(CHART), *OFFLINE, "--values", str(PRODUCTION), *settings({"fullnameOverride": ""})
        )
    )

    for one in objects:
        limit = 253 if one["kind"] in {"ClusterRole", "ClusterRoleBinding", "RoleBinding"} else 63
        if not one["metadata"]["name"].endswith("-extra"):
            assert len(one["metadata"]["name"]) <= limit, one["metadata"]
        assert all(len(value) <= 63 for value in one["metadata"].get("labels", {}).values())
    certificates = of_kind(objects, "Certificate")
    assert certificates
    for one in certificates:
        assert len(one["spec"]["commonName"]) <= 64


def test_a_release_whose_name_is_no_services_name_gets_another_one_or_is_refused(helm: Helm) -> None:
    objects = documents(helm.ok("template", "a.porch", str(CHART), *OFFLINE))
    refused = helm("template", "1st", str(CHART), *OFFLINE)

    assert named(objects, "Service", "a-porch-server")
    assert refused.returncode == 1
    assert (
        "1st-porch cannot be the name of a Service, which begins with a letter: set fullnameOverride" in refused.stderr
    )
    assert helm.ok("template", "1st", str(CHART), *OFFLINE, *settings({"fullnameOverride": "porch"}))


def test_servers_that_manage_certificates_themselves_may_write_one_secret_and_one_apiservice(helm: Helm) -> None:
    objects = helm.render(SELF_MANAGED)
    name, settings = "porch-certificates", environment(objects)
    (registered,) = of_kind(objects, "APIService")

    assert settings["PORCH_TLS_SECRET"] == f"{NAMESPACE}/{name}"
    assert f"{SERVER}.{NAMESPACE}.svc" in json.loads(settings["PORCH_TLS_NAMES"])
    assert "PORCH_TLS_CERT_FILE" not in settings
    assert "caBundle" not in registered["spec"]
    assert "data" not in named(objects, "Secret", name), "an upgrade leaves what the servers have written"
    assert [one["name"] for one in dict(pods(objects))[SERVER]["spec"]["volumes"]] == ["data", "temporary"]
    assert named(objects, "Role", name)["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get", "update"]}
    ]
    assert named(objects, "ClusterRole", name)["rules"] == [
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": ["v1alpha1.porch.kpt.dev"],
            "verbs": ["get", "patch"],
        }
    ]
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert [one["name"] for one in named(objects, kind, name)["subjects"]] == [SERVER]


def test_a_server_outside_the_cluster_is_reached_by_name(helm: Helm) -> None:
    objects = helm.render(OUTSIDE)
    service = named(objects, "Service", SERVER)["spec"]
    (registered,) = of_kind(objects, "APIService")

    assert (service["type"], service["externalName"]) == ("ExternalName", "porch.example.com")
    assert registered["spec"]["service"]["port"] == 8443
    assert base64.b64decode(registered["spec"]["caBundle"]).startswith(b"-----BEGIN CERTIFICATE-----")
    assert [one["metadata"]["name"] for one in of_kind(objects, "Deployment")] == ["porch-controllers"]


def test_what_is_turned_off_is_not_there(helm: Helm) -> None:
    installed = [one for one in helm.render(BARE) if "helm.sh/hook" not in one["metadata"].get("annotations", {})]

    assert kinds(installed) == {"Deployment", "Service"}


def test_secrets_are_readable_everywhere_or_in_the_namespaces_that_are_named(helm: Helm) -> None:
    def bound(objects: list[Object]) -> list[tuple[str, str | None]]:
        bindings = (one for one in objects if one.get("roleRef", {}).get("name") == f"{SERVER}-credentials")
        return sorted((one["kind"], one["metadata"].get("namespace")) for one in bindings)

    assert bound(helm.render(DEFAULT)) == [("ClusterRoleBinding", None)]
    assert bound(helm.render(PRODUCTION)) == [("RoleBinding", "core"), ("RoleBinding", "edge")]
    assert named(helm.render(DEFAULT), "ClusterRole", f"{SERVER}-credentials")["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    ]


@pytest.mark.parametrize("keep", [True, False])
def test_definitions_are_those_of_the_files_and_stay_when_they_are_kept(helm: Helm, keep: bool) -> None:
    rendered = of_kind(helm.render(DEFAULT, crds__keep=keep), "CustomResourceDefinition")
    files = [yaml.safe_load(path.read_text()) for path in sorted((CHART / "files" / "crds").glob("*.yaml"))]

    assert [one["spec"] for one in rendered] == [one["spec"] for one in files]
    for one in rendered:
        assert one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert (one["metadata"].get("annotations") == {"helm.sh/resource-policy": "keep"}) is keep


def test_rules_and_dashboards_are_those_of_the_files(helm: Helm) -> None:
    objects = helm.render(PRODUCTION)
    (rule,) = of_kind(objects, "PrometheusRule")
    boards = {
        name: json.loads(text)
        for one in of_kind(objects, "ConfigMap")
        if "grafana_dashboard" in one["metadata"].get("labels", {})
        for name, text in one["data"].items()
    }

    assert rule["spec"] == yaml.safe_load((CHART / "alerts" / "porch.yaml").read_text())
    assert boards == {path.name: json.loads(path.read_text()) for path in (CHART / "dashboards").glob("*.json")}
    assert {
        one["spec"]["endpoints"][0]["relabelings"][0]["replacement"] for one in of_kind(objects, "ServiceMonitor")
    } == {
        "porch-server",
        "porch-controllers",
        "porch-approval",
    }


def test_a_registry_a_tag_and_a_digest_name_the_image(helm: Helm) -> None:
    digest = f"sha256:{'a' * 64}"

    assert container(helm.render(DEFAULT))["image"] == "porch:0.1.0"
    assert container(helm.render(PRODUCTION))["image"] == "registry.example.com/platform/porch:0.1.0-7"
    assert container(helm.render(PRODUCTION, image__digest=digest))["image"].endswith(f"/platform/porch@{digest}")


def test_helm_4_renders_the_same(helm: Helm, tmp_path: Path) -> None:
    newer = Helm(built(HELM_4), tmp_path)

    for case in (PRODUCTION, OUTSIDE, BARE):
        assert newer.render(case) == helm.render(case)


@each_case
def test_lint_finds_nothing(helm: Helm, case: Path) -> None:
    assert "0 chart(s) failed" in helm.ok("lint", str(CHART), "--strict", *OFFLINE, "--values", str(case))

"""What the chart promises of Pods and of their network, in each case; and that every object is valid without a cluster to ask.

Source: ``kube-api.md`` 4.
"""

from pathlib import Path

import pytest
import yaml
from chart_rendering import CASES, HELM, Helm, built, of_kind, pods

from krm.functions.catalog.kubeconform import check
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, ResourceList
from krm.package.yaml_reader import read_documents

VALUES = Path(__file__).parent / "values"
CLOSED, DEFAULT, PRODUCTION = (VALUES / f"{name}.yaml" for name in ("closed", "default", "production"))
SERVER = "porch-server"
WITHOUT_SCHEMA = ("cert-manager.io/", "monitoring.coreos.com/")
"""Groups of other projects, of which ours carries no schemas."""

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return Helm without a cluster."""
    return Helm(built(HELM), tmp_path_factory.mktemp("helm"))


@each_case
def test_every_object_is_valid_by_the_schemas_of_kubernetes(helm: Helm, case: Path) -> None:
    """As kubeconform checks them, with the function of that name: no field that is not known, no value of another type."""
    items = [
        Resource.of_document(document, "", path=f"{number}.yaml", index=0)
        for number, one in enumerate(helm.render(case))
        if not one["apiVersion"].startswith(WITHOUT_SCHEMA)
        for document in read_documents(yaml.safe_dump(one))
    ]
    strict = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "strict"}, "data": {"strict": "true"}}

    def found(resources: list[Resource]) -> list[str]:
        return [one["message"] for one in check(ResourceList(resources, FunctionConfig(strict, typed=strict))).results]

    assert found(items) == []
    (misspelt,) = read_documents("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {port: [{port: 1}]}\n")
    assert found([*items, Resource.of_document(misspelt, "", path="s.yaml", index=0)]) != []


@each_case
def test_probes_and_the_end_of_a_server_are_as_specified(helm: Helm, case: Path) -> None:
    """Source: ``kube-api.md`` 4, Pod."""
    objects = helm.render(case)
    found = dict(pods(objects)).get(SERVER)
    if found is None:
        assert case.stem == "outside"
        return
    (server,) = found["spec"]["containers"]
    delay = {one["name"]: one.get("value") for one in server["env"]}["PORCH_SHUTDOWN_DELAY"]
    probes = {name: server[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
    grace = found["spec"]["terminationGracePeriodSeconds"]

    assert {probe["httpGet"]["scheme"] for probe in probes.values()} == {"HTTPS"}
    assert probes["liveness"] == {
        "httpGet": {"path": "/livez", "port": "https", "scheme": "HTTPS"},
        "initialDelaySeconds": 30,
        "periodSeconds": 30,
        "timeoutSeconds": 10,
    }
    assert (probes["readiness"]["httpGet"]["path"], probes["readiness"]["periodSeconds"]) == ("/readyz", 5)
    assert probes["readiness"]["timeoutSeconds"] == 3
    assert (probes["startup"]["failureThreshold"], probes["startup"]["periodSeconds"]) == (60, 2)
    assert server["resources"]["requests"] == {"cpu": "250m", "memory": "512Mi"}
    assert (delay, grace) == (("30", 120) if case == CLOSED else ("10", 90))


@each_case
def test_an_upgrade_of_replicas_never_goes_below_their_number(helm: Helm, case: Path) -> None:
    for one in of_kind(helm.render(case), "Deployment"):
        if one["metadata"]["name"] == SERVER and one["spec"]["strategy"]["type"] == "RollingUpdate":
            assert one["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
        spread = one["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert {each["topologyKey"] for each in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
        assert all(each["labelSelector"]["matchLabels"] == one["spec"]["selector"]["matchLabels"] for each in spread)


def test_where_the_cluster_chooses_users_pods_name_none(helm: Helm) -> None:
    for name, template in pods(helm.render(CLOSED)):
        security = template["spec"]["securityContext"]
        assert security["runAsNonRoot"] is True, name
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & security.keys()


def test_a_closed_network_lets_through_what_is_needed_and_nothing_else(helm: Helm) -> None:
    """Source: ``kube-api.md`` 4, NetworkPolicy."""
    objects = helm.render(CLOSED)
    policies = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, "NetworkPolicy")}
    cluster = {"ipBlock": {"cidr": "fd00:10::/64"}}
    monitoring = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
        "podSelector": {"matchLabels": {"app": "prometheus"}},
    }
    ways_out = {
        name: {
            (port["port"], tuple(peer["ipBlock"]["cidr"] for peer in rule.get("to", ())))
            for rule in spec["egress"]
            for port in rule["ports"]
        }
        for name, spec in policies.items()
    }
    names, api, git, database = (
        {(53, ()), (5353, ())},
        {(6443, ("fd00:10::/64",))},
        {(22, ("fd00:20::7/128",))},
        {(5433, ("fd00:30::/64",))},
    )

    assert ways_out == {
        SERVER: names | api | git | database,
        "porch-controllers": names | api,
        "porch-approval": names | api,
        "porch-migrations": names | database,
    }
    ways_in = {
        name: [(port["port"], rule["from"]) for rule in spec.get("ingress", ()) for port in rule["ports"]]
        for name, spec in policies.items()
    }
    assert ways_in == {
        SERVER: [("https", [cluster]), ("metrics", [monitoring])],
        "porch-controllers": [("metrics", [monitoring]), ("metrics", [cluster])],
        "porch-approval": [("metrics", [monitoring]), ("metrics", [cluster])],
        "porch-migrations": [],
    }
    assert {tuple(spec["policyTypes"]) for spec in policies.values()} == {("Ingress", "Egress")}


def test_a_namespace_of_the_release_outlives_it(helm: Helm) -> None:
    (made,) = of_kind(helm.render(PRODUCTION), "Namespace")

    assert made["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert not of_kind(helm.render(DEFAULT), "Namespace")

"""Objects of the cluster copied into packages: what is chosen, what the draft says of it, and who follows a change.

Source: ``variants.md`` 2.9.3, 5.5 (those that need a cluster), G-F10, G-F12, G-F16; seed 000, "Configuration injection
details". The cluster has ConfigMaps us-east1-endpoints to us-east3-endpoints and Teams dev-team-alpha, dev-team-beta,
prod-team; each package has what its case says.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from custom_kinds import DEFINITIONS, definition
from drafts import accepted, refused
from eventually import eventually
from git_server import GitServer
from golden import golden
from manifests import namespace_object
from porch_process import PorchProcess
from variant_fixture import Rig, variant_rig
from variant_place import (
    SET_NAMESPACE,
    Json,
    blueprint,
    condition_of,
    gates_of,
    kptfile,
    upstream,
    variant,
    with_blueprint,
)

FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
CLONED = ["POST PR bar.packagevariant-1 False", "PUT PR bar.packagevariant-1 True"]
MUTATED = [CLONED[0], "PUT PRR bar.packagevariant-1", CLONED[1]]
IN_PLACE = ["PUT PR bar.packagevariant-1 False", *MUTATED[1:]]
NEXT = [line.replace("packagevariant-1", "packagevariant-2") for line in MUTATED]
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
HR = "/apis/hr.example.com/v1alpha1"
NOBODY = "no resource matched any injection selector for this injection point"


@pytest.fixture(scope="module")
def teams(porch_server: PorchProcess) -> None:
    """The kinds Team and Place of ``hr.example.com`` are served."""
    client = porch_server.client()
    for kind in ("Team", "WorkloadCluster", "ServiceEndpoints"):
        version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": LOOSE}}
        body = definition(version, kind=kind, plural=f"{kind.lower()}s".replace("ss", "s"), group="hr.example.com")
        assert client.request("POST", DEFINITIONS, body).code == 201

        def served(kind: str = kind) -> None:
            assert kind in str(client.request("GET", HR).object)

        eventually(served)
    client.close()


LOOSE: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
async def rig(porch_server: PorchProcess, git_http: GitServer, namespace: str, teams: None) -> AsyncIterator[Rig]:
    """A place with a controller, and the objects of the cluster."""
    async with variant_rig(porch_server, git_http, namespace) as made:
        for region in ("us-east1", "us-east2", "us-east3"):
            config_map(made, f"{region}-endpoints", region)
        for name, code in (("dev-team-alpha", "ab"), ("dev-team-beta", "cd"), ("prod-team", "ef")):
            made.create(HR, "teams", team(name, code))
        yield made


def config_map(rig: Rig, name: str, region: str, namespace: str = "") -> None:
    rig.create("/api/v1", "configmaps", {"metadata": {"name": name}, "data": endpoints(region)}, namespace)


def endpoints(region: str) -> dict[str, str]:
    return {"db": f"db.{region}.example.com"}


def team(name: str, code: str | None) -> Json:
    spec = {} if code is None else {"spec": {"chargeCode": code}}
    return {"apiVersion": "hr.example.com/v1alpha1", "kind": "Team", "metadata": {"name": name}, **spec}


def point(kind: str, name: str, need: str, api_version: str = "v1", **content: Any) -> str:
    """Write a resource of a package that is an injection point."""
    meta = {"name": name, "annotations": {"kpt.dev/config-injection": need}}
    return yaml.safe_dump({"apiVersion": api_version, "kind": kind, "metadata": meta, **content}, sort_keys=False)


ENDPOINTS = point("ConfigMap", "regional-endpoints", "required", data={"db": "example"})
TEAM = point("Team", "team", "required", "hr.example.com/v1alpha1", spec={"chargeCode": "example"})
OPTIONAL = point("ConfigMap", "my-cm", "optional", data={"db": "example"})


async def injected(rig: Rig, *injectors: Json, deployment: bool = True, **files: str) -> list[str]:
    """Clone a blueprint with the files under a variant with the selectors; return the writes."""
    with_blueprint(rig, blueprint(**files), deployment=deployment)
    rig.add_variant(variant(injectors=list(injectors)) if injectors else variant())
    return await rig.settle()


def documents(rig: Rig, path: str, name: str = FIRST) -> list[Json]:
    return list(yaml.safe_load_all(rig.files(name)[path]))


def told(rig: Rig, point_type: str, name: str = FIRST) -> tuple[str, str, str]:
    found = condition_of(rig.revision(name), f"config.injection.{point_type}")
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def injection_gates(rig: Rig, name: str = FIRST) -> list[str]:
    return [gate for gate in gates_of(rig.revision(name)) if gate.startswith("config.injection.")]


@golden("G-I08")
async def test_a_config_map_is_copied_into_a_required_point(rig: Rig) -> None:
    assert await injected(rig, {"name": "us-east1-endpoints"}, endpoints_yaml=ENDPOINTS) == MUTATED

    (found,) = documents(rig, "endpoints.yaml")
    assert found["data"] == endpoints("us-east1")
    assert found["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == "us-east1-endpoints"
    assert found["metadata"]["name"] == "regional-endpoints"
    assert injection_gates(rig) == ["config.injection.ConfigMap.regional-endpoints"]
    assert told(rig, "ConfigMap.regional-endpoints") == (
        "True",
        "ConfigInjected",
        'injected resource "us-east1-endpoints" from cluster',
    )
    assert yaml.safe_load(rig.pushed("bar", "packagevariant-1")["endpoints.yaml"]) == found
    await rig.quiet()


@golden("G-I09")
async def test_the_spec_of_a_custom_resource_is_copied(rig: Rig) -> None:
    selector = {"name": "dev-team-beta", "group": "hr.example.com", "kind": "Team"}

    assert await injected(rig, selector, team_yaml=TEAM) == MUTATED

    assert documents(rig, "team.yaml")[0]["spec"] == {"chargeCode": "cd"}
    assert injection_gates(rig) == ["config.injection.Team.team"]
    assert told(rig, "Team.team")[0] == "True"
    await rig.quiet()


@golden("G-I10")
async def test_two_points_of_one_file_take_what_each_selector_gives(rig: Rig) -> None:
    selectors = [{"name": "us-east2-endpoints"}, {"name": "dev-team-beta", "group": "hr.example.com", "kind": "Team"}]

    await injected(rig, *selectors, both_yaml=f"{OPTIONAL}---\n{TEAM}")

    first, second = documents(rig, "both.yaml")
    assert (first["data"], second["spec"]) == (endpoints("us-east2"), {"chargeCode": "cd"})
    assert injection_gates(rig) == ["config.injection.Team.team"]
    types = [one["type"] for one in yaml.safe_load(rig.files(FIRST)["Kptfile"])["status"]["conditions"]]
    ours = [one for one in types if one.startswith("config.injection.")]
    assert ours == ["config.injection.ConfigMap.my-cm", "config.injection.Team.team"]
    await rig.quiet()


@golden("G-I11")
async def test_an_optional_point_that_nothing_matches_has_a_condition_and_no_gate(rig: Rig) -> None:
    await injected(rig, {"name": "nobody"}, cm_yaml=OPTIONAL)

    assert told(rig, "ConfigMap.my-cm") == ("False", "NoResourceSelected", NOBODY)
    assert injection_gates(rig) == []
    assert documents(rig, "cm.yaml")[0]["data"] == {"db": "example"}
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-I12", "G-F16", "G-G06")
@pytest.mark.parametrize("deployment", [True, False], ids=["deployment", "blueprint"])
async def test_a_required_point_that_nothing_matches_keeps_the_draft_from_deployment(
    rig: Rig, deployment: bool
) -> None:
    await injected(rig, {"name": "nobody"}, deployment=deployment, cm_yaml=ENDPOINTS)

    gate = "config.injection.ConfigMap.regional-endpoints"
    assert told(rig, "ConfigMap.regional-endpoints") == ("False", "NoResourceSelected", NOBODY)
    assert injection_gates(rig) == [gate]
    assert rig.condition("Ready") == READY
    assert condition_of(rig.revision(FIRST), "PVOperationsComplete")["status"] == "True"
    await rig.quiet()
    answer = rig.porch.propose(FIRST)
    if deployment:
        refused(answer, 422, "Invalid", f"readiness gate '{gate}' is not met")
    else:
        accepted(answer)


@golden("G-I13")
async def test_gates_and_conditions_of_the_package_stay_beside_ours(rig: Rig) -> None:
    own = (
        "  readinessGates:\n  - conditionType: test\n  - conditionType: test3\nstatus:\n  conditions:\n"
        "  - {type: test, status: 'False'}\n  - {type: test2, status: 'True'}\n  - {type: test3, status: 'True'}\n"
    )
    missing = point("ConfigMap", "another", "optional", data={})
    with_blueprint(
        rig, {**blueprint(team_yaml=TEAM, cm_yaml=OPTIONAL, no_yaml=missing), "Kptfile": kptfile("foo", own)}
    )
    selectors = [{"kind": "Team", "name": "prod-team"}]
    rig.add_variant(variant(injectors=selectors))

    await rig.settle()

    written = yaml.safe_load(rig.files(FIRST)["Kptfile"])
    gates = [gate["conditionType"] for gate in written["info"]["readinessGates"]]
    assert set(gates) == {"config.injection.Team.team", "test", "test3", "PVOperationsComplete"}
    statuses = {one["type"]: one["status"] for one in written["status"]["conditions"]}
    wanted = {
        "config.injection.ConfigMap.another": "False",
        "config.injection.ConfigMap.my-cm": "False",
        "config.injection.Team.team": "True",
        "test": "False",
        "test2": "True",
        "test3": "True",
    }
    assert {key: statuses[key] for key in wanted} == wanted
    await rig.quiet()


@golden("G-I15")
async def test_a_variant_without_selectors_says_so(rig: Rig) -> None:
    await injected(rig, cm_yaml=ENDPOINTS)

    assert told(rig, "ConfigMap.regional-endpoints") == ("False", "NoResourceSelected", "no injectors defined")
    assert injection_gates(rig) == ["config.injection.ConfigMap.regional-endpoints"]
    await rig.quiet()


@golden("G-I16")
async def test_a_kind_that_is_not_served_hinders_no_other_point(rig: Rig) -> None:
    unknown = point("Gadget", "gadget", "optional", "acme.example.com/v1", spec={})

    await injected(rig, {"name": "us-east1-endpoints"}, gadget_yaml=unknown, cm_yaml=ENDPOINTS)

    status, reason, message = told(rig, "Gadget.gadget")
    assert (status, reason) == ("False", "NoResourceSelected")
    assert "Gadget" in message
    assert told(rig, "ConfigMap.regional-endpoints")[0] == "True"
    assert rig.condition("Ready") == READY
    await rig.quiet()


@golden("G-I17")
async def test_a_kind_without_objects_says_so(rig: Rig) -> None:
    for name in ("dev-team-alpha", "dev-team-beta", "prod-team"):
        accepted(rig.delete(HR, "teams", name))

    await injected(rig, {"name": "prod-team"}, team_yaml=TEAM)

    assert told(rig, "Team.team")[2] == "no in-cluster resources of type hr.example.com/v1alpha1.Team"
    await rig.quiet()


@golden("G-I18")
async def test_an_object_without_the_field_ends_the_search(rig: Rig) -> None:
    rig.create(HR, "teams", team("empty", None))

    await injected(rig, {"name": "empty"}, {"name": "prod-team"}, team_yaml=TEAM)

    assert told(rig, "Team.team")[:2] == ("False", "NoResourceSelected")
    assert told(rig, "Team.team")[2] == 'field "spec" not found in resource "empty"'
    assert documents(rig, "team.yaml")[0]["spec"] == {"chargeCode": "example"}
    await rig.quiet()


@golden("G-I19", "G-I20")
async def test_selectors_tell_kinds_apart_or_not(rig: Rig) -> None:
    """ConfigMaps and Teams foo and bar; first a selector for each kind, then one by name for both."""
    for name in ("foo", "bar"):
        config_map(rig, name, name)
        rig.create(HR, "teams", team(name, name))
    selectors = [{"kind": "ConfigMap", "version": "v1", "group": "", "name": "foo"}, {"kind": "Team", "name": "bar"}]

    await injected(rig, *selectors, cm_yaml=ENDPOINTS, team_yaml=TEAM)
    assert documents(rig, "cm.yaml")[0]["data"] == endpoints("foo")
    assert documents(rig, "team.yaml")[0]["spec"] == {"chargeCode": "bar"}
    await rig.quiet()

    rig.change_variant(injectors=[{"name": "foo"}])
    assert await rig.settle() == IN_PLACE
    assert documents(rig, "cm.yaml")[0]["data"] == endpoints("foo")
    assert documents(rig, "team.yaml")[0]["spec"] == {"chargeCode": "foo"}
    await rig.quiet()


@golden("G-I21")
async def test_an_object_of_another_namespace_is_never_used(rig: Rig) -> None:
    other = f"{rig.namespace}-other"
    rig.porch.request("POST", "/api/v1/namespaces", namespace_object(other))
    config_map(rig, "elsewhere", "far", other)

    await injected(rig, {"name": "elsewhere"}, cm_yaml=ENDPOINTS)

    assert told(rig, "ConfigMap.regional-endpoints")[:2] == ("False", "NoResourceSelected")
    assert "far" not in rig.files(FIRST)["cm.yaml"]
    await rig.quiet()


@golden("G-I22")
async def test_a_whole_spec_is_replaced_and_other_annotations_stay(rig: Rig) -> None:
    """Figure 4 of seed 000."""
    real = {"db": "my-db-useast1.bigco.com", "logging": "logging.prod.cluster.local", "authz": "auth.bigco.com"}
    head = {"apiVersion": "hr.example.com/v1alpha1", "kind": "ServiceEndpoints"}
    rig.create(HR, "serviceendpoints", {**head, "metadata": {"name": "useast1-endpoints"}, "spec": real})
    text = point("ServiceEndpoints", "service-endpoints", "required", head["apiVersion"], spec={"db": "x", "old": "y"})
    text = text.replace("annotations:\n", "annotations:\n    config.kubernetes.io/local-config: 'true'\n")

    await injected(rig, {"name": "useast1-endpoints"}, endpoints_yaml=text)

    (found,) = documents(rig, "endpoints.yaml")
    assert found["spec"] == real
    annotations = {key: text for key, text in found["metadata"]["annotations"].items() if "internal" not in key}
    assert annotations == {
        "config.kubernetes.io/local-config": "true",
        "kpt.dev/config-injection": "required",
        "kpt.dev/injected-resource-name": "useast1-endpoints",
    }
    await rig.quiet()


@golden("G-I23")
async def test_injection_and_functions_are_applied_together(rig: Rig) -> None:
    """A typical manifest of the field catalogue: WorkloadCluster and set-annotations."""
    head = {"apiVersion": "hr.example.com/v1alpha1", "kind": "WorkloadCluster"}
    rig.create(HR, "workloadclusters", {**head, "metadata": {"name": "example"}, "spec": {"clusterName": "example"}})
    text = point("WorkloadCluster", "cluster", "required", head["apiVersion"], spec={"clusterName": "x"})
    with_blueprint(rig, blueprint(cluster_yaml=text))
    annotate = {"image": "gcr.io/kpt-fn/set-annotations:v0.1.4", "configMap": {"nephio.org/cluster-name": "example"}}
    selectors = [{"kind": "WorkloadCluster", "name": "example"}]
    rig.add_variant(variant(injectors=selectors, pipeline={"mutators": [annotate]}))

    assert await rig.settle() == MUTATED

    assert documents(rig, "cluster.yaml")[0]["spec"] == {"clusterName": "example"}
    assert documents(rig, "settings.yaml")[0]["metadata"]["annotations"]["nephio.org/cluster-name"] == "example"
    await rig.quiet()


@golden("G-I24")
async def test_a_gate_that_a_user_added_for_an_optional_point_stays(rig: Rig) -> None:
    await injected(rig, {"name": "us-east1-endpoints"}, cm_yaml=OPTIONAL)
    gate = {"conditionType": "config.injection.ConfigMap.my-cm"}
    rig.edit(FIRST, lambda body: body["spec"]["readinessGates"].append(gate))

    rig.change_variant(injectors=[{"name": "us-east2-endpoints"}])
    assert await rig.settle() == IN_PLACE

    assert injection_gates(rig) == [gate["conditionType"]]
    assert documents(rig, "cm.yaml")[0]["data"] == endpoints("us-east2")
    await rig.quiet()


@golden("G-F10", "C-32")
@pytest.mark.parametrize("lifecycle", ["Draft", "Published"])
async def test_a_changed_object_is_injected_again(rig: Rig, lifecycle: str) -> None:
    await injected(rig, {"name": "us-east1-endpoints"}, cm_yaml=ENDPOINTS)
    if lifecycle == "Published":
        rig.approve(FIRST)
        assert await rig.settle() == []
    rig.patch("/api/v1", "configmaps", "us-east1-endpoints", {"data": {"db": "moved.example.com"}})

    assert await rig.settle() == (IN_PLACE if lifecycle == "Draft" else NEXT)

    name = FIRST if lifecycle == "Draft" else SECOND
    assert documents(rig, "cm.yaml", name)[0]["data"] == {"db": "moved.example.com"}
    assert rig.targets() == [name]
    await rig.quiet()


@golden("G-F10")
async def test_an_object_that_appears_is_injected_into_the_waiting_draft(rig: Rig) -> None:
    await injected(rig, {"name": "late"}, cm_yaml=ENDPOINTS)
    config_map(rig, "late", "late")

    assert await rig.settle() == IN_PLACE

    assert told(rig, "ConfigMap.regional-endpoints")[0] == "True"
    accepted(rig.porch.propose(FIRST))


@golden("2.9.3.7", "2.10.3")
@pytest.mark.parametrize("lifecycle", ["Draft", "Published"])
async def test_an_object_that_goes_leaves_its_values_and_makes_no_draft_of_a_published_package(
    rig: Rig, lifecycle: str
) -> None:
    await injected(rig, {"name": "us-east1-endpoints"}, cm_yaml=ENDPOINTS)
    if lifecycle == "Published":
        rig.approve(FIRST)
        await rig.settle()
    accepted(rig.delete("/api/v1", "configmaps", "us-east1-endpoints"))

    written = await rig.settle()

    (found,) = documents(rig, "cm.yaml")
    assert found["data"] == endpoints("us-east1")
    assert found["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == "us-east1-endpoints"
    if lifecycle == "Draft":
        assert written == IN_PLACE
        assert told(rig, "ConfigMap.regional-endpoints")[0] == "False"
    else:
        assert [line for line in written if "PRR" in line or "POST" in line] == []
        assert rig.revisions_of("bar") == {"packagevariant-1": "Published"}
    await rig.quiet()


@golden("G-F12", "2.10.4")
async def test_a_function_that_rewrites_what_was_injected_makes_no_loop(rig: Rig) -> None:
    replace = {
        "image": "gcr.io/kpt-fn/search-replace:v0.2.0",
        "configMap": {"by-value": "db.us-east1.example.com", "put-value": "rewritten.example.com"},
    }
    with_blueprint(rig, blueprint(cm_yaml=ENDPOINTS))
    rig.add_variant(variant(injectors=[{"name": "us-east1-endpoints"}], pipeline={"mutators": [replace]}))

    assert await rig.settle() == MUTATED

    assert documents(rig, "cm.yaml")[0]["data"] == {"db": "rewritten.example.com"}
    assert rig.revision(FIRST)["metadata"]["annotations"]["config.porch.kpt.dev/applied-inputs"].startswith("sha256:")
    await rig.quiet()
    rig.approve(FIRST)
    assert await rig.settle() == []
    await rig.quiet()


@golden("2.10.4")
async def test_what_a_user_changes_in_applied_output_stays_until_an_update_is_needed(rig: Rig) -> None:
    await injected(rig, {"name": "us-east1-endpoints"}, cm_yaml=ENDPOINTS)
    rig.save(FIRST, cm_yaml=rig.files(FIRST)["cm.yaml"].replace("db.us-east1.example.com", "mine.example.com"))

    assert await rig.settle() == []
    assert documents(rig, "cm.yaml")[0]["data"] == {"db": "mine.example.com"}

    rig.change_variant(pipeline={"mutators": [SET_NAMESPACE]})
    assert await rig.settle() == IN_PLACE
    assert documents(rig, "cm.yaml")[0]["data"] == endpoints("us-east1"), "the whole of it is asserted again"
    await rig.quiet()


@golden("G-F10", "G-F07")
async def test_an_upgrade_in_place_injects_into_what_the_new_upstream_has(rig: Rig) -> None:
    await injected(rig, {"name": "us-east1-endpoints"})
    rig.new_upstream(2, cm_yaml=ENDPOINTS)
    rig.change_variant(upstream=upstream(revision=2))

    written = await rig.settle()

    assert written[-2:] == MUTATED[1:]
    assert documents(rig, "cm.yaml")[0]["data"] == endpoints("us-east1")
    assert injection_gates(rig) == ["config.injection.ConfigMap.regional-endpoints"]
    await rig.quiet()


@golden("2.9.3", "chains")
async def test_a_variant_of_a_variant_without_selectors_leaves_what_the_first_injected(rig: Rig) -> None:
    await injected(rig, {"name": "us-east1-endpoints"}, cm_yaml=ENDPOINTS)
    rig.approve(FIRST)
    source = {"repo": "deployments", "package": "bar", "revision": 1}
    rig.add_variant(variant("next", upstream=source, downstream={"repo": "deployments", "package": "baz"}))

    await rig.settle("next")

    draft = "deployments.baz.packagevariant-1"
    assert told(rig, "ConfigMap.regional-endpoints", draft)[0] == "True"
    assert documents(rig, "cm.yaml", draft)[0]["data"] == endpoints("us-east1")
    await rig.quiet("next")
    accepted(rig.porch.propose(draft))

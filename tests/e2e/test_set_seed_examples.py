"""Every PackageVariantSet that the seeds print, applied with kubectl, and the state that the text describes.

Variants with the names and specs of the tables, and of each the draft: context, labels, injected objects, functions. The
examples stand in ``tests/data/variants/seed_examples.yaml``, which says how fragments are completed. ``decisions.md`` 16.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from custom_kinds import definition, open_version, readable
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import namespace_object
from porch_process import PorchProcess
from seed_examples import (
    BASE_NS,
    CLUSTERS,
    FOO,
    POINT,
    SITE,
    TEAMS,
    blocks,
    package_of,
    printed,
    set_of,
    targets,
    template_target,
    templates,
    text_of,
)
from sets_kubectl import (
    FLEET_WAIT,
    all_files,
    fleet_is_ready,
    fleet_remotes,
    pairs_of,
    register_fleet,
    set_condition_is,
    variants_of,
)
from variants_kubectl import condition, publish_blueprint

Object = dict[str, Any]
ENDPOINTS = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{region}-endpoints"},
        "data": {"db": f"db.{region}.example.com"},
    }
    for region in sorted({labels["region"] for labels in CLUSTERS.values()})
]
TEAM = definition(open_version(), kind="Team", plural="teams", group="krm-platform.bigco.com")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    server = PorchProcess(tmp_path_factory.mktemp("set-examples") / "data", arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


def in_namespace(server: PorchProcess, name: str) -> Kubectl:
    kubectl = Kubectl(server.kubeconfig, name)
    kubectl.apply(namespace_object(name))
    return kubectl


# --- seed 000 ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clusters(porch_server: PorchProcess, git_http: GitServer) -> Kubectl:
    """The repositories and teams that seed 000 names, and its two blueprints as v1."""
    kubectl = in_namespace(porch_server, "seed-000")
    catalogs = ("example-repo", "platform-catalog")
    remotes = fleet_remotes(git_http, "seed-000", [*catalogs, *CLUSTERS, *TEAMS])
    register_fleet(kubectl, remotes, CLUSTERS, catalogs=catalogs)
    kubectl.apply(TEAM, readable("krm-platform.bigco.com", "teams"), *ENDPOINTS)
    kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", f"crd/{TEAM['metadata']['name']}")
    kubectl.apply(
        *(
            {"apiVersion": "krm-platform.bigco.com/v1", "kind": "Team", "metadata": {"name": name, "labels": labels}}
            for name, labels in TEAMS.items()
        )
    )
    publish_blueprint(kubectl, "example-repo", "foo", "v1", FOO)
    publish_blueprint(kubectl, "platform-catalog", "base-ns", "v1", BASE_NS)
    return kubectl


@pytest.fixture
def gone_afterwards(clusters: Kubectl) -> Iterator[None]:
    """All examples are called ``example``: the next one begins when this one has left nothing."""
    yield
    clusters.ok("delete", "packagevariantset", "example", "--ignore-not-found", "--timeout=60s")
    eventually(lambda: no_drafts(clusters), timeout=FLEET_WAIT)


def no_drafts(kubectl: Kubectl) -> None:
    assert kubectl.json("get", "packagevariants")["items"] == []
    left = kubectl.json("get", "packagerevisions", "--field-selector=spec.lifecycle=Draft")["items"]
    assert [one["metadata"]["name"] for one in left] == []


@pytest.mark.usefixtures("gone_afterwards")
@pytest.mark.parametrize("example", blocks("set"), ids=lambda one: one["id"])
def test_sets_of_seed_000_end_in_the_state_that_it_describes(clusters: Kubectl, example: Object) -> None:
    text = text_of(example)
    clusters.ok("apply", "-f", "-", stdin=text.replace("namespace: default", f"namespace: {clusters.namespace}"))

    fleet_is_ready(clusters, "example", len(example["variants"]))
    assert pairs_of(clusters, "example") == example["variants"]
    wanted = specs(example)
    files, revisions = all_files(clusters), by_name(clusters)
    for name, body in variants_of(clusters, "example").items():
        assert body["spec"] == wanted[name]
        draft = target_of(body)
        check_draft(body["spec"], revisions[draft], files[draft])


def specs(example: Object) -> dict[str, Object]:
    """Return the specs of an example's variants by name: those that the seed prints, or else upstream and downstream."""
    upstream = yaml.safe_load(text_of(example))["spec"]["upstream"]
    if "prints" in example:
        found = [one["spec"] for one in printed(example)]
        assert all(one["upstream"] == upstream for one in found)
        return {f"example-{one['downstream']['repo']}-{one['downstream']['package']}": one for one in found}
    pairs = {name: pair.split("/") for name, pair in example["variants"].items()}
    return {
        name: {"upstream": upstream, "downstream": {"repo": repo, "package": package}}
        for name, (repo, package) in pairs.items()
    }


def by_name(kubectl: Kubectl) -> dict[str, Object]:
    return {one["metadata"]["name"]: one for one in kubectl.json("get", "packagerevisions")["items"]}


def target_of(variant: Object) -> str:
    """Return the name of a variant's draft, which its downstream gives."""
    (target,) = variant["status"]["downstreamTargets"]
    downstream = variant["spec"]["downstream"]
    assert target["name"] == f"{downstream['repo']}.{downstream['package']}.packagevariant-1"
    return str(target["name"])


def check_draft(spec: Object, revision: Object, files: dict[str, str]) -> None:
    assert revision["spec"]["lifecycle"] == "Draft"
    assert (spec.get("labels") or {}).items() <= (revision["metadata"].get("labels") or {}).items()
    package, upstream = spec["downstream"]["package"], spec["upstream"]
    context = {"name": package, "package-path": package, **((spec.get("packageContext") or {}).get("data") or {})}
    assert yaml.safe_load(files["package-context.yaml"])["data"] == context
    kptfile = yaml.safe_load(files["Kptfile"])
    assert kptfile["upstream"]["git"]["ref"] == f"{upstream['package']}/v1"
    given = [one["configMap"] for one in (kptfile.get("pipeline") or {}).get("mutators") or ()]
    assert given == [one["configMap"] for one in (spec.get("pipeline") or {}).get("mutators") or ()]
    if "endpoints.yaml" in files:
        check_injection(spec, revision, yaml.safe_load(files["endpoints.yaml"]))


def check_injection(spec: Object, revision: Object, point: Object) -> None:
    """The object that the injector names is in the package; without one the gate says so, and the example stands."""
    assert point["metadata"]["name"] == "regional-endpoints"
    if not spec.get("injectors"):
        assert condition(revision, POINT)["status"] == "False"
        assert point["data"] == {"db": "example"}
        return
    ((name,),) = [[one["name"] for one in spec["injectors"]]]
    assert condition(revision, POINT)["status"] == "True"
    assert point["data"] == {"db": f"db.{name.removesuffix('-endpoints')}.example.com"}
    assert point["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == name


# --- seed 001 ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples_of_001(porch_server: PorchProcess, git_http: GitServer) -> Kubectl:
    """The repositories that seed 001 names, and all of its examples, each as a set of its own."""
    kubectl = in_namespace(porch_server, "seed-001")
    remotes = fleet_remotes(git_http, "seed-001", ["catalog", "repo-1", "repo-2", "edge1", "prod-repo"])
    register_fleet(kubectl, remotes, {"repo-2": {"env": "prod"}, "edge1": SITE}, catalogs=["catalog"])
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "repo-1", "labels": {"cluster": "edge"}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "repo-2"}},
    )
    publish_blueprint(kubectl, "catalog", "foo", "v1", {"deployment.yaml": FOO["deployment.yaml"]})
    upstream = {"repo": "catalog", "package": "foo", "revision": 1}
    kubectl.apply(
        *(set_of(one["id"], one["target"], upstream) for one in targets()),
        *(set_of(f"template-{one['id']}", template_target(one), upstream) for one in templates()),
    )
    return kubectl


@pytest.mark.parametrize("example", targets(), ids=lambda one: one["id"])
def test_targets_of_seed_001_get_drafts(examples_of_001: Kubectl, example: Object) -> None:
    packages = [one.format(package="foo") for one in example["packages"]]

    fleet_is_ready(examples_of_001, example["id"], len(packages))
    assert sorted(pairs_of(examples_of_001, example["id"]).values()) == packages


@pytest.mark.parametrize("example", [one for one in templates() if "gives" in one], ids=lambda one: one["id"])
def test_templates_of_seed_001_show_in_the_drafts(examples_of_001: Kubectl, example: Object) -> None:
    fleet_is_ready(examples_of_001, f"template-{example['id']}", 1)
    (body,) = variants_of(examples_of_001, f"template-{example['id']}").values()

    downstream = {"repo": "edge1", "package": package_of(example), **(example["gives"].get("downstream") or {})}
    upstream = {"repo": "catalog", "package": "foo", "revision": 1}
    assert body["spec"] == {"upstream": upstream, **example["gives"], "downstream": downstream}
    draft = target_of(body)
    check_draft(body["spec"], by_name(examples_of_001)[draft], all_files(examples_of_001)[draft])


@pytest.mark.parametrize("example", [one for one in templates() if "refused" in one], ids=lambda one: one["id"])
def test_a_name_that_no_package_can_have_is_told(examples_of_001: Kubectl, example: Object) -> None:
    name = f"template-{example['id']}"
    body = set_condition_is(examples_of_001, name, "Stalled", "True", "UnexpectedError")

    package = "catalog.foo.v1-edge1"
    message = f"spec.targets[0] (edge1/{package}): {example['refused'].format(package=package)}"
    assert condition(body, "Stalled")["message"].startswith(message)
    assert variants_of(examples_of_001, name) == {}

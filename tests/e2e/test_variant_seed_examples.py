"""Every PackageVariant that the seeds print, applied as it stands there, and the state that the text describes.

Seed 000 prints seven (``tests/data/variants/seed_examples.yaml``): ``my-pv``, three namespaces of one blueprint, and three
clusters that get the endpoints of their regions (with ``injectors`` as a mapping, C-27). Seed 002 prints none; what it says of
the revisions that variants manage is compared with what these make. ``decisions.md`` 16.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from git_server import GitServer
from kubectl import Kubectl
from manifests import Register
from porch_process import PorchProcess
from remotes import Remote, empty_remote
from seed_examples import BASE_NS, FOO, POINT, block, text_of
from variants_kubectl import condition, loaded, publish_blueprint, ready_target

Object = dict[str, Any]


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    server = PorchProcess(tmp_path_factory.mktemp("examples") / "data", arguments=["--controllers"])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def clusters(kubectl: Kubectl, register: Register, git_http: GitServer, namespace: str) -> Kubectl:
    """The repositories that the seed names, and its two blueprints as v1."""

    def remote(name: str) -> Remote:
        path = git_http.root / f"{namespace}-{name}.git"
        return Remote(empty_remote(path), f"{git_http.url}/{path.name}")

    deployed = ("cluster-01", "cluster-03", "cluster-04")
    names = (*deployed, "example-repo", "platform-catalog")
    register(**{name: remote(name) for name in names}, deployment=deployed)
    publish_blueprint(kubectl, "example-repo", "foo", "v1", FOO)
    publish_blueprint(kubectl, "platform-catalog", "base-ns", "v1", BASE_NS)
    return kubectl


def apply(kubectl: Kubectl, text: str) -> None:
    """Apply an example in the test's namespace, which the examples call ``default``."""
    kubectl.ok("apply", "-f", "-", stdin=text.replace("namespace: default", f"namespace: {kubectl.namespace}"))


def draft(kubectl: Kubectl, name: str) -> Object:
    body: Object = kubectl.json("get", "packagerevision", name)
    assert body["spec"]["lifecycle"] == "Draft"
    return body


def test_functions_of_the_variant_come_first_in_the_pipeline(clusters: Kubectl) -> None:
    apply(clusters, text_of(block("pipeline")))

    name = ready_target(clusters, "my-pv", target="cluster-01.foo.packagevariant-1")

    wanted = yaml.safe_load(block("pipeline-kptfile")["text"])["pipeline"]["mutators"]
    assert loaded(clusters, name, "Kptfile")["pipeline"]["mutators"][:2] == wanted
    deployment = loaded(clusters, name, "deployment.yaml")["metadata"]
    assert (deployment["namespace"], deployment["labels"]["app"]) == ("my-ns", "foo")


@pytest.mark.parametrize(
    ("name", "package"), [("example-aaaa", "ns-1"), ("example-aaab", "ns-2"), ("example-aaac", "ns-3")]
)
def test_one_blueprint_makes_three_namespaces_of_one_cluster(clusters: Kubectl, name: str, package: str) -> None:
    apply(clusters, text_of(block("labelled-variants")))

    made = ready_target(clusters, name, target=f"cluster-01.{package}.packagevariant-1")

    labels = draft(clusters, made)["metadata"]["labels"]
    assert {"package-type": "namespace", "org": "hr"}.items() <= labels.items()
    assert loaded(clusters, made, "package-context.yaml")["data"]["name"] == package
    assert loaded(clusters, made, "Kptfile")["upstream"]["git"]["ref"] == "base-ns/v1"


@pytest.mark.parametrize(
    ("name", "repository", "region"),
    [
        ("example-aaaa", "cluster-01", "useast1"),
        ("example-aaab", "cluster-03", "useast2"),
        ("example-aaac", "cluster-04", "uswest1"),
    ],
)
def test_each_cluster_gets_the_endpoints_of_its_region(
    clusters: Kubectl, name: str, repository: str, region: str
) -> None:
    for each in ("useast1", "useast2", "uswest1"):
        clusters.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{each}-endpoints"},
                "data": {"db": f"db.{each}.example.com"},
            }
        )

    apply(clusters, text_of(block("expressions-variants")))

    made = ready_target(clusters, name, target=f"{repository}.foo.packagevariant-1")
    body, point = draft(clusters, made), loaded(clusters, made, "endpoints.yaml")
    assert body["metadata"]["labels"]["org"] == "hr"
    assert point["data"] == {"db": f"db.{region}.example.com"}
    assert point["metadata"]["name"] == "regional-endpoints"
    assert point["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == f"{region}-endpoints"
    assert condition(body, POINT)["status"] == "True"
    stored = clusters.json("get", "packagevariant", name)
    assert stored["spec"]["injectors"] == {"name": f"{region}-endpoints"}, "what users write stays as they wrote it"


def test_a_variants_revision_has_the_gates_and_conditions_of_seed_002(clusters: Kubectl) -> None:
    apply(clusters, text_of(block("labelled-variants")))
    made = ready_target(clusters, "example-aaaa")

    body = draft(clusters, made)

    assert body["spec"]["readinessGates"] == [
        {"conditionType": "PackagePipelinePassed"},
        {"conditionType": "PVOperationsComplete"},
    ]
    assert condition(body, "PackagePipelinePassed") == {
        "message": "package pipeline completed successfully",
        "reason": "PipelinePassed",
        "status": "True",
        "type": "PackagePipelinePassed",
    }
    assert condition(body, "PVOperationsComplete")["status"] == "True"

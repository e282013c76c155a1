"""The story of seed 000 with real kubectl, a server process with its controllers, and a real Git server.

From two empty repositories: a blueprint, a variant, gates, an approval, upgrades by themselves, a moved tag, and the end
of a variant by each policy. Source: seed 000, seed 002; ``variants.md`` 2.4, 2.9, 2.11, 2.12.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from custom_kinds import definition, open_version, readable
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from lifecycles import move
from manifests import Register
from porch_process import PorchProcess
from remotes import Remote, empty_remote, refs
from variants_kubectl import WAIT, condition, files_of, gone, loaded, publish_blueprint, ready_target, save

Object = dict[str, Any]

KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: web
pipeline:
  mutators:
  - image: gcr.io/kpt-fn/set-labels:v0.1
    configMap:
      app: foo
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: web
        image: registry.example/web:{tag}
"""
ENDPOINTS = """# What the site's services are.
apiVersion: config.bigco.com/v1
kind: ServiceEndpoints
metadata:
  name: service-endpoints
  annotations:
    config.kubernetes.io/local-config: "true"
    kpt.dev/config-injection: required
spec:
  db: example
  logging: example
  authz: example
"""
DEFINITION = definition(open_version(), kind="ServiceEndpoints", plural="serviceendpoints", group="config.bigco.com")
SITE: Object = {
    "db": "my-db-useast1.bigco.com",
    "logging": "logging.prod.cluster.local",
    "authz": "auth.bigco.com",
}
OPERATIONS, PIPELINE = "PVOperationsComplete", "PackagePipelinePassed"
INJECTION = "config.injection.ServiceEndpoints.service-endpoints"


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that starts its controllers."""
    server = PorchProcess(
        tmp_path_factory.mktemp("variants") / "data",
        arguments=["--controllers"],
        environment={"PORCH_SYNC_INTERVAL": "2"},
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def deployments(git_http: GitServer, namespace: str) -> Remote:
    """The remote of the deployment repository."""
    return remote(git_http, f"{namespace}-deployments")


@pytest.fixture
def blueprints(git_http: GitServer, namespace: str) -> Remote:
    """The remote of the blueprints."""
    return remote(git_http, f"{namespace}-blueprints")


def remote(server: GitServer, name: str) -> Remote:
    return Remote(empty_remote(server.root / f"{name}.git"), f"{server.url}/{name}.git")


@pytest.fixture
def story(kubectl: Kubectl, register: Register, blueprints: Remote, deployments: Remote) -> Kubectl:
    """Two registered repositories, the first revision of a blueprint, and what is injected."""
    register(blueprints=blueprints, deployments=deployments, deployment=("deployments",))
    kubectl.apply(DEFINITION, readable("config.bigco.com", "serviceendpoints"))
    kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", f"crd/{DEFINITION['metadata']['name']}")
    kubectl.apply(endpoints("useast1-endpoints", SITE))
    publish_blueprint(
        kubectl,
        "blueprints",
        "web",
        "v1",
        {"Kptfile": KPTFILE, "deployment.yaml": DEPLOYMENT.format(tag="1.0"), "endpoints.yaml": ENDPOINTS},
    )
    return kubectl


def endpoints(name: str, spec: Object) -> Object:
    return {"apiVersion": "config.bigco.com/v1", "kind": "ServiceEndpoints", "metadata": {"name": name}, "spec": spec}


def variant(name: str = "my-pv", **spec: Any) -> Object:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": name},
        "spec": {
            "upstream": {"repo": "blueprints", "package": "web"},
            "downstream": {"repo": "deployments", "package": name},
            "packageContext": {"data": {"region": "us-east1"}},
            "pipeline": {
                "mutators": [
                    {
                        "image": "gcr.io/kpt-fn/set-namespace:v0.1",
                        "configMap": {"namespace": "my-ns"},
                        "name": "my-func",
                    }
                ]
            },
            "injectors": [{"name": "useast1-endpoints"}],
            "labels": {"team": "edge"},
            "annotations": {"example.com/why": "story"},
            **spec,
        },
    }


def merge(kubectl: Kubectl, kind: str, name: str, patch: Object, *arguments: str) -> str:
    """Merge a patch in; again where the controller is writing the same revision (409, another request is in progress)."""
    command = ("patch", kind, name, "--type=merge", "-p", json.dumps(patch), *arguments)
    return eventually(lambda: kubectl.ok(*command))


def refused(kubectl: Kubectl, name: str, lifecycle: str, *words: str, approval: bool = False) -> None:
    """Check that a revision cannot be moved, and that kubectl says why."""
    door = ["--subresource=approval"] if approval else []
    patch = json.dumps({"spec": {"lifecycle": lifecycle}})

    def asked() -> None:
        done = kubectl("patch", "packagerevision", name, "--type=merge", "-p", patch, *door)
        if not done.returncode:
            pytest.fail(f"{name} became {lifecycle}")
        assert all(word in done.stderr for word in words), done.stderr

    eventually(asked)  # while the controller writes it, the answer is that another request is in progress


def revision(kubectl: Kubectl, name: str) -> Object:
    body: Object = kubectl.json("get", "packagerevision", name)
    return body


def names(kubectl: Kubectl, package: str) -> dict[str, str]:
    """Return the lifecycles of a package's revisions, without the one that follows the branch."""
    selector = f"--field-selector=spec.repository=deployments,spec.packageName={package}"
    items = kubectl.json("get", "packagerevisions", selector)["items"]
    return {i["metadata"]["name"]: i["spec"]["lifecycle"] for i in items if i["spec"].get("revision") != -1}


@pytest.mark.timeout(600)
def test_a_variant_lives_from_its_first_draft_to_an_upgrade(story: Kubectl, deployments: Remote) -> None:
    story.apply(variant())
    first = ready_target(story, "my-pv", target="deployments.my-pv.packagevariant-1")
    check_first_draft(story, first)
    check_gates(story, first)
    edit_and_approve(story, first, deployments)
    second = check_upgrade(story, first)
    check_status(story, second)
    check_that_nothing_more_is_written(story, second)


def check_first_draft(kubectl: Kubectl, name: str) -> None:
    body, files = revision(kubectl, name), files_of(kubectl, name)
    assert body["spec"]["lifecycle"] == "Draft"
    assert body["metadata"]["labels"]["team"] == "edge"
    assert body["metadata"]["annotations"]["example.com/why"] == "story"
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PackageVariant", "my-pv", True)
    context = yaml.safe_load(files["package-context.yaml"])["data"]
    assert context == {"name": "my-pv", "package-path": "my-pv", "region": "us-east1"}
    kptfile = yaml.safe_load(files["Kptfile"])
    mutators = kptfile["pipeline"]["mutators"]
    assert [each.get("name") for each in mutators] == ["PackageVariant.my-pv.my-func.0", None]
    assert mutators[0]["configMap"] == {"namespace": "my-ns"}
    deployment = yaml.safe_load(files["deployment.yaml"])["metadata"]
    assert (deployment["namespace"], deployment["labels"]) == ("my-ns", {"app": "foo"}), "both pipelines ran"
    injected = yaml.safe_load(files["endpoints.yaml"])
    assert injected["spec"] == SITE, body["status"]["conditions"]
    assert injected["metadata"]["name"] == "service-endpoints"
    assert injected["metadata"]["annotations"]["kpt.dev/injected-resource-name"] == "useast1-endpoints"
    assert files["endpoints.yaml"].startswith("# What the site's services are.")
    gates = [gate["conditionType"] for gate in body["spec"]["readinessGates"]]
    assert set(gates) == {PIPELINE, OPERATIONS, INJECTION}
    assert {condition(body, gate)["status"] for gate in gates} == {"True"}


def check_gates(kubectl: Kubectl, name: str) -> None:
    """Neither a pipeline that fails nor a variant that is not done lets a proposal pass."""
    broken = [{"image": "gcr.io/kpt-fn/set-namespace:v0.1", "configMap": {}}]
    merge(kubectl, "packagevariant", "my-pv", {"spec": {"pipeline": {"mutators": broken}}})
    ready_target(kubectl, "my-pv", reason="RenderFailed", target=name)
    assert condition(revision(kubectl, name), OPERATIONS)["status"] == "False"
    refused(kubectl, name, "Proposed", f"readiness gate '{OPERATIONS}' is not met")
    (target,) = kubectl.json("get", "packagevariant", "my-pv")["status"]["downstreamTargets"]
    assert target["renderStatus"]["error"], "the status tells how the render failed"
    merge(kubectl, "packagevariant", "my-pv", {"spec": {"pipeline": variant()["spec"]["pipeline"]}})
    ready_target(kubectl, "my-pv", target=name)
    assert condition(revision(kubectl, name), OPERATIONS)["status"] == "True"

    merge(
        kubectl,
        "packagerevision",
        name,
        {"metadata": {"annotations": {"porch.kpt.dev/push-on-render-failure": "true"}}},
    )
    kptfile = files_of(kubectl, name)["Kptfile"]
    without = kptfile.replace("app: foo", "app: 'not a label!'")
    patch = json.dumps({"spec": {"resources": {"Kptfile": without, "bad.yaml": "a: [\n"}}})
    assert kubectl("patch", "packagerevisionresources", name, "--type=merge", "-p", patch).returncode
    assert condition(revision(kubectl, name), PIPELINE)["status"] == "False"
    refused(kubectl, name, "Proposed", f"readiness gate '{PIPELINE}' is not met")
    merge(kubectl, "packagerevisionresources", name, {"spec": {"resources": {"Kptfile": kptfile, "bad.yaml": None}}})
    assert condition(revision(kubectl, name), PIPELINE)["status"] == "True"


def edit_and_approve(kubectl: Kubectl, name: str, deployments: Remote) -> None:
    edited = files_of(kubectl, name)["deployment.yaml"].replace("replicas: 1", "replicas: 3 # a big site")
    save(kubectl, name, {"deployment.yaml": edited, "notes.txt": "Ask Ann.\n"})
    ready_target(kubectl, "my-pv", target=name)
    move(kubectl, name, "Proposed", "Published")
    assert "refs/tags/my-pv/v1" in refs(deployments.path)
    ready_target(kubectl, "my-pv", target=name)
    assert names(kubectl, "my-pv") == {name: "Published"}


def check_upgrade(kubectl: Kubectl, first: str) -> str:
    """A new upstream revision makes an upgrade draft without anybody asking; local edits stay in it."""
    publish_blueprint(
        kubectl,
        "blueprints",
        "web",
        "v2",
        {"deployment.yaml": DEPLOYMENT.format(tag="2.0")},
        source="blueprints.web.v1",
    )
    second = ready_target(kubectl, "my-pv", target="deployments.my-pv.packagevariant-2")
    body, files = revision(kubectl, second), files_of(kubectl, second)
    (task,) = body["spec"]["tasks"]
    assert task["upgrade"] == {
        "oldUpstreamRef": {"name": "blueprints.web.v1"},
        "newUpstreamRef": {"name": "blueprints.web.v2"},
        "localPackageRevisionRef": {"name": first},
        "strategy": "resource-merge",
    }
    deployment = yaml.safe_load(files["deployment.yaml"])["spec"]
    assert deployment["template"]["spec"]["containers"][0]["image"] == "registry.example/web:2.0"
    assert deployment["replicas"] == 3
    assert "# a big site" in files["deployment.yaml"]
    assert files["notes.txt"] == "Ask Ann.\n"
    assert body["status"]["upstreamLock"]["git"]["ref"] == "web/v2"
    assert condition(body, OPERATIONS)["status"] == "True"
    return second


def check_status(kubectl: Kubectl, draft: str) -> None:
    status = kubectl.json("get", "packagevariant", "my-pv")["status"]
    assert status["upstream"]["name"] == "blueprints.web.v2"
    change = status["pendingChange"]
    assert (change["draft"], change["base"], change["trigger"]) == (
        draft,
        "deployments.my-pv.packagevariant-1",
        "UpstreamChanged",
    )
    assert "deployment.yaml" in change["files"]["modified"]
    events = kubectl.json("get", "events", "--field-selector=involvedObject.name=my-pv")["items"]
    assert events, "people are told what happened"


def check_that_nothing_more_is_written(kubectl: Kubectl, draft: str) -> None:
    """A label on the variant wakes the controller; there is nothing to do."""
    before = revision(kubectl, draft)["metadata"]["resourceVersion"]
    merge(kubectl, "packagevariant", "my-pv", {"metadata": {"annotations": {"example.com/looked": "at"}}})
    merge(kubectl, "packagevariant", "my-pv", {"spec": {"labels": {"team": "core"}}})
    ready_target(kubectl, "my-pv", target=draft)
    assert revision(kubectl, draft)["metadata"]["resourceVersion"] == before
    assert revision(kubectl, draft)["metadata"]["labels"]["team"] == "edge"


@pytest.mark.timeout(600)
def test_drafts_follow_a_tag_that_moves_and_come_back_with_it(story: Kubectl) -> None:
    publish_blueprint(
        story, "blueprints", "web", "v2", {"deployment.yaml": DEPLOYMENT.format(tag="2.0")}, source="blueprints.web.v1"
    )
    tag(story, "blueprints.web.v1")
    story.apply(variant("tagged", upstream={"repo": "blueprints", "package": "web", "tag": "stable"}))
    draft = ready_target(story, "tagged")
    assert revision(story, draft)["status"]["upstreamLock"]["git"]["ref"] == "web/v1"
    save(story, draft, {"notes.txt": "Mine.\n"})

    for workspace, other, image in (("v2", "v1", "2.0"), ("v1", "v2", "1.0")):
        tag(story, f"blueprints.web.{workspace}")
        untag(story, f"blueprints.web.{other}")

        def followed(workspace: str = workspace, image: str = image) -> None:
            body = revision(story, draft)
            assert body["status"]["upstreamLock"]["git"]["ref"] == f"web/{workspace}"
            assert condition(body, OPERATIONS)["status"] == "True"
            assert f"web:{image}" in files_of(story, draft)["deployment.yaml"]

        eventually(followed, timeout=WAIT)
        assert files_of(story, draft)["notes.txt"] == "Mine.\n"
    assert names(story, "tagged") == {draft: "Draft"}, "the same draft all along"


def tag(kubectl: Kubectl, name: str) -> None:
    kubectl.ok("label", "packagerevision", name, "tags.porch.kpt.dev/stable=yes")


def untag(kubectl: Kubectl, name: str) -> None:
    kubectl.ok("label", "packagerevision", name, "tags.porch.kpt.dev/stable-")


@pytest.mark.timeout(600)
def test_an_injected_object_that_changes_makes_a_draft(story: Kubectl) -> None:
    story.apply(variant("site"))
    first = ready_target(story, "site")
    story.apply(endpoints("useast1-endpoints", {**SITE, "db": "second.bigco.com"}))
    eventually(lambda: in_file(story, first, "second.bigco.com"), timeout=WAIT)
    ready_target(story, "site", target=first)
    move(story, first, "Proposed", "Published")

    story.apply(endpoints("useast1-endpoints", {**SITE, "db": "third.bigco.com"}))

    second = ready_target(story, "site", target="deployments.site.packagevariant-2")
    assert loaded(story, second, "endpoints.yaml")["spec"]["db"] == "third.bigco.com"
    assert loaded(story, first, "endpoints.yaml")["spec"]["db"] == "second.bigco.com"
    assert [task["type"] for task in revision(story, second)["spec"]["tasks"]] == ["edit"]


def in_file(kubectl: Kubectl, name: str, text: str) -> None:
    assert text in files_of(kubectl, name)["endpoints.yaml"]


@pytest.mark.timeout(600)
def test_a_required_object_that_is_missing_holds_the_proposal_and_not_the_variant(story: Kubectl) -> None:
    story.apply(variant("waiting", injectors=[{"name": "uswest1-endpoints"}]))
    draft = ready_target(story, "waiting")
    assert condition(revision(story, draft), INJECTION)["reason"] == "NoResourceSelected"
    refused(story, draft, "Proposed", f"readiness gate '{INJECTION}' is not met")

    story.apply(endpoints("uswest1-endpoints", {**SITE, "db": "west.bigco.com"}))

    eventually(lambda: in_file(story, draft, "west.bigco.com"), timeout=WAIT)
    ready_target(story, "waiting", target=draft)
    move(story, draft, "Proposed")


def published_and_draft(kubectl: Kubectl, name: str, **spec: Any) -> tuple[str, str]:
    """Make a variant with one published revision and, for another context, a draft."""
    kubectl.apply(variant(name, **spec))
    first = ready_target(kubectl, name)
    move(kubectl, first, "Proposed", "Published")
    ready_target(kubectl, name, target=first)
    merge(kubectl, "packagevariant", name, {"spec": {"packageContext": {"data": {"region": "us-west1"}}}})
    return first, ready_target(kubectl, name, target=f"deployments.{name}.packagevariant-2")


@pytest.mark.timeout(600)
def test_a_variant_that_deletes_leaves_no_draft_and_proposes_the_rest(story: Kubectl, deployments: Remote) -> None:
    first, second = published_and_draft(story, "short")

    story.ok("delete", "packagevariant", "short", "--timeout=60s")

    gone(story, "packagerevision", second)
    body = revision(story, first)
    assert body["spec"]["lifecycle"] == "DeletionProposed"
    assert "ownerReferences" not in body["metadata"], "or the garbage collector would delete it without an approval"
    assert "refs/tags/short/v1" in refs(deployments.path)
    eventually(lambda: no_branch(deployments, "drafts/short/packagevariant-2"))


def no_branch(deployments: Remote, branch: str) -> None:
    assert f"refs/heads/{branch}" not in refs(deployments.path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cascade", ["background", "orphan"])
def test_a_variant_that_orphans_leaves_everything(story: Kubectl, cascade: str) -> None:
    name = f"kept-{cascade}"
    first, second = published_and_draft(story, name, deletionPolicy="orphan")
    before = files_of(story, second)

    story.ok("delete", "packagevariant", name, f"--cascade={cascade}", "--timeout=60s")

    left_alone(story, first, "Published")
    left_alone(story, second, "Draft")
    assert files_of(story, second) == before


def left_alone(kubectl: Kubectl, name: str, lifecycle: str) -> None:
    """Check that a revision is there, and that no garbage collector will come for it."""
    body = revision(kubectl, name)
    assert body["spec"]["lifecycle"] == lifecycle
    assert "ownerReferences" not in body["metadata"]
    assert not body["metadata"].get("deletionTimestamp")


@pytest.mark.timeout(600)
def test_a_variant_deleted_in_the_foreground_keeps_what_is_published(story: Kubectl, deployments: Remote) -> None:
    """``--cascade=foreground`` asks the garbage collector to delete what the variant owns *before* it goes.

    It begins at once, and is not asked to wait for our finalizer: of a variant that orphans it may have deleted the drafts
    before the controller could release them. Nobody deletes what is published without an approval. The guide says so.
    """
    first, second = published_and_draft(story, "front", deletionPolicy="orphan")

    story.ok("delete", "packagevariant", "front", "--cascade=foreground", "--timeout=60s")

    left_alone(story, first, "Published")
    assert "refs/tags/front/v1" in refs(deployments.path)
    if second in names(story, "front"):
        left_alone(story, second, "Draft")
    else:
        eventually(lambda: no_branch(deployments, "drafts/front/packagevariant-2"))


@pytest.mark.timeout(600)
def test_what_was_orphaned_is_adopted_by_the_variant_that_comes_again(story: Kubectl) -> None:
    first, second = published_and_draft(story, "again", deletionPolicy="orphan")
    story.ok("delete", "packagevariant", "again", "--timeout=60s")

    story.apply(variant("again"))
    ready_target(story, "again", reason="DownstreamExists")
    assert set(names(story, "again")) == {first, second}, "adoptNone leaves everything alone"

    merge(story, "packagevariant", "again", {"spec": {"adoptionPolicy": "adoptExisting"}})
    ready_target(story, "again", target=second)
    assert loaded(story, second, "package-context.yaml")["data"]["region"] == "us-east1"
    assert len(revision(story, first)["metadata"]["ownerReferences"]) == 1

"""Which Repositories may be registered beside each other, what may change, and what is left when one goes."""

import time

import pytest
import remotes
from drafts import accepted, draft, published
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import Object, Register, credentials, namespace_object, repository
from porch_client import CONFIG, Answer, PorchClient
from porch_process import PorchProcess
from remotes import Remote


def post(porch: PorchClient, body: Object, namespace: str = "") -> Answer:
    return porch.request("POST", f"{CONFIG}/namespaces/{namespace or porch.namespace}/repositories", body)


def located(name: str, url: str, directory: str = "", branch: str = "main") -> Object:
    body = repository(name, url, login="", branch=branch)
    if directory:
        body["spec"]["git"]["directory"] = directory
    return body


@pytest.fixture
def other_namespace(kubectl: Kubectl) -> str:
    name = f"{kubectl.namespace}-other"
    kubectl.create(namespace_object(name))
    return name


@pytest.mark.parametrize(
    ("first", "second", "elsewhere"),
    [
        pytest.param("", "", False, id="the same directory in one namespace"),
        pytest.param("a", "/a/", False, id="the same directory written differently"),
        pytest.param("", "a", False, id="the root and a directory"),
        pytest.param("a", "", True, id="a directory and the root in another namespace"),
        pytest.param("a", "a/b", True, id="one directory in the other"),
        pytest.param("a/b", "a", False, id="one directory around the other"),
    ],
)
def test_a_repository_with_packages_of_another_is_refused(
    first: str, second: str, elsewhere: bool, porch: PorchClient, other_namespace: str, empty_remote: Remote
) -> None:
    accepted(post(porch, located("first", empty_remote.url, first)))
    written_differently = empty_remote.url.removesuffix(".git") + "/"

    answer = post(
        porch, located("second", written_differently, second), other_namespace if elsewhere else porch.namespace
    )

    assert (answer.code, answer.reason) == (409, "RepositoryConflict")
    assert answer.message == f"Repository conflict with existing repository: {porch.namespace}/first"


@pytest.mark.parametrize(
    ("first", "second", "elsewhere"),
    [
        pytest.param(("", "main"), ("", "main"), True, id="the same in another namespace"),
        pytest.param(("a", "main"), ("ab", "main"), False, id="names that begin alike"),
        pytest.param(("a", "main"), ("b", "main"), False, id="two directories"),
        pytest.param(("", "main"), ("", "release"), False, id="two branches"),
    ],
)
def test_repositories_without_common_packages_stand_beside_each_other(
    first: tuple[str, str],
    second: tuple[str, str],
    elsewhere: bool,
    porch: PorchClient,
    other_namespace: str,
    empty_remote: Remote,
) -> None:
    accepted(post(porch, located("first", empty_remote.url, *first)))

    answer = post(
        porch, located("second", empty_remote.url, *second), other_namespace if elsewhere else porch.namespace
    )

    assert answer.code == 201, answer.body


def test_a_server_side_apply_is_checked_and_held_like_a_create(kubectl: Kubectl, empty_remote: Remote) -> None:
    kubectl.ok("apply", "--server-side", "-f", "-", stdin=located("first", empty_remote.url))

    done = kubectl("apply", "--server-side", "-f", "-", stdin=located("second", empty_remote.url))

    assert f"Repository conflict with existing repository: {kubectl.namespace}/first" in done.stderr
    finalizers = kubectl.json("get", "repository", "first")["metadata"]["finalizers"]
    assert finalizers == ["config.porch.kpt.dev/repository"]
    kubectl.ok("apply", "--server-side", "-f", "-", stdin=located("first", empty_remote.url))


def test_a_claim_ends_with_its_repository(kubectl: Kubectl, porch: PorchClient, empty_remote: Remote) -> None:
    accepted(post(porch, located("first", empty_remote.url)))
    assert post(porch, located("second", empty_remote.url)).code == 409

    kubectl.ok("delete", "repository", "first")

    assert post(porch, located("second", empty_remote.url)).code == 201


def test_a_directory_that_is_set_later_is_checked_too(
    kubectl: Kubectl, porch: PorchClient, other_namespace: str, empty_remote: Remote
) -> None:
    accepted(post(porch, located("first", empty_remote.url)))
    accepted(post(porch, located("second", empty_remote.url), other_namespace))

    patch = '{"spec":{"git":{"directory":"a"}}}'
    done = kubectl("patch", "repository", "second", "-n", other_namespace, "--type=merge", "-p", patch)

    assert f"Repository conflict with existing repository: {porch.namespace}/first" in done.stderr


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ('{"git":{"repo":"http://elsewhere.example/x.git"}}', "spec.git.repo is immutable"),
        ('{"git":{"branch":"release"}}', "spec.git.branch is immutable"),
        ('{"git":{"directory":"b"}}', "spec.git.directory is immutable"),
        ('{"type":"oci","oci":{"registry":"registry.example/x"}}', "spec.type is immutable"),
        ('{"content":"Function"}', "The 'content' field is deprecated, its only valid value is 'Package'"),
    ],
)
def test_what_makes_a_repository_cannot_change(
    patch: str, message: str, kubectl: Kubectl, porch: PorchClient, empty_remote: Remote
) -> None:
    accepted(post(porch, located("repo", empty_remote.url, "a")))

    done = kubectl("patch", "repository", "repo", "--type=merge", "-p", f'{{"spec":{patch}}}')

    assert message in done.stderr
    kubectl.ok("patch", "repository", "repo", "--type=merge", "-p", '{"spec":{"description":"may change"}}')


def test_an_oci_repository_is_kept_and_says_that_it_is_not_supported(kubectl: Kubectl) -> None:
    body = located("images", "x")
    body["spec"] = {"type": "oci", "oci": {"registry": "registry.example/packages"}}
    kubectl.apply(body)

    def says_so() -> None:
        (condition,) = kubectl.json("get", "repository", "images").get("status", {}).get("conditions") or [{}]
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert "not supported" in condition["message"]

    eventually(says_so)
    kubectl.ok("delete", "repository", "images")


def test_one_remote_is_registered_in_three_namespaces_under_different_names(
    kubectl: Kubectl, porch: PorchClient, test_blueprints_remote: Remote
) -> None:
    for number in range(3):
        namespace = f"{kubectl.namespace}-{number}"
        kubectl.create(namespace_object(namespace))
        accepted(post(porch, located(f"repo-{number}", test_blueprints_remote.url), namespace))
    for number in range(3):
        namespace = f"{kubectl.namespace}-{number}"
        kubectl.ok("wait", "-n", namespace, "--for=condition=Ready", f"repository/repo-{number}", "--timeout=60s")
        items = kubectl.json("get", "packagerevisions", "-n", namespace)["items"]
        assert len(items) == 16
        assert {item["metadata"]["name"].split(".")[0] for item in items} == {f"repo-{number}"}


def essence(item: Object) -> Object:
    """Return an object without what a new registration cannot give back."""
    metadata = {key: item["metadata"][key] for key in ("name", "namespace", "uid")}
    return {**item, "metadata": {**metadata, "labels": item["metadata"].get("labels")}}


def test_a_repository_that_is_unregistered_and_registered_again_has_the_same_revisions(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    published(porch, "deployments", empty_remote, "app")
    draft(porch, "deployments", empty_remote, "other").wait_until_pushed()
    before = [essence(item) for item in porch.revisions()]

    kubectl.ok("delete", "repository", "deployments")
    assert porch.revisions() == []
    register(deployments=empty_remote)

    assert [essence(item) for item in porch.revisions()] == before


def test_a_foreign_finalizer_holds_the_repository_but_not_its_revisions(
    kubectl: Kubectl, porch: PorchClient, empty_remote: Remote
) -> None:
    body = located("held", empty_remote.url)
    body["metadata"]["finalizers"] = ["example.com/hold"]
    remotes.commit_files(empty_remote.path, {"a/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\n"}, "a", tag="a/v1")
    accepted(post(porch, body))
    kubectl.ok("wait", "--for=condition=Ready", "repository/held", "--timeout=60s")
    assert len(porch.revisions()) == 2

    kubectl.ok("delete", "repository", "held", "--wait=false")

    def only_the_object_is_left() -> None:
        assert porch.revisions() == []
        assert kubectl.json("get", "repository", "held")["metadata"]["finalizers"] == ["example.com/hold"]

    eventually(only_the_object_is_left)
    kubectl.ok("patch", "repository", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in kubectl("get", "repository", "held").stderr


def test_a_namespace_takes_its_repositories_along_and_leaves_git_alone(
    kubectl: Kubectl, porch_server: PorchProcess, other_namespace: str, empty_remote: Remote
) -> None:
    elsewhere = porch_server.client(other_namespace)
    kubectl.ok("apply", "-n", other_namespace, "-f", "-", stdin=credentials())
    accepted(post(elsewhere, repository("repo", empty_remote.url)))
    kubectl.ok("wait", "-n", other_namespace, "--for=condition=Ready", "repository/repo", "--timeout=60s")
    published(elsewhere, "repo", empty_remote, "app")
    elsewhere.close()
    before = remotes.refs(empty_remote.path)

    kubectl.ok("delete", "namespace", other_namespace)

    assert remotes.refs(empty_remote.path) == before


def test_a_repository_can_be_unregistered_while_it_is_read_for_the_first_time(
    kubectl: Kubectl, porch: PorchClient, git_http: GitServer
) -> None:
    """Nothing of it appears afterwards."""
    path = git_http.root / f"many-{kubectl.namespace}.git"
    remotes.init_bare(path)
    remotes.commit_files(
        path, {f"p{n}/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\n" for n in range(50)}, "many packages"
    )
    head = remotes.refs(path)["refs/heads/main"]
    tags = "".join(f"create refs/tags/p{n % 50}/v{n // 50 + 1} {head}\n" for n in range(3000))
    remotes.git("update-ref", "--stdin", cwd=path, stdin=tags.encode())

    for wait in (0.05, 0.3, 0.6, 1.0):
        accepted(post(porch, located("many", f"{git_http.url}/{path.name}")))
        time.sleep(wait)
        kubectl.ok("delete", "repository", "many")
        time.sleep(0.5)
        assert porch.revisions() == []

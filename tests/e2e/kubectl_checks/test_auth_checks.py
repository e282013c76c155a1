"""Who is known and who may, as kubectl tells it: rows 85, 86, 87 and 89 (serving certificate) of ``kube-api.md`` 7.2."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from eventually import eventually
from kubectl import Kubectl, needs_kubectl
from manifests import Register, init_task, package_revision
from porch_process import PorchProcess
from remotes import Remote

from apiserver.auth.certificates import LOCAL_HOSTS, Files, issue_serving, load_authority, store_leaf

As = Callable[..., Kubectl]


@pytest.fixture
def login(porch_server: PorchProcess, namespace: str, tmp_path: Path) -> As:
    """kubectl as another user, who has a certificate of their own: ``login("bob", "team-a")``."""

    def log_in(name: str, *groups: str) -> Kubectl:
        return Kubectl(porch_server.kubeconfig_of(name, groups), namespace, str(tmp_path / f"{name}-cache"))

    return log_in


@pytest.fixture
def stranger(porch_server: PorchProcess, namespace: str, tmp_path: Path) -> Kubectl:
    """kubectl that knows the server and has no credentials."""
    config = yaml.safe_load(porch_server.kubeconfig.read_text())
    config["users"] = [{"name": "nobody", "user": {}}]
    for context in config["contexts"]:
        context["context"]["user"] = "nobody"
    kubeconfig = tmp_path / "stranger.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    return Kubectl(kubeconfig, namespace, str(tmp_path / "stranger-cache"))


def bind(kubectl: Kubectl, role: str, user: str) -> None:
    """Give a user a ClusterRole in the test's namespace."""
    kubectl.ok("create", "rolebinding", f"{role}-{user}", f"--clusterrole={role}", f"--user={user}")


def test_an_author_may_propose_and_may_not_approve(
    kubectl: Kubectl, login: As, register: Register, empty_remote: Remote
) -> None:
    needs_kubectl(32, "a subresource of any name")
    register(deployments=empty_remote)
    author, approver = login("author"), login("approver")
    bind(kubectl, "porch-author", "author")
    bind(kubectl, "porch-approver", "approver")
    name = author.create(package_revision("deployments", "assets", "v1", init_task()))["metadata"]["name"]
    author.ok("patch", "packagerevision", name, "--type=merge", "-p", '{"spec":{"lifecycle":"Proposed"}}')
    published = '{"spec":{"lifecycle":"Published"}}'
    approval = ("patch", "packagerevision", name, "--subresource=approval", "--type=merge", "-p", published)

    refused = author(*approval)
    approver.ok(*approval)

    assert refused.returncode == 1
    assert refused.stderr == (
        f'Error from server (Forbidden): packagerevisions.porch.kpt.dev "{name}" is forbidden: User "author" cannot '
        'get resource "packagerevisions/approval" in API group "porch.kpt.dev" in the namespace '
        f'"{kubectl.namespace}"\n'
    )
    assert kubectl.ok("get", "packagerevision", name, "-o", "jsonpath={.spec.lifecycle}") == "Published"
    assert "cannot delete resource" in approver("delete", "packagerevision", name).stderr


def test_row_85_without_credentials_or_with_wrong_ones_nobody_gets_in(
    porch_server: PorchProcess, stranger: Kubectl
) -> None:
    # kubectl asks for a user name before it sends a request without credentials, so that one is sent by hand.
    anybody = porch_server.client(anonymous=True)
    unknown = anybody.request("GET", "/api/v1/namespaces/default/configmaps")
    wrong = stranger("get", "configmaps", "--token=wrong")
    revoked = stranger("get", "configmaps", f"--token=abcdef.{'0' * 32}")

    assert (unknown.code, unknown.reason, unknown.message) == (401, "Unauthorized", "Unauthorized")
    for answer in (wrong, revoked):
        assert answer.returncode == 1
        assert "error: You must be logged in to the server" in answer.stderr
    assert anybody.request("GET", "/readyz").body == b"ok"
    anybody.close()


def test_row_86_kubectl_auth_tells_who_somebody_is_and_what_they_may(kubectl: Kubectl, login: As) -> None:
    bob = login("bob", "team-a")
    bind(kubectl, "porch-author", "bob")

    who = bob.json("auth", "whoami")["status"]["userInfo"]
    listed = bob.ok("auth", "can-i", "--list")
    approve = ("auth", "can-i", "update", "packagerevisions", "--subresource=approval")

    assert (who["username"], who["groups"]) == ("bob", ["team-a", "system:authenticated"])
    assert who["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    rights = {line.split()[0]: line for line in listed.splitlines()[1:] if not line.startswith(" ")}
    assert "create" in rights["packagerevisions.porch.kpt.dev"]
    assert "packagerevisions.porch.kpt.dev/approval" not in rights
    assert "selfsubjectreviews.authentication.k8s.io" in rights
    assert (bob(*approve).returncode, bob(*approve).stdout) == (1, "no\n")
    assert bob.ok("auth", "can-i", "update", "packagerevisions") == "yes\n"
    assert kubectl.ok(*approve) == "yes\n"
    assert kubectl.ok("auth", "can-i", "*", "*", "--all-namespaces") == "yes\n"


def test_row_87_impersonation_is_a_right(kubectl: Kubectl, login: As) -> None:
    as_bob = ("--as=bob", "--as-group=team-a", "--as-group=team-b", "--as-uid=42")
    carol = login("carol")

    who = kubectl.json("auth", "whoami", *as_bob)["status"]["userInfo"]
    denied = kubectl("get", "configmaps", *as_bob)
    presumed = carol("get", "--raw", "/api/v1/configmaps", "--as=bob")
    kubectl.ok("create", "role", "as-dave", "--verb=impersonate", "--resource=serviceaccounts", "--resource-name=dave")
    kubectl.ok("create", "rolebinding", "as-dave", "--role=as-dave", "--user=carol")
    account = f"system:serviceaccount:{kubectl.namespace}:dave"
    allowed = carol.json("auth", "whoami", f"--as={account}")["status"]["userInfo"]

    assert who == {
        "username": "bob",
        "uid": "42",
        "groups": ["team-a", "team-b", "system:authenticated"],
    }
    assert 'User "bob" cannot list resource "configmaps"' in denied.stderr
    assert presumed.stderr == (
        'Error from server (Forbidden): users "bob" is forbidden: User "carol" cannot impersonate resource "users" in '
        'API group "" at the cluster scope\n'
    )
    assert allowed["username"] == account
    assert allowed["groups"][:2] == ["system:serviceaccounts", f"system:serviceaccounts:{kubectl.namespace}"]


@pytest.mark.standalone("of a server in a cluster: tests/aggregated/test_cluster_availability.py")
def test_row_89_a_new_serving_certificate_is_used_without_a_restart(
    porch_server: PorchProcess, kubectl: Kubectl
) -> None:
    files = Files.under(porch_server.data)
    kept = porch_server.client()
    assert kept.request("GET", "/version").code == 200
    pid, before = porch_server.pid, _serving_certificate(porch_server)

    store_leaf(files.serving, files.serving_key, issue_serving(load_authority(files), LOCAL_HOSTS))
    wanted = ssl.PEM_cert_to_DER_cert(files.serving.read_text())
    eventually(lambda: _assert_same(_serving_certificate(porch_server), wanted), timeout=60)

    assert before != wanted
    assert kubectl.ok("get", "--raw", "/readyz") == "ok"
    assert kept.request("GET", "/version").code == 200, "open connections go on"
    assert porch_server.pid == pid
    kept.close()


@pytest.mark.standalone(
    "tokens of accounts are kube-apiserver's there, which believes a deleted one's for some seconds"
)
def test_create_token_logs_a_service_account_in_until_it_is_deleted(kubectl: Kubectl, stranger: Kubectl) -> None:
    """Part of row 14: what ``kubectl create token`` prints is good for something."""
    kubectl.ok("create", "serviceaccount", "robot")
    kubectl.ok("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={kubectl.namespace}:robot")
    token = kubectl.ok("create", "token", "robot", "--duration=10m").strip()

    assert stranger.ok("get", "configmaps", f"--token={token}", f"-n={kubectl.namespace}") is not None
    kubectl.ok("delete", "serviceaccount", "robot")
    assert stranger("get", "configmaps", f"--token={token}").stderr == (
        "error: You must be logged in to the server (Unauthorized)\n"
    )


def test_nobody_gives_away_what_they_do_not_have(kubectl: Kubectl, login: As) -> None:
    fred = login("fred")
    bind(kubectl, "admin", "fred")

    refused = fred("create", "rolebinding", "more", "--clusterrole=cluster-admin", "--user=fred")
    fred.ok("create", "rolebinding", "less", "--clusterrole=view", "--user=george")

    assert refused.stderr == (
        'error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "more" is forbidden: user "fred" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}\n'
    )


@pytest.mark.standalone("a server in a cluster writes no kubeconfig")
def test_the_token_of_the_kubeconfig_is_the_administrators(kubectl: Kubectl) -> None:
    who = kubectl.json("auth", "whoami", "--context=porch-token")["status"]["userInfo"]

    assert (who["username"], "system:masters" in who["groups"]) == ("admin", True)


def test_roles_are_reconciled_by_kubectl(kubectl: Kubectl) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": kubectl.namespace},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    }
    created = kubectl.ok("auth", "reconcile", "-f", "-", stdin=role)
    role["rules"] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    kubectl.ok("auth", "reconcile", "-f", "-", stdin=role)

    verbs = kubectl.ok("get", "role", "reader", "-o", "jsonpath={.rules[*].verbs[*]}")

    assert "role.rbac.authorization.k8s.io/reader reconciled" in created
    assert verbs.split() == ["get", "list"]


def test_a_right_within_a_namespace_is_one_on_the_namespace(kubectl: Kubectl, login: As) -> None:
    bob = login("bob")
    bind(kubectl, "view", "bob")

    assert bob.ok("get", "namespace", kubectl.namespace, "-o", "name") == f"namespace/{kubectl.namespace}\n"
    assert bob("get", "namespace", "default").stderr == (
        'Error from server (Forbidden): namespaces "default" is forbidden: User "bob" cannot get resource "namespaces" '
        'in API group "" in the namespace "default"\n'
    )
    assert "at the cluster scope" in bob("get", "namespaces").stderr


def _serving_certificate(server: PorchProcess) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", server.port)))


def _assert_same(found: bytes, wanted: bytes) -> None:
    assert found == wanted

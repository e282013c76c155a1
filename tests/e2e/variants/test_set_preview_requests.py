"""Who may ask for previews of sets and how: rights, kubectl, the command line, and what is not answered.

Source: ``variants.md`` 1.7, 2.4, 6.1 and 6.11.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from drafts import accepted
from git_server import GitServer
from kubectl import Kubectl
from porch_client import PORCH, Answer
from porch_process import PorchProcess
from set_place import SetPlace, package_set
from variant_place import Json, blueprint, new_place

NAMESPACE = "preview-requests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TEAM = ("krm-platform.bigco.com", "v1", "Team", "teams")
PROD: Json = {"repositorySelector": {"matchLabels": {"env": "prod"}}}
TEAMS: Json = {"objectSelector": {"apiVersion": "krm-platform.bigco.com/v1", "kind": "Team"}}
NAMESPACES: Json = {"objectSelector": {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE}}
READ: Json = {
    "verbs": ["get", "list"],
    "apiGroups": ["config.porch.kpt.dev", "porch.kpt.dev"],
    "resources": ["repositories", "packagevariants", "packagevariantsets", "packagerevisions"],
}
CREATE: Json = {"verbs": ["create"], "apiGroups": ["porch.kpt.dev"], "resources": ["packagevariantsetpreviews"]}
EXTREME_SECONDS = 120


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """Four clusters, two teams, and a stored set."""
    place = new_place(porch_server, git_http, NAMESPACE)
    made = SetPlace(place)
    made.prepare()
    made.define(*TEAM)
    made.add_object(*TEAM, "cluster-01")
    made.add(package_set("stored", PROD))
    yield made
    place.porch.close()


@pytest.fixture
def here(sets: SetPlace, tmp_path: Path) -> Kubectl:
    """kubectl as the administrator, in the namespace of the sets."""
    return Kubectl(sets.place.server.kubeconfig, NAMESPACE, str(tmp_path / "cache"))


def body(**spec: Any) -> Json:
    return {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageVariantSetPreview", "spec": spec}


def ask(sets: SetPlace, user: str = "", **spec: Any) -> Answer:
    """Create a preview, as the administrator or on behalf of somebody."""
    sets.porch.headers = {"Impersonate-User": user} if user else {}
    try:
        return sets.porch.request("POST", sets.place.path(PORCH, "packagevariantsetpreviews"), body(**spec))
    finally:
        sets.porch.headers = {}


def allow(sets: SetPlace, user: str, *rules: Json) -> None:
    """Give somebody rights in the namespace."""
    role = {"metadata": {"name": user}, "rules": list(rules)}
    accepted(sets.porch.request("POST", sets.place.path(RBAC, "roles"), role))
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    binding = {"metadata": {"name": user}, "roleRef": reference, "subjects": [{"kind": "User", "name": user}]}
    accepted(sets.porch.request("POST", sets.place.path(RBAC, "rolebindings"), binding))


# --- rights -------------------------------------------------------------------------------------------


def test_who_may_read_nothing_is_told_all_that_is_missing(sets: SetPlace) -> None:
    allow(sets, "asker", CREATE)
    answer = ask(sets, "asker", set=package_set("mine", PROD, TEAMS, NAMESPACES))

    assert (answer.code, answer.reason) == (403, "Forbidden")
    where = f'in the namespace "{NAMESPACE}"'
    told = [
        f'get resource "packagevariantsets.config.porch.kpt.dev" "mine" {where}',
        *(
            f'list resource "{one}" {where}'
            for one in (
                "repositories.config.porch.kpt.dev",
                "packagevariants.config.porch.kpt.dev",
                "packagerevisions.porch.kpt.dev",
            )
        ),
        f'list resource "teams.krm-platform.bigco.com" {where}',
        'list resource "namespaces" at the cluster scope',
    ]
    assert [one["message"] for one in answer.object["details"]["causes"]] == told
    assert all(one in answer.message for one in told)


def test_who_may_not_create_previews_gets_none(sets: SetPlace) -> None:
    answer = ask(sets, "stranger", name="stored")

    assert answer.code == 403
    assert 'cannot create resource "packagevariantsetpreviews"' in answer.message


def test_rights_in_the_namespace_are_enough_but_for_objects_of_the_cluster(sets: SetPlace) -> None:
    allow(sets, "local", CREATE, READ, {**READ, "apiGroups": [TEAM[0]], "resources": [TEAM[3]]})
    inside = ask(sets, "local", set=package_set("mine", PROD, TEAMS))
    stored = ask(sets, "local", name="stored")
    outside = ask(sets, "local", set=package_set("mine", NAMESPACES))

    assert inside.code == stored.code == 201
    assert inside.object["status"]["summary"]["create"] == 4  # a team has the name of a cluster
    assert outside.code == 403
    assert 'list resource "namespaces" at the cluster scope' in outside.message
    assert "repositories" not in outside.message


def test_the_kinds_of_a_stored_set_need_rights_too(sets: SetPlace) -> None:
    allow(sets, "without-teams", CREATE, READ)
    sets.add(package_set("of-teams", TEAMS))
    answer = ask(sets, "without-teams", name="of-teams")

    assert answer.code == 403
    assert "teams.krm-platform.bigco.com" in answer.message


def test_a_viewer_may_ask(sets: SetPlace) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subjects = [{"kind": "User", "name": "viewer"}]
    binding = {"metadata": {"name": "viewer"}, "roleRef": reference, "subjects": subjects}
    accepted(sets.porch.request("POST", sets.place.path(RBAC, "rolebindings"), binding))

    assert ask(sets, "viewer", name="stored").code == 201


# --- which set ----------------------------------------------------------------------------------------


def test_a_stored_set_is_previewed_by_its_name_or_by_another_spec(sets: SetPlace) -> None:
    by_name = ask(sets, name="stored").object
    spec = package_set("stored", {"repositories": [{"name": "cluster-01"}]})["spec"]
    by_spec = ask(sets, name="stored", set={"spec": spec}).object

    assert by_name["metadata"]["name"] == "stored"
    assert by_name["status"]["summary"]["create"] == 4
    assert by_spec["status"]["summary"]["create"] == 1
    assert {one["observedGeneration"] for one in by_spec["status"]["conditions"]} == {2}
    assert "spec" not in {*by_name["metadata"]}


def test_guards_of_the_controllers_settings_can_be_told(sets: SetPlace) -> None:
    nobody = package_set("stored", {"repositorySelector": {"matchLabels": {"env": "none"}}})
    uid = sets.get("stored")["metadata"]["uid"]
    label = {"config.porch.kpt.dev/packagevariantset": uid}
    spec = {
        "upstream": {"repo": "example-repo", "package": "foo"},
        "downstream": {"repo": "cluster-04", "package": "old"},
    }
    sets.place.create(
        "/apis/config.porch.kpt.dev/v1alpha1",
        "packagevariants",
        {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": {"name": "old", "labels": label},
            "spec": spec,
        },
    )
    free = ask(sets, set=nobody).object["status"]
    guarded = ask(sets, set=nobody, guardDefaults={"maxDeletions": 0}).object["status"]
    kept = ask(sets, set=nobody, guardDefaults={"onEmptySelection": "Keep"}).object["status"]
    sets.place.delete("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "old")

    assert [one["admitted"] for one in free["targets"]] == [True]
    assert "more than spec.guards.maxDeletions allows (0)" in guarded["targets"][0]["reason"]
    assert kept["targets"][0]["reason"] == "spec.guards.onEmptySelection is Keep, and spec.targets[0] selects nothing"
    assert free["warnings"] == [{"reason": "NoObjectsSelected", "message": "spec.targets[0] selects nothing"}]


def test_expressions_see_which_package_the_upstream_is_only_where_that_is_said(sets: SetPlace) -> None:
    template = {"labelExprs": [{"key": "from", "valueExpr": "upstream.package"}]}
    body = package_set("identity", {**PROD, "template": template})
    without = ask(sets, set=body).object["status"]
    seen = ask(sets, set=body, upstreamIdentity=True).object["status"]

    assert without["summary"]["failed"] == 4
    assert {one["spec"]["labels"]["from"] for one in seen["targets"]} == {"foo"}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({}, 422, "spec.name: Required value: name a set, here or in spec.set.metadata"),
        ({"name": "none"}, 404, 'packagevariantsets.config.porch.kpt.dev "none" not found'),
        ({"name": "A_b"}, 422, 'spec.name: Invalid value: "A_b"'),
        ({"name": "../x"}, 422, "spec.name: Invalid value"),
        ({"name": "x" * 300}, 422, "spec.name: Invalid value"),
        ({"name": "a", "set": package_set("b", PROD)}, 422, 'spec.set.metadata.name: Invalid value: "b"'),
        ({"set": {"metadata": {"name": "a", "namespace": "other"}}}, 422, "must match the namespace of the preview"),
        ({"set": {**package_set("a", PROD), "kind": "ConfigMap"}}, 422, "must be PackageVariantSet"),
        (
            {"set": {**package_set("a", PROD), "apiVersion": "config.porch.kpt.dev/v1alpha1"}},
            422,
            "porch variants convert",
        ),
        ({"name": "stored", "guardDefaults": {"maxDeletions": "many"}}, 422, "spec.guardDefaults: Invalid value"),
        ({"name": "stored", "set": "text"}, 400, ""),
        ({"name": "stored", "set": {"spec": {"targets": {"a": 1}}}}, 400, ""),
    ],
    ids=str,
)
def test_what_is_no_question_gets_no_answer(sets: SetPlace, spec: Json, code: int, message: str) -> None:
    answer = ask(sets, **spec)

    assert answer.code == code, answer.body
    assert message in answer.message


def test_a_missing_namespace_is_told(sets: SetPlace) -> None:
    answer = sets.porch.request("POST", f"{PORCH}/namespaces/none/packagevariantsetpreviews", body(name="stored"))

    assert (answer.code, answer.message) == (404, 'namespaces "none" not found')


def test_expressions_that_never_end_fail_their_target_and_the_server_goes_on(sets: SetPlace) -> None:
    numbers = str(list(range(60)))
    loop = f"string({numbers}.map(a, {numbers}.map(b, string(a) + string(b))).size())"
    endless = " + ".join([loop] * 6)
    target = {**PROD, "template": {"labelExprs": [{"key": "a", "valueExpr": endless}]}}
    answer = ask(sets, set=package_set("slow", target))

    assert answer.code == 201, answer.body
    assert answer.object["status"]["summary"]["failed"] == 4
    assert answer.object["status"]["conditions"][0]["reason"] == "UnexpectedError"
    assert ask(sets, name="stored").code == 201


def test_nothing_else_can_be_done_with_previews(sets: SetPlace) -> None:
    path = sets.place.path(PORCH, "packagevariantsetpreviews")

    assert sets.porch.request("GET", path).code == 405
    assert sets.porch.request("DELETE", f"{path}/x").code in (404, 405)
    assert sets.porch.request("PUT", f"{path}/x", body(name="x")).code in (404, 405)


# --- kubectl and the command line ---------------------------------------------------------------------


def test_kubectl_creates_explains_and_shows_previews(sets: SetPlace, here: Kubectl) -> None:
    created = here.create(body(name="stored"))
    described = here.ok("explain", "packagevariantsetpreviews.status.targets")
    table = sets.porch.request(
        "POST",
        sets.place.path(PORCH, "packagevariantsetpreviews"),
        body(name="stored"),
        accept="application/json;as=Table;v=v1;g=meta.k8s.io",
    ).object

    assert created["status"]["summary"]["create"] == 4
    assert "admitted" in described
    cells = dict(zip((one["name"] for one in table["columnDefinitions"]), table["rows"][0]["cells"], strict=True))
    assert cells == {
        "Name": "stored",
        "Create": 4,
        "Update": 0,
        "Delete": 0,
        "Unchanged": 0,
        "Admitted": 4,
        "Failed": 0,
        "Ready": "True",
        "Reason": "Reconciled",
    }
    assert "created" in here.ok("create", "-f", "-", stdin=body(name="stored"))
    assert here("auth", "can-i", "create", "packagevariantsetpreviews.porch.kpt.dev").returncode == 0


def variants(sets: SetPlace, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a user would."""
    where = ["--kubeconfig", str(sets.place.server.kubeconfig), "--namespace", NAMESPACE]
    command = [sys.executable, "-m", "apiserver", "variants", *arguments, *where]
    environment = {**os.environ, "KUBECONFIG": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def test_the_command_asks_the_server_and_its_exit_code_tells(sets: SetPlace, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(yaml.safe_dump(package_set("stored", {"repositories": [{"name": "cluster-02"}]})))
    wrong = {"downstream": {"repoExpr": "target.none"}}
    bad.write_text(yaml.safe_dump(package_set("bad", {**PROD, "template": wrong})))
    shown = variants(sets, "preview", "-f", str(good), "--against-cluster")
    changes = variants(sets, "preview", "stored", "--exit-code", "-o", "json")
    errors = variants(sets, "preview", "-f", str(bad))
    missing = variants(sets, "preview", "none")

    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[1].split()[:4] == ["create", "yes", "stored-cluster-02-foo", "cluster-02/foo"]
    assert (
        "stored: 1 to create, 0 to update, 0 to delete, 0 unchanged, 0 failed; 1 written by the next pass"
        in shown.stdout
    )
    assert changes.returncode == 3
    assert json.loads(changes.stdout)["status"]["summary"]["create"] == 4
    assert errors.returncode == 2
    assert "no such key: none" in errors.stdout
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == 'Error: packagevariantsets.config.porch.kpt.dev "none" not found\n'


def test_files_of_the_cluster_give_the_same_answer(sets: SetPlace, here: Kubectl, tmp_path: Path) -> None:
    """What kubectl prints is enough to preview in CI, without a server."""
    folder = tmp_path / "objects"
    folder.mkdir()
    kinds = "repositories,packagerevisions,packagevariants,packagevariantsets,teams.krm-platform.bigco.com"
    (folder / "objects.yaml").write_text(here.ok("get", kinds, "-o", "yaml"))
    file = tmp_path / "set.yaml"
    target = {**TEAMS, "template": {"annotationExprs": [{"key": "a", "valueExpr": "target.name"}]}}
    file.write_text(yaml.safe_dump(package_set("stored", PROD, target)))
    online = variants(sets, "preview", "-f", str(file), "-o", "json")
    offline = variants(sets, "preview", "-f", str(file), "-o", "json", "--objects", str(folder))

    assert online.returncode == offline.returncode == 2, online.stderr + offline.stderr  # one pair, two specs
    assert json.loads(offline.stdout)["status"] == json.loads(online.stdout)["status"]


def test_a_tag_moves_from_one_revision_to_another(sets: SetPlace, here: Kubectl) -> None:
    sets.place.push("example-repo", {"foo@v2": blueprint(_more_yaml="# more\n")})
    sets.place.sync("example-repo")
    label = "tags.porch.kpt.dev/stable"

    def tagged() -> list[str]:
        found = here.json("get", "packagerevisions", "-l", label)["items"]
        return sorted(one["metadata"]["name"] for one in found)

    first = variants(sets, "tag", "set", "example-repo.foo.v1", "stable")
    assert (first.returncode, first.stdout) == (0, "example-repo.foo.v1 has tag stable now\n"), first.stderr
    second = variants(sets, "tag", "set", "example-repo.foo.v2", "stable")
    assert second.stdout == "example-repo.foo.v2 has tag stable now\nexample-repo.foo.v1 has it no more\n"
    again = variants(sets, "tag", "set", "example-repo.foo.v2", "stable")

    assert (again.returncode, again.stdout) == (0, "example-repo.foo.v2 has tag stable already\n")
    assert tagged() == ["example-repo.foo.v2"]
    for wrong in ("latest", "Not_a_tag"):
        refused = variants(sets, "tag", "set", "example-repo.foo.v2", wrong)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert wrong in refused.stderr


# --- many targets -------------------------------------------------------------------------------------


def test_a_thousand_targets_are_previewed_by_one_request(sets: SetPlace) -> None:
    names = [f"team-{number:04}" for number in range(1000)]
    target = {
        "repositories": [{"name": "cluster-01", "packageNames": names}],
        "template": {"labelExprs": [{"key": str(one), "valueExpr": f"target.package + '{one}'"} for one in range(5)]},
    }
    ask(sets, name="stored")  # the process that renders has started
    began = time.monotonic()
    answer = ask(sets, set=package_set("many", target))
    took = time.monotonic() - began

    print(f"1000 targets in {took:.2f} s, {len(answer.body)} bytes")  # noqa: T201 - the bench has the limit
    assert answer.object["status"]["summary"]["create"] == 1000
    assert len(answer.object["status"]["targets"]) == 1000

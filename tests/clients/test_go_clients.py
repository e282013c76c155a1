"""client-go and controller-runtime, unmodified: each scenario of the program in ``go/`` and what it must have seen.

``make test-clients`` builds the program. Informers are run both ways that client-go has: with watch lists, the default
since its 0.35, and with paged lists before the watch.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_programs import built
from kubectl import Kubectl

Line = dict[str, Any]
Seen = list[Line]
Run = Callable[..., Seen]

SECONDS = 90
"""A scenario ends itself after 60."""
WATCH_LISTS = [
    pytest.param({"KUBE_FEATURE_WatchListClient": "true"}, id="watch-lists"),
    pytest.param({"KUBE_FEATURE_WatchListClient": "false"}, id="paged-lists"),
]
CONFIG_MAP_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]

pytestmark = pytest.mark.usefixtures("widgets")


@pytest.fixture(params=["clients", "clients-newest"])
def program(request: pytest.FixtureRequest) -> Path:
    """The program with the libraries of the served Kubernetes release, and with the newest."""
    return built(request.param)


@pytest.fixture
def run(program: Path, client_kubectl: Kubectl) -> Run:
    """Run a scenario and return what it saw; it must succeed."""

    def scenario(name: str, environment: dict[str, str] | None = None) -> Seen:
        done = subprocess.run(
            [program, "-kubeconfig", client_kubectl.kubeconfig, "-namespace", client_kubectl.namespace, name],
            env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    return scenario


def only(seen: Seen, what: str) -> Seen:
    """Return the lines of one kind, without saying so again in each."""
    return [{key: value for key, value in line.items() if key != "saw"} for line in seen if line["saw"] == what]


@pytest.mark.parametrize("environment", WATCH_LISTS)
def test_an_operator_creates_follows_reports_and_finalizes(run: Run, environment: dict[str, str]) -> None:
    seen = run("manager", environment)

    assert only(seen, "ready") == [{"secret": "pump", "size": 3, "generation": 1}]
    assert only(seen, "followed") == [{"owner": "Widget", "controller": True}]
    assert only(seen, "finalizing")[0] == {"name": "pump", "generation": 2}
    assert only(seen, "gone") == [{"name": "pump"}]
    assert only(seen, "secret")[0]["done"] == "created"


@pytest.mark.parametrize("environment", WATCH_LISTS)
def test_shared_informers_see_every_change_once_over_protobuf(run: Run, environment: dict[str, str]) -> None:
    seen = run("informers", environment)

    assert sorted(line["kind"] for line in only(seen, "synced") if line["synced"]) == ["ConfigMap", "Secret"]
    assert only(seen, "events") == [{"counted": "20 added, 4 updated, 3 deleted"}]
    assert only(seen, "cache")[0]["same"] is True
    wire = only(seen, "wire")[0]["counts"]
    assert wire["protobufBodies"] >= 21, "typed clients send protobuf for the core kinds"
    assert "serverErrors" not in wire
    assert wire.get("watchLists", 0) == (2 if environment["KUBE_FEATURE_WatchListClient"] == "true" else 0)


def test_a_list_read_in_pages_is_complete_while_its_items_are_deleted(run: Run) -> None:
    assert only(run("lists"), "paged") == [{"items": 25, "requests": 3}]


def test_a_watch_taken_up_at_the_last_revision_misses_nothing(run: Run) -> None:
    names = [line["names"] for line in only(run("resume"), "resumed")]

    assert names == [[f"round{round_}-0", f"round{round_}-1"] for round_ in range(3)]


@pytest.mark.parametrize("environment", WATCH_LISTS)
def test_metadata_informers_cache_any_kind(run: Run, environment: dict[str, str]) -> None:
    assert only(run("metadata", environment), "metadata") == [{"name": "seen", "uid": True}]


def test_every_patch_type_changes_a_core_object(run: Run) -> None:
    patched = only(run("patches"), "patched")

    assert [line["data"] for line in patched[3:]] == [{"json": "1", "merge": "2", "strategic": "3", "apply": "4"}] * 2
    assert patched[1]["finalizers"] == ["clients.porch.test/one"]
    assert patched[2]["finalizers"] == ["clients.porch.test/two", "clients.porch.test/one"]
    assert patched[4]["finalizers"] is None


def test_patches_of_a_custom_resource_keep_status_apart_and_fail_as_kubernetes_does(run: Run) -> None:
    merge, json_patch, status, strategic, failed = only(run("patches"), "widget")

    assert (merge["spec"], merge["status"], merge["generation"]) == ({"color": "red", "size": 5}, None, 2)
    assert (json_patch["spec"]["color"], json_patch["generation"]) == ("blue", 3)
    assert (status["spec"]["size"], status["status"], status["generation"]) == (5, {"ready": True}, 3)
    assert strategic["reason"] == "UnsupportedMediaType"
    assert failed["reason"] == "Invalid"


def test_managers_of_server_side_apply_conflict_take_over_and_give_up_fields(run: Run) -> None:
    seen = run("apply")
    first, refused, forced, shrunk, emptied = only(seen, "applied")

    assert first["data"] == {"a": "1", "b": "1"}
    assert (refused["reason"], refused["fields"]) == ("Conflict", ["FieldManagerConflict .data.a"])
    assert forced["data"] == {"a": "2", "b": "1"}
    assert forced["owners"] == ["one Apply : [f:data f:metadata]", "two Apply : [f:data f:metadata]"]
    assert shrunk["data"] == {"a": "2", "b": "1"}
    assert emptied["data"] == {"a": "2"}
    assert only(seen, "extracted") == [{"data": {"a": "2"}}]
    assert only(seen, "widget") == [{"size": 2, "generation": 1, "owners": ["runtime Apply : [f:spec]"]}] * 2


def test_a_lease_that_is_released_goes_to_the_second_candidate(run: Run) -> None:
    seen = run("election")

    assert only(seen, "leads") == [{"who": "first"}, {"who": "second", "within": True}]
    assert only(seen, "lease") == [{"holder": "second", "renewed": True}]


def test_everything_served_is_discovered_in_two_requests(run: Run) -> None:
    seen = run("discovery")
    discovered = only(seen, "discovered")[0]

    assert discovered["requests"] == 2
    assert discovered["kinds"]["v1 configmaps"] == CONFIG_MAP_VERBS
    assert discovered["kinds"]["clients.porch.test/v1 widgets"] == CONFIG_MAP_VERBS
    assert discovered["kinds"]["clients.porch.test/v1 widgets/status"] == ["get", "patch", "update"]
    assert only(seen, "mapped") == [{"resource": "widgets", "scope": "namespace", "version": "v1"}]
    assert only(seen, "documented") == [{"preferred": True, "bytes": True}]


def test_the_dynamic_client_works_with_a_kind_it_has_no_type_for(run: Run) -> None:
    seen = run("dynamic")

    assert only(seen, "updated") == [{"spec": {"color": "red", "size": 9}, "status": {"ready": True}, "generation": 2}]
    assert only(seen, "listed") == [{"kind": "WidgetList", "items": 1, "version": True}]


def test_both_recorders_of_events_are_heard(run: Run) -> None:
    seen = run("events")

    assert only(seen, "counted") == [{"count": 3, "message": "it happened", "component": "old-recorder"}]
    assert only(seen, "noted") == [
        {
            "note": "it failed",
            "action": "Doing",
            "type": "Warning",
            "regarding": "subject",
            "controller": "new-recorder",
        }
    ]


def test_errors_have_the_reasons_that_controllers_decide_by(run: Run) -> None:
    seen = run("errors")

    assert {line["what"]: line["reason"] for line in only(seen, "failed")} == {
        "create twice": "AlreadyExists",
        "get absent": "NotFound",
        "create badly named": "Invalid",
        "update stale": "Conflict",
        "delete another uid": "Conflict",
        "create in no namespace": "NotFound",
    }
    assert only(seen, "retried") == [{"attempts": 2, "ok": True}]


def test_a_service_accounts_token_is_somebody_who_may_nothing_yet(run: Run, client_kubectl: Kubectl) -> None:
    seen = run("identity")
    namespace = client_kubectl.namespace
    name = f"system:serviceaccount:{namespace}:robot"

    assert only(seen, "is") == [
        {
            "name": name,
            "groups": [
                "system:serviceaccounts",
                f"system:serviceaccounts:{namespace}",
                "system:authenticated",
            ],
        }
    ]
    may = only(seen, "may")[0]
    assert may["deleteSecrets"] is False
    assert may["listing"] == (
        f'secrets is forbidden: User "{name}" cannot list resource "secrets" in API group "" '
        f'in the namespace "{namespace}"'
    )

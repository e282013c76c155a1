"""Readiness gates hold at every door, for every client: REST and kubectl, PUT, every patch, apply, and ``approval``.

Source: seed 002; ``decisions.md`` 14; ``porch-api.md`` 4.2, 4.6, 5.5.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from drafts import accepted, refused
from eventually import eventually
from kubectl import Kubectl
from manifests import Register
from porch_client import Answer, PorchClient
from remotes import Remote, refs

Object = dict[str, Any]
GATE = "acme.com/tested"
UNMET = f"readiness gate '{GATE}' is not met"
BYPASS = "porch.kpt.dev/bypass-gates"
JSON_PATCH, MERGE_PATCH = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
FAILING = (
    "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
    "pipeline:\n  mutators:\n  - image: example.com/no-such-function:v1\n"
)


@pytest.fixture
def name(porch: PorchClient, register: Register, empty_remote: Remote) -> str:
    """A draft with a gate that has no condition yet."""
    register(deployments=empty_remote, deployment=("deployments",))
    made = accepted(porch.create_revision("deployments", "app", readinessGates=[{"conditionType": GATE}]))
    return str(made["metadata"]["name"])


def set_condition(porch: PorchClient, name: str, status: str | None) -> None:
    conditions = [] if status is None else [{"type": GATE, "status": status, "message": "two tests fail"}]
    patch = {"status": {"conditions": conditions}}
    accepted(porch.request("PATCH", porch.path("packagerevisions", name), patch, content_type=MERGE_PATCH))


def to(porch: PorchClient, name: str, lifecycle: str, subresource: str, content_type: str) -> Answer:
    """Ask for a lifecycle by one kind of request."""
    path = porch.path("packagerevisions", name, subresource)
    if not content_type:
        return porch.set_lifecycle(name, lifecycle, subresource)
    if content_type == JSON_PATCH:
        patch = json.dumps([{"op": "replace", "path": "/spec/lifecycle", "value": lifecycle}]).encode()
        return porch.request("PATCH", path, patch, content_type=content_type)
    body: Object = {"spec": {"lifecycle": lifecycle}}
    if content_type == APPLY:
        body |= {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {"name": name}}
        path += "?fieldManager=tester&force=true"
    return porch.request("PATCH", path, body, content_type=content_type)


@pytest.mark.parametrize("content_type", ["", JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY])
def test_an_unready_draft_is_proposed_by_no_request(porch: PorchClient, name: str, content_type: str) -> None:
    for status in (None, "False", "Unknown"):
        set_condition(porch, name, status)
        before = porch.revision(name).object

        told = refused(to(porch, name, "Proposed", "", content_type), 422, "Invalid", UNMET)

        assert [cause["field"] for cause in told["details"]["causes"]] == ["spec.lifecycle"]
        assert porch.revision(name).object == before

    set_condition(porch, name, "True")
    assert accepted(to(porch, name, "Proposed", "", content_type))["spec"]["lifecycle"] == "Proposed"


@pytest.mark.parametrize("content_type", ["", JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY])
def test_an_unready_proposal_is_approved_by_no_request(
    porch: PorchClient, name: str, empty_remote: Remote, content_type: str
) -> None:
    """It became a proposal by an override, which counted for that request alone."""
    propose_all_the_same(porch, name)
    before = porch.revision(name).object

    refused(to(porch, name, "Published", "approval", content_type), 422, "Invalid", UNMET, "reject the proposal")
    refused(to(porch, name, "Published", "", content_type), 422, "Invalid", "value can be only updated to")

    assert porch.revision(name).object == before
    assert "refs/tags/app/v1" not in refs(empty_remote.path)
    accepted(to(porch, name, "Draft", "approval", content_type))
    set_condition(porch, name, "True")
    accepted(porch.propose(name))
    assert accepted(to(porch, name, "Published", "approval", content_type))["spec"]["revision"] == 1


def propose_all_the_same(porch: PorchClient, name: str, reason: str = "to show it") -> Object:
    patch = {"metadata": {"annotations": {BYPASS: reason}}, "spec": {"lifecycle": "Proposed"}}
    answer = porch.request("PATCH", porch.path("packagerevisions", name), patch, content_type=MERGE_PATCH)
    proposed: Object = accepted(answer)
    return proposed


def kubectl_doors(kubectl: Kubectl, name: str) -> dict[str, Callable[[], tuple[int, str]]]:
    """Return the ways of proposing with kubectl."""

    def run(*arguments: str, stdin: Object | None = None) -> tuple[int, str]:
        done = kubectl(*arguments, stdin=stdin)
        return done.returncode, done.stderr

    def proposed() -> Object:
        revision: Object = kubectl.json("get", "packagerevision", name)
        revision["spec"]["lifecycle"] = "Proposed"
        return revision

    def applied() -> Object:
        spec = {"packageName": "app", "repository": "deployments", "workspaceName": "v1", "lifecycle": "Proposed"}
        head = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {"name": name}}
        return {**head, "spec": spec}

    merge, operation = (
        '{"spec":{"lifecycle":"Proposed"}}',
        '[{"op":"replace","path":"/spec/lifecycle","value":"Proposed"}]',
    )
    return {
        "replace": lambda: run("replace", "-f", "-", stdin=proposed()),
        "merge patch": lambda: run("patch", "packagerevision", name, "--type=merge", "-p", merge),
        "strategic patch": lambda: run("patch", "packagerevision", name, "-p", merge),
        "json patch": lambda: run("patch", "packagerevision", name, "--type=json", "-p", operation),
        "apply": lambda: run("apply", "-f", "-", stdin=applied()),
        "apply on the server": lambda: run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=applied()),
    }


def test_an_unready_draft_is_proposed_by_no_kubectl_command(porch: PorchClient, kubectl: Kubectl, name: str) -> None:
    doors = kubectl_doors(kubectl, name)
    set_condition(porch, name, "False")
    for door, propose in doors.items():
        code, said = propose()
        assert code, door
        assert f"{UNMET}: two tests fail; set the condition to True in status.conditions" in said, door
        assert porch.revision(name).object["spec"]["lifecycle"] == "Draft", door

    set_condition(porch, name, "True")
    for door, propose in doors.items():
        code, said = propose()
        assert code == 0, (door, said)
        assert porch.revision(name).object["spec"]["lifecycle"] == "Proposed", door
        accepted(porch.set_lifecycle(name, "Draft"))


def test_one_request_may_set_the_condition_and_propose(porch: PorchClient, name: str) -> None:
    patch = {"status": {"conditions": [{"type": GATE, "status": "True"}]}, "spec": {"lifecycle": "Proposed"}}

    answer = porch.request("PATCH", porch.path("packagerevisions", name), patch, content_type=MERGE_PATCH)

    assert accepted(answer)["spec"]["lifecycle"] == "Proposed"


def test_one_request_that_closes_a_gate_does_not_propose(porch: PorchClient, name: str) -> None:
    set_condition(porch, name, "True")
    patch = {"spec": {"lifecycle": "Proposed", "readinessGates": [{"conditionType": GATE}, {"conditionType": "b"}]}}

    refused(
        porch.request("PATCH", porch.path("packagerevisions", name), patch, content_type=MERGE_PATCH),
        422,
        "Invalid",
        "readiness gate 'b' is not met: no condition of this type has been reported",
    )


def test_the_override_needs_the_verb_and_the_annotation(porch: PorchClient, kubectl: Kubectl, name: str) -> None:
    kubectl.ok("create", "rolebinding", "authors", "--clusterrole=porch-author", "--user=ann")
    with_reason = f'{{"metadata":{{"annotations":{{"{BYPASS}":"demo"}}}},"spec":{{"lifecycle":"Proposed"}}}}'
    without = '{"spec":{"lifecycle":"Proposed"}}'
    blank = with_reason.replace("demo", " ")

    def patch(text: str, *arguments: str) -> tuple[int, str]:
        done = kubectl("patch", "packagerevision", name, "--type=merge", "-p", text, *arguments)
        return done.returncode, done.stderr

    code, said = patch(with_reason, "--as=ann")
    assert code
    assert 'needs the verb "bypass-gates" on packagerevisions.porch.kpt.dev, which user "ann" does not hold' in said
    code, said = patch(without)  # as the administrator, who holds every verb
    assert code
    assert UNMET in said
    code, said = patch(blank)
    assert code
    assert "say why the gates are bypassed" in said

    kubectl.ok("create", "role", "bypass", "--verb=bypass-gates", "--resource=packagerevisions.porch.kpt.dev")
    kubectl.ok("create", "rolebinding", "bypass", "--role=bypass", "--user=ann")

    def bypassed() -> None:
        code, said = patch(with_reason, "--as=ann")
        assert code == 0, said

    eventually(bypassed)  # a server in a cluster remembers for ten seconds what it was told that ann may do

    shown = porch.revision(name).object
    assert shown["spec"]["lifecycle"] == "Proposed"
    assert BYPASS not in json.dumps(shown)

    def reported() -> None:
        events = kubectl.json("get", "events", "--field-selector", f"involvedObject.name={name},reason=GatesBypassed")
        assert len(events["items"]) == 1
        (event,) = events["items"]
        assert event["type"] == "Warning"
        assert event["message"] == f"ann bypassed unmet readiness gates ({GATE}): demo"

    eventually(reported)


def test_the_override_publishes_through_approval(porch: PorchClient, name: str, empty_remote: Remote) -> None:
    propose_all_the_same(porch, name)
    body = porch.revision(name).object
    body["spec"]["lifecycle"] = "Published"
    body["metadata"]["annotations"] = {BYPASS: "the customer waits"}

    answer = porch.request("PUT", porch.path("packagerevisions", name, "approval"), body)

    assert accepted(answer)["spec"]["revision"] == 1
    assert BYPASS not in json.dumps(porch.revision(name).object)
    assert "refs/tags/app/v1" in refs(empty_remote.path)


def test_an_annotation_that_is_sent_beforehand_opens_nothing(porch: PorchClient, name: str) -> None:
    path = porch.path("packagerevisions", name)
    before = porch.revision(name).object
    patch = {"metadata": {"annotations": {BYPASS: "later"}}}

    answer = porch.request("PATCH", path, patch, content_type=MERGE_PATCH)

    assert accepted(answer) == before
    assert f"annotation {BYPASS} had no effect and is not stored" in answer.headers["warning"]
    assert porch.revision(name).object == before
    refused(porch.propose(name), 422, "Invalid", UNMET)


def test_a_create_carries_gates_and_conditions_into_its_first_commit(
    porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    """R1; and what it says of the server's own gate is ignored."""
    register(deployments=empty_remote)
    path = porch.path("packagerevisions")
    spec = {
        "packageName": "app",
        "repository": "deployments",
        "workspaceName": "v1",
        "tasks": [{"type": "init", "init": {"description": "d"}}],
        "readinessGates": [{"conditionType": GATE}, {"conditionType": "PackagePipelinePassed"}],
    }
    forged = {"type": "PackagePipelinePassed", "status": "False", "message": "forged"}
    conditions = [{"type": GATE, "status": "False", "reason": "Pending", "message": "not yet"}, forged]
    body = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"namespace": porch.namespace, "annotations": {BYPASS: "x"}},
        "spec": spec,
        "status": {"conditions": conditions},
    }

    made = accepted(porch.request("POST", path, body))

    assert [gate["conditionType"] for gate in made["spec"]["readinessGates"]] == ["PackagePipelinePassed", GATE]
    shown = {each["type"]: each for each in made["status"]["conditions"]}
    assert list(shown) == ["PackagePipelinePassed", GATE, "Rendered"]
    assert shown[GATE] == conditions[0]
    assert shown["PackagePipelinePassed"]["reason"] == "PipelinePassed"
    assert "annotations" not in made["metadata"]
    kptfile = porch.resources(made["metadata"]["name"]).object["spec"]["resources"]["Kptfile"]
    assert GATE in kptfile
    assert "PackagePipelinePassed" not in kptfile


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        pytest.param(
            {"status": {"conditions": [{"type": "a", "status": "true"}]}},
            "status.conditions[0].status",
            'Unsupported value: "true"',
            id="status",
        ),
        pytest.param(
            {"status": {"conditions": [{"status": "True"}]}}, "status.conditions[0].type", "Required", id="no-type"
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "a", "status": "True"}] * 2}},
            "status.conditions[1].type",
            "Duplicate",
            id="twice",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "a", "status": "True", "message": "x" * 40_000}]}},
            "status.conditions[0].message",
            "Too long",
            id="message",
        ),
        pytest.param({"spec": {"readinessGates": [{}]}}, "spec.readinessGates[0].conditionType", "Required", id="gate"),
        pytest.param(
            {"spec": {"readinessGates": [{"conditionType": f"g{n}"} for n in range(101)]}},
            "spec.readinessGates",
            "Too many: 101",
            id="gates",
        ),
    ],
)
def test_gates_and_conditions_that_no_revision_may_have_are_refused(
    porch: PorchClient, name: str, changed: Object, field: str, words: str
) -> None:
    before = porch.revision(name).object

    told = refused(
        porch.request("PATCH", porch.path("packagerevisions", name), changed, content_type=MERGE_PATCH), 422, "Invalid"
    )

    assert [cause["field"] for cause in told["details"]["causes"]] == [field]
    assert words in told["message"]
    assert porch.revision(name).object == before


def test_a_condition_that_a_client_leaves_out_goes_and_the_others_keep_their_order(
    porch: PorchClient, name: str
) -> None:
    path = porch.path("packagerevisions", name)

    def put(*conditions: Object) -> list[tuple[str, str]]:
        body = porch.revision(name).object
        body["status"]["conditions"] = list(conditions)
        shown = accepted(porch.request("PUT", path, body))["status"]["conditions"]
        return [(each["type"], each["status"]) for each in shown]

    a, b, c = ({"type": key, "status": "False"} for key in "abc")
    own = [("PackagePipelinePassed", "True"), ("Rendered", "True")]
    assert put(a, b) == [*own, ("a", "False"), ("b", "False")]
    assert put(c, {**b, "status": "True"}, a) == [*own, ("a", "False"), ("b", "True"), ("c", "False")]
    assert put(b) == [*own, ("b", "False")]
    assert put() == own


def test_a_failed_render_says_which_function_failed_and_keeps_files_only_where_it_is_asked_to(
    porch: PorchClient, kubectl: Kubectl, name: str, empty_remote: Remote
) -> None:
    set_condition(porch, name, "True")
    before = porch.resources(name).object

    told = refused(porch.save(name, {"Kptfile": FAILING}), 422, "Invalid", "Package NOT pushed to remote")
    assert porch.resources(name).object == before
    assert [cause["reason"] for cause in told["details"]["causes"]] == ["FieldValueInvalid", "FunctionFailed"]

    kubectl.ok("annotate", "packagerevision", name, "porch.kpt.dev/push-on-render-failure=true")
    answer = porch.save(name, {"Kptfile": FAILING})
    refused(answer, 422, "Invalid", "Internal error occurred: error rendering package in kpt function pipeline. ")
    assert "Package pushed to remote despite render failure" in answer.message

    kept = porch.resources(name).object
    assert kept["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert "no-such-function" in kept["spec"]["resources"]["Kptfile"]
    condition = porch.revision(name).object["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PackagePipelinePassed", "False")
    assert condition["reason"] == "PipelineFailed"
    refused(porch.propose(name), 422, "Invalid", "readiness gate 'PackagePipelinePassed' is not met", "save it again")
    commit = porch.revision(name).object["status"]["selfLock"]["git"]["commit"]
    eventually(lambda: _is_at(empty_remote, commit))


def _is_at(remote: Remote, commit: str) -> None:
    assert refs(remote.path).get("refs/heads/drafts/app/v1") == commit


@pytest.mark.parametrize(("deployment", "code"), [((), 200), (("deployments",), 422)])
def test_injection_gates_hold_in_deployment_repositories_only(
    porch: PorchClient, register: Register, empty_remote: Remote, deployment: tuple[str, ...], code: int
) -> None:
    """C-15."""
    register(deployments=empty_remote, deployment=deployment)
    gates = [{"conditionType": "config.injection.ConfigMap.settings"}]
    name = accepted(porch.create_revision("deployments", "app", readinessGates=gates))["metadata"]["name"]

    assert porch.propose(name).code == code


@pytest.mark.parametrize("gate", [[{"conditionType": "PVOperationsComplete"}], []], ids=["variant", "others"])
def test_only_a_variants_create_outlives_its_first_render(
    porch: PorchClient, register: Register, empty_remote: Remote, gate: list[Object]
) -> None:
    register(deployments=empty_remote)
    source = accepted(porch.create_revision("deployments", "source"))["metadata"]["name"]
    patch = {"metadata": {"annotations": {"porch.kpt.dev/push-on-render-failure": "true"}}}
    accepted(porch.request("PATCH", porch.path("packagerevisions", source), patch, content_type=MERGE_PATCH))
    refused(porch.save(source, {"Kptfile": FAILING}), 422, "Invalid")
    clone = [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": source}}}}]

    answer = porch.create_revision("deployments", "target", tasks=clone, readinessGates=gate)

    if gate:
        made = accepted(answer)
        assert made["status"]["conditions"][0]["reason"] == "PipelineFailed"
        refused(
            porch.propose(made["metadata"]["name"]), 422, "Invalid", "PackagePipelinePassed", "PVOperationsComplete"
        )
    else:
        refused(answer, 422, "Invalid", "Package NOT pushed to remote")
        assert porch.revision("deployments.target.v1").code == 404


def test_gates_and_conditions_are_applied_from_a_manifest_and_edited_there(
    porch: PorchClient, kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    """Seed 002 part 4, typed as its reader would: the same file, applied to create and applied again to edit."""
    register(deployments=empty_remote)
    condition = {"type": GATE, "status": "False", "reason": "Pending", "message": "not yet"}
    manifest: Object = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": "deployments.app.v1"},
        "spec": {
            "packageName": "app",
            "repository": "deployments",
            "workspaceName": "v1",
            "readinessGates": [{"conditionType": "PackagePipelinePassed"}, {"conditionType": GATE}],
        },
        "status": {"conditions": [condition]},
    }
    for arguments in ((), ("--server-side", "--force-conflicts")):
        manifest["status"]["conditions"] = [condition]
        kubectl.ok("apply", *arguments, "-f", "-", stdin=manifest)
        assert "readiness gate 'acme.com/tested' is not met: not yet" in porch.propose("deployments.app.v1").message

        manifest["status"]["conditions"] = [{**condition, "status": "True"}]
        kubectl.ok("apply", *arguments, "-f", "-", stdin=manifest)
        accepted(porch.propose("deployments.app.v1"))
        accepted(porch.set_lifecycle("deployments.app.v1", "Draft"))


def test_a_condition_can_be_waited_for(porch: PorchClient, kubectl: Kubectl, name: str) -> None:
    set_condition(porch, name, "True")

    for each in ("PackagePipelinePassed", GATE):
        kubectl.ok("wait", f"packagerevision/{name}", f"--for=condition={each}", "--timeout=60s")


def test_applying_gates_again_changes_nothing_although_the_server_adds_its_own(porch: PorchClient, name: str) -> None:
    path = porch.path("packagerevisions", name)
    body: Object = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": name},
        "spec": {"readinessGates": [{"conditionType": "a.Done"}]},
        "status": {"conditions": [{"type": "a.Done", "status": "Unknown"}]},
    }

    def apply(manager: str, applied: Object) -> Answer:
        query = f"{path}?fieldManager={manager}&force={str(manager == 'first').lower()}"
        return porch.request("PATCH", query, applied, content_type=APPLY)

    once = accepted(apply("first", body))
    again = accepted(apply("first", body))

    assert again == once
    assert [gate["conditionType"] for gate in once["spec"]["readinessGates"]] == ["PackagePipelinePassed", "a.Done"]
    other = {**body, "spec": {"readinessGates": [{"conditionType": "b.Done"}]}, "status": {}}
    refused(apply("second", other), 409, "Conflict", "spec.readinessGates")


def test_an_override_by_apply_leaves_no_trace_in_the_object(porch: PorchClient, name: str) -> None:
    body: Object = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": name, "annotations": {BYPASS: "now", "kept": "yes"}},
        "spec": {"lifecycle": "Proposed"},
    }
    path = f"{porch.path('packagerevisions', name)}?fieldManager=tester&force=true"

    shown = accepted(porch.request("PATCH", path, body, content_type=APPLY))

    assert shown["spec"]["lifecycle"] == "Proposed"
    assert shown["metadata"]["annotations"] == {"kept": "yes"}
    assert BYPASS not in json.dumps(shown)


def test_a_create_by_apply_keeps_no_override(porch: PorchClient, register: Register, empty_remote: Remote) -> None:
    register(deployments=empty_remote)
    body: Object = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": "deployments.app.v1", "annotations": {BYPASS: "later"}},
        "spec": {"packageName": "app", "repository": "deployments", "workspaceName": "v1"},
    }
    path = f"{porch.path('packagerevisions', 'deployments.app.v1')}?fieldManager=tester"

    shown = accepted(porch.request("PATCH", path, body, content_type=APPLY))

    assert BYPASS not in json.dumps(shown)

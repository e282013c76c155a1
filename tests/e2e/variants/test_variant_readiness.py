"""What the server does for the controller of package variants, at its own door: gates, in-place upgrades, refusals.

Source: ``variants.md`` 5.13 and 7.1 (R1 to R11); ``decisions.md`` 14 and 16.
"""

from collections.abc import Callable, Iterator

import pytest
from drafts import accepted, refused
from git_server import GitServer
from golden import golden
from manifests import clone_git_task, clone_task
from porch_client import PORCH
from porch_process import PorchProcess
from variant_place import (
    CONFIG_MAP,
    GATE,
    NO_FUNCTION,
    Json,
    Place,
    blueprint,
    condition_of,
    gates_of,
    kptfile,
    new_place,
    owners_of,
    with_blueprint,
)

PENDING = {"type": GATE, "status": "False", "reason": "PVOperationsPending", "message": "waiting"}
DONE = {"type": GATE, "status": "True", "reason": "PVOperationsSucceeded", "message": "done"}
UNFINISHED = f"readiness gate '{GATE}' is not met"
INJECTION = "config.injection.ConfigMap.foo"
GATED = "  readinessGates:\n  - conditionType: PVOperationsComplete\nstatus:\n  conditions:\n  - type: PVOperationsComplete\n    status: 'True'\n"
Make = Callable[..., Place]


@pytest.fixture
def make(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Make]:
    """Make a place of the test's own, with a blueprint of the given files."""
    place = new_place(porch_server, git_http, namespace)
    yield lambda files=None, **more: with_blueprint(place, files, **more)
    place.porch.close()


def create(place: Place, task: Json | None = None, workspace: str = "packagevariant-1", **metadata: object) -> Json:
    """Create a draft as the controller does; return it."""
    body = {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": metadata,
        "spec": {
            "packageName": "bar",
            "repository": "deployments",
            "workspaceName": workspace,
            "readinessGates": [{"conditionType": GATE}],
            "tasks": [task or clone_task("blueprints.foo.v1")],
        },
        "status": {"conditions": [PENDING]},
    }
    return place.create(PORCH, "packagerevisions", body)


def set_condition(place: Place, name: str, condition: Json) -> Json:
    """Replace one condition by a PUT of the main resource."""

    def change(body: Json) -> None:
        others = [one for one in body["status"].get("conditions") or [] if one["type"] != condition["type"]]
        body["status"]["conditions"] = [*others, condition]

    return place.edit(name, change)


@golden("G-G01", "G-G02", "G-G03", "I6")
def test_a_draft_is_proposed_only_with_every_gate_true(make: Make) -> None:
    place = make()
    name = create(place)["metadata"]["name"]
    assert gates_of(place.revision(name)) == ["PackagePipelinePassed", GATE]
    assert condition_of(place.revision(name), "PackagePipelinePassed")["reason"] == "PipelinePassed"

    refused(place.porch.propose(name), 422, "Invalid", UNFINISHED, "waiting")
    set_condition(place, name, {**DONE, "status": "Unknown"})
    refused(place.porch.propose(name), 422, "Invalid", UNFINISHED)
    place.edit(name, lambda body: body["status"]["conditions"].clear())
    refused(place.porch.propose(name), 422, "Invalid", UNFINISHED, "no condition of this type")

    set_condition(place, name, DONE)
    accepted(place.porch.propose(name))
    assert accepted(place.porch.approve(name))["spec"]["revision"] == 1


@golden("G-G02", "G-G03")
def test_a_proposal_whose_gate_closed_is_not_approved(make: Make) -> None:
    """It is proposed by an override, as conditions of proposals do not change."""
    place = make()
    name = create(place)["metadata"]["name"]
    bypass = {"metadata": {"annotations": {"porch.kpt.dev/bypass-gates": "to see"}}, "spec": {"lifecycle": "Proposed"}}
    place.patch(PORCH, "packagerevisions", name, bypass)

    refused(place.porch.approve(name), 422, "Invalid", UNFINISHED)

    assert place.revision(name)["spec"]["lifecycle"] == "Proposed"


@golden("G-G04", "R1", "R8")
def test_what_a_create_says_of_a_gate_wins_over_the_package_it_clones(make: Make) -> None:
    place = make({**blueprint(), "Kptfile": kptfile("foo", GATED)})
    owner = place.stranger()

    made = create(place, labels={"a": "b"}, annotations={"c": "d"}, ownerReferences=[owner])

    name = made["metadata"]["name"]
    assert name == "deployments.bar.packagevariant-1", "it can be computed before"
    assert condition_of(made, GATE)["status"] == "False"
    assert condition_of(place.revision(name), GATE)["reason"] == "PVOperationsPending"
    assert (made["metadata"]["labels"]["a"], made["metadata"]["annotations"]["c"]) == ("b", "d")
    assert owners_of(made) == [owner["uid"]]
    text = place.pushed("bar", "packagevariant-1")["Kptfile"]
    assert text.count(GATE) == 2, "gate and condition are in the first commit, once each"
    assert "PVOperationsPending" in text
    assert "PackagePipelinePassed" not in text


@golden("R8")
def test_a_second_create_of_one_name_is_told_that_it_exists(make: Make) -> None:
    place = make()
    create(place)

    again = place.porch.request("POST", place.porch.path("packagerevisions"), create_body("packagevariant-1"))

    refused(again, 409, "AlreadyExists")


def create_body(workspace: str) -> Json:
    spec = {
        "packageName": "bar",
        "repository": "deployments",
        "workspaceName": workspace,
        "tasks": [clone_task("blueprints.foo.v1")],
    }
    return {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {}, "spec": spec}


@golden("G-G05", "R2")
def test_a_put_of_conditions_gates_or_metadata_does_not_render(make: Make) -> None:
    """The draft's pipeline has a function that would change the package at the next render; nothing is rendered."""
    place = make()
    name = create(place)["metadata"]["name"]
    before = place.files(name)
    passed = condition_of(place.revision(name), "PackagePipelinePassed")

    set_condition(place, name, DONE)
    place.edit(name, lambda body: body["metadata"].setdefault("annotations", {}).update(note="one"))
    place.edit(name, lambda body: body["spec"]["readinessGates"].append({"conditionType": "acme.com/Seen"}))

    after = place.files(name)
    assert {**after, "Kptfile": ""} == {**before, "Kptfile": ""}
    assert condition_of(place.revision(name), "PackagePipelinePassed") == passed
    assert before["Kptfile"].count("Rendered") == after["Kptfile"].count("Rendered")


@golden("G-G05")
def test_a_draft_that_does_not_render_stays_so_when_its_gate_opens(make: Make) -> None:
    broken = f"pipeline:\n  mutators:\n  - image: {NO_FUNCTION['image']}\n"
    place = make({**blueprint(), "Kptfile": kptfile("foo", broken)})
    made = create(place)
    assert condition_of(made, "PackagePipelinePassed")["status"] == "False"

    done = set_condition(place, made["metadata"]["name"], DONE)

    assert condition_of(done, GATE)["status"] == "True"
    assert condition_of(done, "PackagePipelinePassed") == condition_of(made, "PackagePipelinePassed")


@golden("G-G06", "R3")
@pytest.mark.parametrize("deployment", [False, True], ids=["blueprint", "deployment"])
def test_an_unmet_injection_binds_in_deployment_repositories_only(make: Make, deployment: bool) -> None:
    place = make(deployment=deployment)
    name = create(place)["metadata"]["name"]
    set_condition(place, name, DONE)
    place.edit(name, lambda body: body["spec"]["readinessGates"].append({"conditionType": INJECTION}))
    set_condition(place, name, {"type": INJECTION, "status": "False", "reason": "NoResourceSelected"})

    answer = place.porch.propose(name)

    if deployment:
        refused(answer, 422, "Invalid", f"readiness gate '{INJECTION}' is not met")
        return
    accepted(answer)
    assert accepted(place.porch.approve(name))["spec"]["lifecycle"] == "Published"


@golden("R4", "C-35")
def test_a_put_that_appends_an_upgrade_of_itself_upgrades_in_place_and_closes_the_gate(make: Make) -> None:
    place = make()
    name = create(place)["metadata"]["name"]
    set_condition(place, name, DONE)
    place.save(name, note_txt="mine\n")
    new = place.new_upstream(2)
    task = in_place("blueprints.foo.v1", new, name)

    done = place.edit(name, lambda body: body["spec"]["tasks"].append(task))

    assert done["spec"]["tasks"] == [task]
    assert condition_of(done, GATE)["status"] == "False"
    assert done["status"]["upstreamLock"]["git"]["commit"] == place.revision(new)["status"]["selfLock"]["git"]["commit"]
    files = place.files(name)
    assert "size-2" in files["settings.yaml"]
    assert files["note.txt"] == "mine\n"


def in_place(old: str, new: str, local: str) -> Json:
    references = {"oldUpstreamRef": old, "newUpstreamRef": new, "localPackageRevisionRef": local}
    block: Json = {key: {"name": name} for key, name in references.items()}
    return {"type": "upgrade", "upgrade": {**block, "strategy": "resource-merge"}}


@golden("R5", "R11", "C-10")
def test_a_clone_of_a_commit_locks_that_commit(make: Make) -> None:
    """The way in which a branch's head is pinned; the placeholder says where its package is."""
    place = make()
    place.push("blueprints", {"foo": {**blueprint(), "settings.yaml": CONFIG_MAP.replace("small", "head")}})
    place.sync("blueprints")
    place.push("blueprints", {"other": blueprint("other")})
    place.sync("blueprints")
    at = place.revision("blueprints.foo.main")["status"]["selfLock"]["git"]

    task = clone_git_task(at["repo"], at["commit"], at["directory"])
    made = create(place, task)

    lock = made["status"]["upstreamLock"]["git"]
    assert (lock["commit"], lock["directory"].strip("/")) == (at["commit"], "foo")
    assert "head" in place.files(made["metadata"]["name"])["settings.yaml"]


@golden("R11")
def test_a_placeholder_says_the_last_commit_that_touched_its_package(make: Make) -> None:
    place = make()
    before = place.revision("blueprints.foo.main")["status"]["selfLock"]["git"]["commit"]

    place.push("blueprints", {"other": blueprint("other")})
    place.sync("blueprints")

    assert place.revision("blueprints.foo.main")["status"]["selfLock"]["git"]["commit"] == before


@golden("R6")
def test_revisions_are_selected_by_every_field_that_an_index_needs(make: Make) -> None:
    place = make()
    name = create(place, labels={"a": "b"})["metadata"]["name"]

    def found(selector: str) -> set[str]:
        return {item["metadata"]["name"] for item in place.porch.revisions(selector)}

    assert found("spec.repository=deployments,spec.packageName=bar") == {name}
    assert found("spec.workspaceName=packagevariant-1") == {name}
    assert found(f"metadata.name={name}") == {name}
    assert found("spec.lifecycle=Draft") == {name}
    assert found("spec.revision=1") == {"blueprints.foo.v1"}


@golden("R7")
def test_a_save_tells_how_the_render_went_and_only_drafts_are_saved(make: Make) -> None:
    place = make()
    name = create(place)["metadata"]["name"]
    done = accepted(place.porch.save(name, {"note.txt": "x\n"}))
    assert not (done["status"].get("renderStatus") or {}).get("error")

    broken = kptfile("bar", f"pipeline:\n  mutators:\n  - image: {NO_FUNCTION['image']}\n")
    told = refused(place.porch.save(name, {"Kptfile": broken}), 422, "Invalid", NO_FUNCTION["image"])
    assert NO_FUNCTION["image"] in str(told["details"])

    refused(place.porch.save("blueprints.foo.v1", {"note.txt": "x\n"}), 422, "Invalid")


@golden("R9")
def test_lifecycles_metadata_and_refusals_that_the_controller_relies_on(make: Make) -> None:
    place = make()
    name = create(place)["metadata"]["name"]
    set_condition(place, name, DONE)
    place.approve(name)

    refused(place.porch.delete_revision(name), 403, "Forbidden")
    again = create_body("other")
    refused(place.porch.request("POST", place.porch.path("packagerevisions"), again), 409, "AlreadyExists", "copy")
    place.edit(name, lambda body: body["metadata"].setdefault("labels", {}).update(x="y"))
    place.edit(name, lambda body: body["spec"].update(lifecycle="DeletionProposed"))
    assert place.revision(name)["metadata"]["labels"]["x"] == "y"
    place.edit(name, lambda body: body["spec"].update(lifecycle="Published"))
    assert place.revision(name)["spec"]["lifecycle"] == "Published"


@golden("R10")
def test_owners_are_kept_and_uids_stay(make: Make) -> None:
    place = make()
    name = create(place, ownerReferences=[place.stranger()])["metadata"]["name"]
    first = place.revision(name)["metadata"]
    set_condition(place, name, DONE)
    place.approve(name)

    last = place.revision(name)["metadata"]

    assert (first["uid"], first["ownerReferences"]) == (last["uid"], last["ownerReferences"])

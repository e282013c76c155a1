# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Rows 15 to 28 of ``kube-api.md`` 7.2 on package revisions: created, replaced and read one by one."""

import json

from checked_draft import KIND, CheckedDraft, Drafts
from kubectl import Kubectl
from revision_fixtures import draft, drafts, drafts_of_module  # noqa: F401 # found by name

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again\n"


def test_row_15_a_duplicate_exists_already(draft: CheckedDraft) -> None:
    draft.kubectl.create(draft.body())

    again = draft.kubectl("create", "-f", "-", stdin=draft.body())

    assert again.returncode == 1
    assert again.stderr.startswith('Error from server (AlreadyExists): error when creating "STDIN": ')


def test_row_16_a_revision_is_named_after_its_package_whatever_name_it_asks_for(draft: CheckedDraft) -> None:
    body = draft.body(generateName="gen-")
    del body["metadata"]["name"]

    assert draft.kubectl.create(body)["metadata"]["name"] == draft.name
    assert "(AlreadyExists)" in draft.kubectl("create", "-f", "-", stdin=body).stderr


def test_row_17_nothing_is_created_in_a_namespace_that_is_missing(draft: CheckedDraft) -> None:
    refused = draft.kubectl.within("nowhere")("create", "-f", "-", stdin=draft.body(namespace="nowhere"))

    assert refused.returncode == 1
    assert refused.stderr == (
        'Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n'
    )


def test_row_18_the_namespace_of_a_body_is_that_of_the_request(draft: CheckedDraft) -> None:
    refused = draft.porch.request("POST", draft.porch.path("packagerevisions"), draft.body(namespace="other"))

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message == "the namespace of the provided object does not match the namespace sent on the request"


def test_row_19_an_invalid_package_name_is_told_as_the_field_that_it_is(draft: CheckedDraft) -> None:
    body = draft.body()
    body["spec"]["packageName"] = "A_b"
    del body["metadata"]["name"]

    refused = draft.kubectl("create", "-f", "-", stdin=body)

    assert refused.returncode == 1
    assert 'is invalid: spec.packageName: Invalid value: "A_b": ' in refused.stderr


def test_row_20_what_was_read_can_be_written_back_once(draft: CheckedDraft) -> None:
    draft.create(color="red")
    text = draft.kubectl.ok("get", KIND, draft.name, "-o", "yaml").replace("color: red", "color: blue")

    replaced = draft.kubectl.ok("replace", "-f", "-", stdin=text)
    stale = draft.kubectl("replace", "-f", "-", stdin=text)

    assert replaced == f"packagerevision.porch.kpt.dev/{draft.name} replaced\n"
    assert draft.labels()["color"] == "blue"
    assert stale.returncode == 1
    assert stale.stderr.startswith('Error from server (Conflict): error when replacing "STDIN": ')
    assert stale.stderr.endswith(MODIFIED)


def test_row_21_a_put_says_which_version_it_replaces(draft: CheckedDraft) -> None:
    body = draft.create()
    del body["metadata"]["resourceVersion"]

    refused = draft.porch.request("PUT", draft.path, body)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message.endswith("resourceVersion must be specified for an update")
    assert [cause["field"] for cause in refused.object["details"]["causes"]] == ["metadata.resourceVersion"]


def test_row_22_a_forced_replacement_is_another_object(draft: CheckedDraft) -> None:
    draft.create(color="red")
    before = draft.metadata()

    replaced = draft.kubectl("replace", "--force", "-f", "-", stdin=draft.body(labels={"color": "blue"}))

    assert replaced.returncode == 0, replaced.stderr
    after = draft.metadata()
    assert after["labels"]["color"] == "blue"
    assert int(after["resourceVersion"]) > int(before["resourceVersion"]) + 1, "it was deleted, and made again"


def test_row_23_a_put_for_another_object_of_the_name_is_a_conflict(draft: CheckedDraft) -> None:
    body = draft.create()
    body["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"

    refused = draft.porch.request("PUT", draft.path, body)

    assert (refused.code, refused.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000" in refused.message


def test_row_24_an_apply_that_changes_nothing_writes_nothing(draft: CheckedDraft) -> None:
    draft.kubectl.apply(draft.body())
    before = draft.metadata()["resourceVersion"]

    assert draft.kubectl.apply(draft.body()).endswith(" unchanged\n")
    assert draft.apply(draft.body(), "--field-manager=m", "--force-conflicts").returncode == 0
    applied = draft.metadata()["resourceVersion"]
    assert draft.apply(draft.body(), "--field-manager=m").returncode == 0

    assert int(applied) > int(before), "another manager is a change"
    assert draft.metadata()["resourceVersion"] == applied


def test_row_26_a_list_as_json_has_kinds_and_a_resource_version(drafts: Drafts) -> None:
    drafts.of("one").create()
    drafts.of("two").create()

    printed = drafts.kubectl.json("get", "packagerevisions")["items"]
    answered = json.loads(drafts.kubectl.ok("get", "--raw", drafts.path()))

    assert [(item["apiVersion"], item["kind"]) for item in printed] == [
        ("porch.kpt.dev/v1alpha1", "PackageRevision")
    ] * 2
    assert (answered["apiVersion"], answered["kind"]) == ("porch.kpt.dev/v1alpha1", "PackageRevisionList")
    newest = max(int(item["metadata"]["resourceVersion"]) for item in printed)
    assert int(answered["metadata"]["resourceVersion"]) >= newest > 0


def test_row_27_what_is_not_found_may_be_ignored(draft: CheckedDraft) -> None:
    draft.create()

    missed = draft.kubectl("get", KIND, draft.name, "absent", "-o", "name")
    ignored = draft.kubectl.ok("get", KIND, draft.name, "absent", "-o", "name", "--ignore-not-found")

    assert missed.returncode == 1
    assert missed.stderr == 'Error from server (NotFound): packagerevisions.porch.kpt.dev "absent" not found\n'
    assert missed.stdout == ignored == f"packagerevision.porch.kpt.dev/{draft.name}\n"


def test_row_28_all_namespaces_are_read_and_an_absent_one_is_empty(draft: CheckedDraft, kubectl: Kubectl) -> None:
    draft.create()

    everywhere = [line.split() for line in kubectl.ok("get", "packagerevisions", "--all-namespaces").splitlines()]
    nowhere = kubectl.within("none")("get", "packagerevisions")

    assert everywhere[0][:3] == ["NAMESPACE", "NAME", "PACKAGE"]
    assert [draft.kubectl.namespace, draft.name] in [row[:2] for row in everywhere]
    assert (nowhere.returncode, nowhere.stdout) == (0, "")
    assert nowhere.stderr == "No resources found in none namespace.\n"

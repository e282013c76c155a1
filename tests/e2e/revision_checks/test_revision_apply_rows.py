# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Rows 57 to 74 of ``kube-api.md`` 7.2 on package revisions: patches and applies.

Row 60 differs from custom resources on purpose: strategic patches of Porch's kinds are taken as merge patches
(``kube-api.md`` 1.9), which is what ``kubectl patch`` sends by default.
"""

import json
import stat
from pathlib import Path

import pytest
import yaml
from checked_draft import KIND, LAST_APPLIED, CheckedDraft
from revision_fixtures import draft, drafts_of_module  # noqa: F401 # found by name


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that turns "before" into "after"."""
    program = tmp_path / "editor"
    program.write_text('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KUBE_EDITOR", str(program))


def test_row_57_a_merge_patch_sets_and_removes(draft: CheckedDraft) -> None:
    draft.create(k="v", gone="x")

    assert draft.patch('{"metadata":{"labels":{"k":"w","gone":null,"new":"n"}}}').returncode == 0
    assert draft.labels() == {"k": "w", "new": "n"}


def test_row_58_a_json_patch_adds_removes_and_tests(draft: CheckedDraft) -> None:
    draft.create(k="v", gone="x")
    operations = [
        {"op": "add", "path": "/metadata/labels/new", "value": "n"},
        {"op": "remove", "path": "/metadata/labels/gone"},
    ]

    changed = draft.patch(json.dumps(operations), kind="json")
    refused = draft.patch('[{"op":"test","path":"/metadata/labels/k","value":"other"}]', kind="json")

    assert changed.returncode == 0, changed.stderr
    assert draft.labels() == {"k": "v", "new": "n"}
    assert refused.returncode == 1
    assert "invalid" in refused.stderr


def test_row_60_the_default_patch_is_taken_as_a_merge(draft: CheckedDraft) -> None:
    draft.create(k="v")

    assert draft.patch('{"metadata":{"labels":{"new":"n"}}}', kind="strategic").returncode == 0
    assert draft.labels() == {"k": "v", "new": "n"}


def test_row_61_labels_and_annotations_come_and_go(draft: CheckedDraft) -> None:
    draft.create()
    draft.label("k=1")
    refused = draft.kubectl("label", KIND, draft.name, "k=2")
    draft.label("k=2", "--overwrite")
    draft.kubectl.ok("annotate", KIND, draft.name, "note=text")
    metadata = draft.metadata()
    draft.label("k-")

    assert refused.returncode == 1
    assert "--overwrite is false" in refused.stderr
    assert (metadata["labels"]["k"], metadata["annotations"]["note"]) == ("2", "text")
    assert "k" not in draft.labels()


@pytest.mark.usefixtures("editor")
def test_row_62_an_editor_changes_a_revision(draft: CheckedDraft) -> None:
    draft.create(color="before")

    assert draft.kubectl.ok("edit", KIND, draft.name) == f"packagerevision.porch.kpt.dev/{draft.name} edited\n"
    assert draft.labels()["color"] == "after"
    assert "kubectl-edit" in draft.managers()


def test_row_63_apply_creates_changes_leaves_and_prunes(draft: CheckedDraft) -> None:
    bodies = [draft.body(labels=labels) for labels in ({"k": "1", "gone": "x"}, {"k": "2", "gone": "x"}, {"k": "2"})]
    first, second, third = bodies
    said = [draft.kubectl.apply(body).split()[1] for body in (first, second, second, third)]

    assert said == ["created", "configured", "unchanged", "configured"]
    assert draft.labels() == {"k": "2"}


def test_row_64_a_server_side_apply_creates_and_says_who(draft: CheckedDraft) -> None:
    done = draft.apply(draft.body(labels={"k": "v"}), "-v=8")
    entry = draft.managers()["kubectl"]

    assert "serverside-applied" in done.stdout
    assert "201 Created" in done.stderr
    assert (entry["operation"], entry["fieldsType"]) == ("Apply", "FieldsV1")
    assert entry["apiVersion"] == "porch.kpt.dev/v1alpha1"
    assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {"f:k": {}}}
    assert "f:lifecycle" in entry["fieldsV1"]["f:spec"]
    assert "managedFields" not in yaml.safe_load(draft.kubectl.ok("get", KIND, draft.name, "-o", "yaml"))["metadata"]


def test_row_65_a_conflict_names_the_field_and_force_takes_it(draft: CheckedDraft) -> None:
    draft.apply(draft.body(), "--field-manager=first")
    refused = draft.apply(draft.body(lifecycle="Proposed"), "--field-manager=second")
    forced = draft.apply(draft.body(lifecycle="Proposed"), "--field-manager=second", "--force-conflicts")

    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "first": .spec.lifecycle' in refused.stderr
    assert forced.returncode == 0, forced.stderr
    assert draft.get()["spec"]["lifecycle"] == "Proposed"
    owned = {who: "f:lifecycle" in entry["fieldsV1"]["f:spec"] for who, entry in draft.managers().items()}
    assert owned == {"first": False, "second": True}


def test_row_66_what_a_manager_drops_goes_unless_others_have_it(draft: CheckedDraft) -> None:
    def applied(manager: str, **labels: str) -> None:
        done = draft.apply(draft.body(labels=labels), f"--field-manager={manager}")
        assert done.returncode == 0, done.stderr

    applied("first", own="1", shared="2", kept="3")
    applied("second", shared="2")
    applied("first", kept="3")

    assert draft.labels() == {"shared": "2", "kept": "3"}
    assert draft.managers()["first"]["fieldsV1"]["f:metadata"] == {"f:labels": {"f:kept": {}}}


def test_row_68_client_side_apply_turns_into_server_side_without_conflict(draft: CheckedDraft) -> None:
    draft.kubectl.apply(draft.body(labels={"k": "1", "gone": "x"}))
    moved = draft.apply(draft.body(labels={"k": "2"}))

    assert moved.returncode == 0, moved.stderr
    assert draft.labels() == {"k": "2"}, "kubectl owns what it applied before"
    assert draft.managers()["kubectl"]["operation"] == "Apply"
    assert "kubectl-client-side-apply" not in draft.managers()


@pytest.mark.usefixtures("editor")
def test_row_69_the_last_applied_configuration_is_seen_and_edited(draft: CheckedDraft) -> None:
    draft.kubectl.apply(draft.body(labels={"color": "before"}))
    what = f"{KIND}/{draft.name}"
    seen = draft.kubectl.ok("apply", "view-last-applied", what, "-o", "json")
    draft.kubectl.ok("apply", "edit-last-applied", what)

    assert json.loads(seen)["metadata"]["labels"] == {"color": "before"}
    edited = json.loads(draft.metadata()["annotations"][LAST_APPLIED])
    assert edited["metadata"]["labels"] == {"color": "after"}


def test_row_70_diff_shows_and_does_not_write(draft: CheckedDraft) -> None:
    draft.kubectl.apply(draft.body(labels={"color": "before"}))
    before = draft.metadata()["resourceVersion"]
    differs = draft.kubectl("diff", "-f", "-", stdin=draft.body(labels={"color": "after"}))
    same = draft.kubectl("diff", "-f", "-", stdin=draft.body(labels={"color": "before"}))

    assert (differs.returncode, same.returncode) == (1, 0), differs.stderr + same.stderr
    assert "+    color: after" in differs.stdout
    assert draft.metadata()["resourceVersion"] == before


def test_row_71_a_dry_run_leaves_everything_as_it_is(draft: CheckedDraft) -> None:
    draft.kubectl.apply(draft.body(labels={"k": "v"}))
    before = draft.metadata()["resourceVersion"]
    other, dry = draft.body(labels={"k": "w"}), "--dry-run=server"
    draft.kubectl.ok("apply", dry, "-f", "-", stdin=other)
    draft.kubectl.ok("apply", dry, "--server-side", "--force-conflicts", "-f", "-", stdin=other)
    draft.kubectl.ok("delete", dry, KIND, draft.name)
    never = draft.body()
    never["metadata"]["name"], never["spec"]["packageName"] = "deployments.never.v1", "never"
    draft.kubectl.ok("create", dry, "-f", "-", stdin=never)

    assert draft.metadata()["resourceVersion"] == before
    assert draft.kubectl("get", KIND, "deployments.never.v1").returncode == 1


def test_row_72_an_unknown_field_is_refused_told_or_dropped(draft: CheckedDraft) -> None:
    wanted = draft.body()
    wanted["spec"]["lifecyc"] = "Draft"
    strict = draft.kubectl("create", "-f", "-", stdin=wanted)
    applied = draft.apply(wanted)
    warned = draft.kubectl("create", "-f", "-", "--validate=warn", stdin=wanted)
    draft.kubectl.ok("delete", KIND, draft.name)
    silent = draft.kubectl("create", "-f", "-", "--validate=ignore", stdin=wanted)

    assert strict.returncode == 1
    assert 'strict decoding error: unknown field "spec.lifecyc"' in strict.stderr
    assert applied.returncode == 1
    assert ".spec.lifecyc: field not declared in schema" in applied.stderr
    assert (warned.returncode, warned.stderr) == (0, 'Warning: unknown field "spec.lifecyc"\n')
    assert (silent.returncode, silent.stderr) == (0, "")


def test_row_73_a_repeated_key_is_refused(draft: CheckedDraft) -> None:
    text = yaml.safe_dump(draft.body()).replace("lifecycle: Draft", "lifecycle: Draft\n  lifecycle: Proposed").encode()
    query = "fieldManager=m&fieldValidation=Strict"
    collection = draft.porch.path("packagerevisions")

    refused = draft.porch.request("POST", f"{collection}?{query}", text, content_type="application/yaml")
    unapplied = draft.porch.request("PATCH", f"{draft.path}?{query}", text, content_type="application/apply-patch+yaml")

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert "lifecycle" in refused.message
    assert (unapplied.code, unapplied.reason) == (400, "BadRequest")
    assert draft.porch.revision(draft.name).code == 404


def test_row_74_the_oldest_of_many_updaters_are_put_together(draft: CheckedDraft) -> None:
    draft.create()
    for number in range(12):  # named so that they sort as they came: entries of one second are in the order of names
        patch = {"metadata": {"labels": {f"k{number}": "v"}}}
        query = f"?fieldManager=m{number:02}"
        answer = draft.porch.request("PATCH", draft.path + query, patch, content_type="application/merge-patch+json")
        assert answer.code == 200, answer.body

    found = draft.managers()
    assert len(found) == 10
    assert "ancient-changes" in found
    # Nine are left; whoever created it may be one of them.
    assert {f"m{number:02}" for number in range(4, 12)} <= set(found)
    assert len(draft.labels()) == 12

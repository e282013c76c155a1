"""Patches and applies with real kubectl: rows 24, 25 and 57 to 74 of ``kube-api.md`` 7.2."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually
from kubectl import Kubectl
from porch_client import PorchClient
from porch_process import PorchProcess

Object = dict[str, Any]
GROUP = "apply.porch.test"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def shelves() -> Object:
    """Return the definition of a custom resource whose items are told apart by name."""
    item = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}
    listed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    books = {"type": "array", "items": {**item, "required": ["name"]}, **listed}
    spec = {"type": "object", "properties": {"books": books, "color": {"type": "string"}}}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shelves.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Shelf", "plural": "shelves", "singular": "shelf", "listKind": "ShelfList"},
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def _shelves(porch_server: PorchProcess) -> None:
    admin = Kubectl(porch_server.kubeconfig)
    admin.apply(shelves())
    admin.ok("wait", "--for=condition=Established", f"crd/shelves.{GROUP}", "--timeout=60s")


@pytest.fixture
def shelf(_shelves: None, kubectl: Kubectl) -> Callable[..., Object]:
    """Return a builder of custom resources whose kind is served."""

    def build(**spec: Any) -> Object:
        return {"apiVersion": f"{GROUP}/v1", "kind": "Shelf", "metadata": {"name": "a"}, "spec": spec}

    return build


def config_map(data: Object | None = None, **metadata: Any) -> Object:
    """Build a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}, "data": data or {"k": "v"}}


def server_side(kubectl: Kubectl, wanted: Object, *arguments: str) -> Any:
    """Apply on the server, whatever comes of it."""
    return kubectl("apply", "--server-side", "-f", "-", *arguments, stdin=wanted)


def managers(kubectl: Kubectl, what: str = "configmap") -> dict[str, Object]:
    """Return the managed fields of ``what/a`` by manager."""
    obj = kubectl.json("get", what, "a", "--show-managed-fields")
    return {entry["manager"]: entry for entry in obj["metadata"].get("managedFields", [])}


def version(kubectl: Kubectl, what: str = "configmap") -> str:
    """Return the resourceVersion of ``what/a``."""
    return kubectl.ok("get", what, "a", "-o=jsonpath={.metadata.resourceVersion}")


def test_row_24_an_apply_that_changes_nothing_writes_nothing(kubectl: Kubectl) -> None:
    kubectl.apply(config_map())
    before = version(kubectl)

    assert kubectl.apply(config_map()) == "configmap/a unchanged\n"
    server_side(kubectl, config_map({"k": "v"}, name="b"), "--field-manager=m")
    on_server = kubectl.ok("get", "configmap", "b", "-o=jsonpath={.metadata.resourceVersion}")
    server_side(kubectl, config_map({"k": "v"}, name="b"), "--field-manager=m")

    assert version(kubectl) == before
    assert kubectl.ok("get", "configmap", "b", "-o=jsonpath={.metadata.resourceVersion}") == on_server


def test_row_25_a_changed_spec_counts_as_generation_a_label_does_not(
    kubectl: Kubectl, shelf: Callable[..., Object]
) -> None:
    kubectl.apply(shelf(color="red"))
    kubectl.ok("label", "shelf", "a", "x=y")
    labelled = kubectl.json("get", "shelf", "a")["metadata"]["generation"]
    kubectl.ok("patch", "shelf", "a", "--type=merge", '--patch={"spec":{"color":"blue"}}')

    assert labelled == 1
    assert kubectl.json("get", "shelf", "a")["metadata"]["generation"] == 2


def test_row_57_a_merge_patch_sets_and_removes(kubectl: Kubectl) -> None:
    kubectl.create(config_map({"k": "v", "gone": "x"}))
    kubectl.ok("patch", "configmap", "a", "--type=merge", '--patch={"data":{"k":"w","gone":null,"new":"n"}}')

    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "w", "new": "n"}


def test_row_58_a_json_patch_adds_removes_and_tests(kubectl: Kubectl) -> None:
    kubectl.create(config_map({"k": "v", "gone": "x"}))
    operations = [{"op": "add", "path": "/data/new", "value": "n"}, {"op": "remove", "path": "/data/gone"}]
    kubectl.ok("patch", "configmap", "a", "--type=json", f"--patch={json.dumps(operations)}")
    test = [{"op": "test", "path": "/data/k", "value": "other"}]
    refused = kubectl("patch", "configmap", "a", "--type=json", f"--patch={json.dumps(test)}")

    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "v", "new": "n"}
    assert refused.returncode == 1
    assert "Invalid" in refused.stderr or "invalid" in refused.stderr


@pytest.mark.standalone("ConfigMaps are kube-apiserver's there")
def test_row_59_a_config_map_is_patched_strategically_by_default(kubectl: Kubectl) -> None:
    kubectl.create(config_map({"k": "v"}, finalizers=["porch.test/one"]))
    patch = {"metadata": {"finalizers": ["porch.test/two"]}, "data": {"new": "n"}}
    sent = kubectl.ok("patch", "configmap", "a", f"--patch={json.dumps(patch)}", "-v=8")

    found = kubectl.json("get", "configmap", "a")
    assert sorted(found["metadata"]["finalizers"]) == ["porch.test/one", "porch.test/two"], "a set merges"
    assert found["data"] == {"k": "v", "new": "n"}
    assert "patched" in sent
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["porch.test/one", "porch.test/two"]}}
    kubectl.ok("patch", "configmap", "a", f"--patch={json.dumps(drop)}")
    assert "finalizers" not in kubectl.json("get", "configmap", "a")["metadata"]


def test_row_60_a_custom_resource_takes_no_strategic_patch(kubectl: Kubectl, shelf: Callable[..., Object]) -> None:
    kubectl.apply(shelf(color="red"))
    path = f"/apis/{GROUP}/v1/namespaces/{kubectl.namespace}/shelves/a"
    refused = kubectl("patch", "shelf", "a", '--patch={"spec":{"color":"blue"}}')

    assert refused.returncode == 1
    assert "application/strategic-merge-patch+json is not supported by" in refused.stderr
    assert json.loads(kubectl.ok("get", "--raw", path))["spec"] == {"color": "red"}


def test_row_61_labels_and_annotations_come_and_go(kubectl: Kubectl) -> None:
    kubectl.create(config_map())
    kubectl.ok("label", "configmap", "a", "k=1")
    refused = kubectl("label", "configmap", "a", "k=2")
    kubectl.ok("label", "configmap", "a", "k=2", "--overwrite")
    kubectl.ok("annotate", "configmap", "a", "note=text")
    metadata = kubectl.json("get", "configmap", "a")["metadata"]
    kubectl.ok("label", "configmap", "a", "k-")

    assert refused.returncode == 1
    assert "--overwrite is false" in refused.stderr
    assert (metadata["labels"], metadata["annotations"]) == ({"k": "2"}, {"note": "text"})
    assert "labels" not in kubectl.json("get", "configmap", "a")["metadata"]
    assert {"kubectl-label", "kubectl-annotate"} & set(managers(kubectl)) == {"kubectl-annotate"}


def test_row_62_an_editor_changes_an_object(kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl.create(config_map({"k": "before"}))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))

    assert kubectl.ok("edit", "configmap", "a") == "configmap/a edited\n"
    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "after"}
    assert "kubectl-edit" in managers(kubectl)


def test_row_63_apply_creates_changes_leaves_and_prunes(kubectl: Kubectl) -> None:
    said = [kubectl.apply(config_map({"k": "1", "gone": "x"}))]
    said.append(kubectl.apply(config_map({"k": "2", "gone": "x"})))
    said.append(kubectl.apply(config_map({"k": "2", "gone": "x"})))
    said.append(kubectl.apply(config_map({"k": "2"})))

    assert [line.split()[1] for line in said] == ["created", "configured", "unchanged", "configured"]
    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "2"}


def test_row_64_a_server_side_apply_creates_and_says_who(kubectl: Kubectl) -> None:
    done = server_side(kubectl, config_map(), "-v=8")
    entry = managers(kubectl)["kubectl"]

    assert "configmap/a serverside-applied" in done.stdout
    assert "201 Created" in done.stderr
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "v1", "FieldsV1")
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}}
    assert "managedFields" not in yaml.safe_load(kubectl.ok("get", "configmap", "a", "-o", "yaml"))["metadata"]
    raw = kubectl.ok("get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps/a")
    assert json.loads(raw)["metadata"]["managedFields"] == [entry]


def test_row_65_a_conflict_names_the_field_and_force_takes_it(kubectl: Kubectl, shelf: Callable[..., Object]) -> None:
    server_side(kubectl, shelf(color="red"), "--field-manager=first")
    refused = server_side(kubectl, shelf(color="blue"), "--field-manager=second")
    forced = server_side(kubectl, shelf(color="blue"), "--field-manager=second", "--force-conflicts")

    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "first": .spec.color' in refused.stderr
    assert forced.returncode == 0
    assert set(managers(kubectl, "shelf")) == {"second"}
    assert kubectl.json("get", "shelf", "a")["spec"] == {"color": "blue"}


def test_row_66_what_a_manager_drops_goes_unless_others_have_it(kubectl: Kubectl) -> None:
    server_side(kubectl, config_map({"own": "1", "shared": "2", "kept": "3"}), "--field-manager=first")
    server_side(kubectl, config_map({"shared": "2"}), "--field-manager=second")
    server_side(kubectl, config_map({"kept": "3"}), "--field-manager=first")

    assert kubectl.json("get", "configmap", "a")["data"] == {"shared": "2", "kept": "3"}
    assert managers(kubectl)["first"]["fieldsV1"] == {"f:data": {"f:kept": {}}}


def test_row_67_items_of_a_list_map_have_managers_of_their_own(kubectl: Kubectl, shelf: Callable[..., Object]) -> None:
    server_side(kubectl, shelf(books=[{"name": "x", "size": 1}, {"name": "y"}]), "--field-manager=first")
    server_side(kubectl, shelf(books=[{"name": "z", "size": 3}]), "--field-manager=second")
    refused = server_side(kubectl, shelf(books=[{"name": "x", "size": 2}]), "--field-manager=second")
    server_side(kubectl, shelf(books=[{"name": "y"}]), "--field-manager=first")

    assert refused.returncode == 1
    assert 'conflict with "first": .spec.books[name="x"].size' in refused.stderr
    assert kubectl.json("get", "shelf", "a")["spec"]["books"] == [{"name": "y"}, {"name": "z", "size": 3}]
    owned = managers(kubectl, "shelf")["second"]["fieldsV1"]
    assert owned == {"f:spec": {"f:books": {'k:{"name":"z"}': {".": {}, "f:name": {}, "f:size": {}}}}}


def test_row_68_client_side_apply_turns_into_server_side_without_conflict(kubectl: Kubectl) -> None:
    kubectl.apply(config_map({"k": "1", "gone": "x"}))
    moved = server_side(kubectl, config_map({"k": "2"}))

    assert moved.returncode == 0, moved.stderr
    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "2"}, "kubectl owns what it applied before"
    assert managers(kubectl)["kubectl"]["operation"] == "Apply"
    assert "kubectl-client-side-apply" not in managers(kubectl)


def test_row_69_the_last_applied_configuration_is_seen_and_edited(
    kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl.apply(config_map({"k": "before"}))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    seen = kubectl.ok("apply", "view-last-applied", "configmap/a", "-o", "json")
    kubectl.ok("apply", "edit-last-applied", "configmap/a")

    assert json.loads(seen)["data"] == {"k": "before"}
    annotations = kubectl.json("get", "configmap", "a")["metadata"]["annotations"]
    assert json.loads(annotations[LAST_APPLIED])["data"] == {"k": "after"}


def test_row_70_diff_shows_and_does_not_write(kubectl: Kubectl) -> None:
    kubectl.apply(config_map({"k": "before"}))
    before = version(kubectl)
    differs = kubectl("diff", "-f", "-", stdin=config_map({"k": "after"}))
    on_server = kubectl("diff", "--server-side", "-f", "-", stdin=config_map({"k": "after"}))
    same = kubectl("diff", "-f", "-", stdin=config_map({"k": "before"}))

    assert (differs.returncode, on_server.returncode, same.returncode) == (1, 1, 0)
    assert "+  k: after" in differs.stdout
    assert version(kubectl) == before


def test_row_71_a_dry_run_leaves_everything_as_it_is(kubectl: Kubectl) -> None:
    kubectl.apply(config_map({"k": "v"}))
    before = version(kubectl)
    kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=config_map({"k": "w"}))
    kubectl.ok(
        "apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", stdin=config_map({"k": "w"})
    )
    kubectl.ok("apply", "--dry-run=server", "--server-side", "-f", "-", stdin=config_map({"k": "w"}, name="never"))
    kubectl.ok("create", "--dry-run=server", "-f", "-", stdin=config_map({"k": "w"}, name="never"))
    kubectl.ok("delete", "--dry-run=server", "configmap", "a")

    assert version(kubectl) == before
    assert kubectl("get", "configmap", "never").returncode == 1


def test_row_72_an_unknown_field_is_refused_told_or_dropped(kubectl: Kubectl) -> None:
    wanted = {**config_map(), "dat": {"k": "v"}}
    strict = kubectl("create", "-f", "-", stdin=wanted)
    warned = kubectl("create", "-f", "-", "--validate=warn", stdin=wanted)
    kubectl.ok("delete", "configmap", "a")
    silent = kubectl("create", "-f", "-", "--validate=ignore", stdin=wanted)
    applied = server_side(kubectl, wanted)

    assert strict.returncode == 1
    assert 'strict decoding error: unknown field "dat"' in strict.stderr
    assert (warned.returncode, warned.stderr) == (0, 'Warning: unknown field "dat"\n')
    assert (silent.returncode, silent.stderr) == (0, "")
    assert applied.returncode == 1
    assert ".dat: field not declared in schema" in applied.stderr


def test_row_73_a_repeated_key_is_refused(kubectl: Kubectl, porch: PorchClient) -> None:
    text = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: "1", k: "2"}\n'
    maps = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    # kubectl 1.32 sends what it reads as JSON, in which the last of two keys has won: only YAML shows both.
    refused = porch.request("POST", f"{maps}?fieldValidation=Strict", text, content_type="application/yaml")
    query = "fieldManager=m&fieldValidation=Strict"
    unapplied = porch.request("PATCH", f"{maps}/a?{query}", text, content_type="application/apply-patch+yaml")

    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert 'duplicate field "k"' in refused.message or 'key "k" already set' in refused.message
    assert (unapplied.code, unapplied.reason) == (400, "BadRequest")
    assert kubectl("get", "configmap", "a").returncode == 1


def test_row_74_the_oldest_of_many_updaters_are_put_together(kubectl: Kubectl) -> None:
    kubectl.create(config_map())
    for number in range(12):  # named so that they sort as they came: entries of one second are in the order of names
        patch = json.dumps({"data": {f"k{number}": "v"}})
        kubectl.ok("patch", "configmap", "a", "--type=merge", f"--patch={patch}", f"--field-manager=m{number:02}")

    found = managers(kubectl)
    assert len(found) == 10
    assert "ancient-changes" in found
    assert {f"m{number:02}" for number in range(3, 12)} <= set(found)
    eventually(lambda: len(kubectl.json("get", "configmap", "a")["data"]) == 13)

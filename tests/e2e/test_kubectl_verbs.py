"""Plain kubectl without extra flags on every kind that is served: create, apply, replace, edit, patch, wait, explain."""

import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from drafts import draft
from eventually import eventually
from kubectl import Kubectl
from manifests import Register, credentials, init_task, package_revision, repository
from porch_client import PORCH, PorchClient
from porch_process import PorchProcess
from remotes import Remote

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}


def test_create_subcommands_send_protobuf_and_are_understood(kubectl: Kubectl) -> None:
    kubectl.ok("create", "configmap", "a", "--from-literal=k=v")
    kubectl.ok("create", "secret", "generic", "s", "--from-literal=password=hidden")
    kubectl.ok("create", "namespace", f"{kubectl.namespace}-more")

    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "v"}
    assert kubectl.json("get", "secret", "s")["data"] == {"password": "aGlkZGVu"}
    again = kubectl("create", "configmap", "a")
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
    kubectl.ok("delete", "namespace", f"{kubectl.namespace}-more")


def test_apply_creates_changes_prunes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "created" in kubectl.apply({**CONFIG_MAP, "data": {"k": "v", "old": "x"}})
    assert "configured" in kubectl.apply({**CONFIG_MAP, "data": {"k": "w"}})
    version = kubectl.json("get", "configmap", "a")["metadata"]["resourceVersion"]

    assert "unchanged" in kubectl.apply({**CONFIG_MAP, "data": {"k": "w"}})

    found = kubectl.json("get", "configmap", "a")
    assert found["data"] == {"k": "w"}
    assert found["metadata"]["resourceVersion"] == version


def test_a_list_of_objects_is_applied(kubectl: Kubectl) -> None:
    """kubectl validates the kind List by OpenAPI v2 in protobuf, whatever the server says about v3."""
    items = [CONFIG_MAP, {**CONFIG_MAP, "metadata": {"name": "b"}}]

    kubectl.ok("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": items})

    assert len(kubectl.json("get", "configmaps", "a", "b")["items"]) == 2


def test_replace_takes_what_get_gave_and_refuses_a_stale_copy(kubectl: Kubectl) -> None:
    kubectl.apply(CONFIG_MAP)
    copy = kubectl.json("get", "configmap", "a")
    kubectl.replace({**copy, "data": {"k": "new"}})

    stale = kubectl("replace", "-f", "-", stdin=copy)

    assert stale.returncode == 1
    assert "the object has been modified" in stale.stderr
    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "new"}


def test_a_package_revision_is_edited_in_an_editor(
    kubectl: Kubectl, register: Register, empty_remote: Remote, tmp_path: Path
) -> None:
    register(deployments=empty_remote)
    kubectl.create(package_revision("deployments", "app", "v1", init_task()))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/lifecycle: Draft/lifecycle: Proposed/' \"$1\"\n")
    editor.chmod(0o755)

    done = subprocess.run(
        kubectl.command("edit", "packagerevision", "deployments.app.v1"),
        env={**os.environ, "KUBE_EDITOR": str(editor)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert kubectl.json("get", "packagerevision", "deployments.app.v1")["spec"]["lifecycle"] == "Proposed"


def test_a_package_revision_is_labelled_annotated_patched_and_selected(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    kubectl.create(package_revision("deployments", "app", "v1", init_task()))
    name = "deployments.app.v1"
    kubectl.ok("label", "packagerevision", name, "team=blue")
    kubectl.ok("annotate", "packagerevisions.v1alpha1.porch.kpt.dev", name, "note=kept")
    kubectl.ok(
        "patch", "packagerevision", name, "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/a","value":"b"}]'
    )

    assert kubectl.ok("get", "packagerevisions", "-l", "team=blue,a=b", "-o", "name").strip().endswith(name)
    assert kubectl.ok("get", "packagerevisions", "-l", "team!=blue", "-o", "name") == ""
    found = kubectl.json("get", "packagerevision", name)
    assert found["metadata"]["annotations"]["note"] == "kept"
    selected = kubectl.ok(
        "get", "packagerevisions", "--field-selector=spec.lifecycle=Draft,spec.packageName=app", "-o", "name"
    )
    assert selected.strip().endswith(name)
    unknown = kubectl("get", "packagerevisions", "--field-selector=spec.nonsense=x")
    assert unknown.returncode == 1
    assert "not a known field selector" in unknown.stderr


def test_a_dry_run_writes_nothing(kubectl: Kubectl, register: Register, empty_remote: Remote) -> None:
    register(deployments=empty_remote)
    revision = package_revision("deployments", "app", "v1", init_task())

    done = kubectl("create", "--dry-run=server", "-f", "-", stdin=revision)

    assert done.returncode == 0, done.stderr
    assert kubectl.ok("get", "packagerevisions", "-o", "name") == ""


def test_an_unknown_field_is_refused_unless_validation_is_off(kubectl: Kubectl) -> None:
    body = {**CONFIG_MAP, "nonsense": True}
    refused = kubectl("create", "-f", "-", stdin=body)
    warned = kubectl("create", "--validate=warn", "-f", "-", stdin=body)

    assert refused.returncode == 1
    assert 'unknown field "nonsense"' in refused.stderr
    assert warned.returncode == 0
    assert 'Warning: unknown field "nonsense"' in warned.stderr


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("packagerevisions.spec.tasks", "<[]Object>"),
        ("packagerevisions.spec.lifecycle", "string"),
        ("packagerevisionresources.spec.resources", "map[string]string"),
        ("repositories.spec.git.branch", "string"),
        ("secrets.stringData", "map[string]string"),
        ("namespaces.status.phase", "string"),
    ],
)
def test_explain_knows_the_fields(path: str, words: str, kubectl: Kubectl) -> None:
    explained = kubectl.ok("explain", path)

    assert words in explained
    assert "DESCRIPTION" in explained


def test_explain_goes_all_the_way_down(kubectl: Kubectl) -> None:
    explained = kubectl.ok("explain", "packagerevisions", "--recursive")

    for field in ("upstreamRef", "readinessGates", "conditionType", "selfLock", "publishTimestamp"):
        assert field in explained


def test_discovery_names_the_resources_and_their_verbs(kubectl: Kubectl) -> None:
    wide = kubectl.ok("api-resources", "--api-group=porch.kpt.dev", "-o", "wide")
    by_name = {line.split()[0]: line for line in wide.splitlines()[1:]}

    assert set(by_name) == {"packagerevisions", "packagerevisionresources", "packages", "packagevariantsetpreviews"}
    assert by_name["packagevariantsetpreviews"].split()[-1] == "create"
    assert "create,delete,deletecollection,get,list,patch,update,watch" in by_name["packagerevisions"]
    assert "get,list,patch,update" in by_name["packagerevisionresources"]
    assert by_name["packages"].split()[-1] == "create,delete,get,list,patch,update"
    assert "porch.kpt.dev/v1alpha1" in kubectl.ok("api-versions").split()
    assert "Server Version" in kubectl.ok("version")
    assert "readyz check passed" in kubectl.ok("get", "--raw", "/readyz?verbose")


def test_wait_sees_a_lifecycle_come_and_an_object_go(
    kubectl: Kubectl, register: Register, porch: PorchClient, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    app = draft(porch, "deployments", empty_remote)
    command = kubectl.command(
        "wait", "--for=jsonpath={.spec.lifecycle}=Proposed", f"packagerevision/{app.name}", "--timeout=60s"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        time.sleep(0.3)
        assert waiting.poll() is None
        assert porch.propose(app.name).code == 200
        assert waiting.wait(timeout=90) == 0
    command = kubectl.command("wait", "--for=delete", f"packagerevision/{app.name}", "--timeout=60s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        time.sleep(0.3)
        assert porch.delete_revision(app.name).code == 200
        assert waiting.wait(timeout=90) == 0


def test_a_finalizer_holds_a_revision_until_it_is_taken_off(
    kubectl: Kubectl, register: Register, porch: PorchClient, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    app = draft(porch, "deployments", empty_remote)
    kubectl.ok(
        "patch", "packagerevision", app.name, "--type=merge", "-p", '{"metadata":{"finalizers":["test.example/hold"]}}'
    )
    kubectl.ok("delete", "packagerevision", app.name, "--wait=false")

    held = kubectl.json("get", "packagerevision", app.name)
    assert held["metadata"]["deletionTimestamp"]
    kubectl.ok("patch", "packagerevision", app.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    assert "NotFound" in kubectl("get", "packagerevision", app.name).stderr


def test_uids_follow_from_the_name(kubectl: Kubectl, register: Register, empty_remote: Remote) -> None:
    """One of upstream's vectors: its namespace is rpkg-init, its object git.init-package.init-1."""
    other = kubectl.within("rpkg-init")
    other.ok("create", "namespace", "rpkg-init")
    try:
        other.apply(credentials(), repository("git", empty_remote.url))
        other.ok("wait", "--for=condition=Ready", "repository/git", "--timeout=60s")
        made = other.create(package_revision("git", "init-package", "init-1", init_task()))
        assert made["metadata"]["uid"] == "45ee0692-730a-51b2-9a1d-ad4f4ad55dc8"
    finally:
        other.ok("delete", "namespace", "rpkg-init")


def test_many_revisions_are_read_page_by_page(
    kubectl: Kubectl, register: Register, nephio_catalog_remote: Remote
) -> None:
    register(catalog=nephio_catalog_remote)

    rows = kubectl.ok("get", "packagerevisions", "--chunk-size=7", "--no-headers").splitlines()

    assert len({row.split()[0] for row in rows}) == len(rows) == 130


def test_yaml_is_answered_to_who_asks_for_it(porch: PorchClient, kubectl: Kubectl) -> None:
    kubectl.apply(CONFIG_MAP)

    answer = porch.request("GET", f"/api/v1/namespaces/{kubectl.namespace}/configmaps/a", accept="application/yaml")

    assert yaml.safe_load(answer.body)["data"] == {"k": "v"}


def test_a_watch_goes_on_where_it_was_after_a_restart(
    porch_server: PorchProcess, kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    """What was written while the watcher was away, the server restarted in between, arrives once and in order."""
    register(deployments=empty_remote)
    porch = porch_server.client(kubectl.namespace)
    seen = porch.request("GET", porch.path("packagerevisions")).object["metadata"]["resourceVersion"]
    for package in ("a", "b"):
        assert porch.create_revision("deployments", package).code == 201
    porch.close()
    porch_server.restart()
    porch = porch_server.client(kubectl.namespace)
    path = f"{PORCH}/namespaces/{kubectl.namespace}/packagerevisions?watch=1&resourceVersion={seen}&timeoutSeconds=5"

    lines = porch.request("GET", path).body.splitlines()

    names = [yaml.safe_load(line)["object"]["metadata"]["name"] for line in lines]
    assert names == ["deployments.a.v1", "deployments.b.v1"]
    porch.close()
    eventually(lambda: kubectl.ok("get", "packagerevisions"))


def test_everything_that_get_printed_is_replaced_at_once(
    kubectl: Kubectl, register: Register, porch: PorchClient, empty_remote: Remote
) -> None:
    """The kind List again, with objects of every group in it."""
    register(deployments=empty_remote)
    draft(porch, "deployments", empty_remote)
    kubectl.apply(CONFIG_MAP)

    def printed_and_replaced() -> tuple[str, str]:
        kinds = "packagerevisions,packagerevisionresources,repositories,configmaps,secrets"
        printed = kubectl.ok("get", kinds, "-o", "yaml")
        return printed, kubectl.ok("replace", "-f", "-", stdin=printed)

    # Until the Repository's status has the new draft, it may change in between.
    everything, done = eventually(printed_and_replaced)

    assert done.count("replaced") == 5
    unknown = kubectl("replace", "-f", "-", stdin=everything.replace("  data:\n    k: v", "  dota:\n    k: v"))
    assert 'unknown field "dota"' in unknown.stderr

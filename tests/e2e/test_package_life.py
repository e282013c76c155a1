"""The main job with real kubectl: from two registered repositories to a published, replaced and deleted package."""

import subprocess
from pathlib import Path

import yaml
from eventually import eventually
from kubectl import Kubectl, WatchedLines
from manifests import Register, clone_task, edit_task, init_task, package_revision
from remotes import Remote, files_at, refs

FIRST, SECOND = "deployments.assets.v1", "deployments.assets.v2"
HEADER = ["NAME", "PACKAGE", "WORKSPACENAME", "REVISION", "LATEST", "LIFECYCLE", "REPOSITORY"]


def lifecycle(kubectl: Kubectl, name: str, wanted: str, *, approval: bool = False) -> str:
    subresource = ["--subresource=approval"] if approval else []
    patch = f'{{"spec":{{"lifecycle":"{wanted}"}}}}'
    return kubectl.ok("patch", "packagerevision", name, "--type=merge", "-p", patch, *subresource)


def test_every_revision_of_both_repositories_is_listed_with_upstreams_columns(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, nephio_catalog_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote, catalog=nephio_catalog_remote)

    rows = [line.split() for line in kubectl.ok("get", "packagerevisions").splitlines()]

    assert rows[0] == HEADER
    table = {row[0]: row[1:] for row in rows[1:]}
    assert len(table) == (10 + 6) + (65 + 65)
    assert table["blueprints.basens.v4"] == ["basens", "v4", "4", "true", "Published", "blueprints"]
    assert table["blueprints.basens.v1"] == ["basens", "v1", "1", "false", "Published", "blueprints"]
    assert table["blueprints.basens.main"] == ["basens", "main", "-1", "false", "Published", "blueprints"]
    assert table["catalog.distros.gcp.cc-rootsync.v1"][:3] == ["distros/gcp/cc-rootsync", "v1", "1"]
    wide = kubectl.ok("get", "packagerevisions", "-o", "wide").splitlines()[0].split()
    assert wide == HEADER


def edit_files(kubectl: Kubectl, name: str, old: str, new: str) -> "subprocess.CompletedProcess[str]":
    """Do what a person does: get -o yaml, change the text, replace."""
    text = kubectl.ok("get", "packagerevisionresources", name, "-o", "yaml")
    assert old in text
    return kubectl("replace", "-f", "-", stdin=text.replace(old, new))


def publish(kubectl: Kubectl, name: str) -> None:
    lifecycle(kubectl, name, "Proposed")
    lifecycle(kubectl, name, "Published", approval=True)


def seen_lifecycles(lines: list[str], name: str) -> list[str]:
    """Return the lifecycles that a watch printed for a revision, repeats left out, and DELETED at its end."""
    rows = [line.split() for line in lines if name in line.split()]
    steps = ["DELETED" if row[0] == "DELETED" else row[-2] for row in rows]
    return [step for index, step in enumerate(steps) if index == 0 or steps[index - 1] != step]


def test_a_package_goes_all_the_way_and_a_second_window_sees_every_step(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, empty_remote: Remote, tmp_path: Path
) -> None:
    register(blueprints=test_blueprints_remote, deployments=empty_remote, deployment=("deployments",))
    selector = "--field-selector=spec.repository=deployments"
    with kubectl.watch("get", "packagerevisions", "-w", "--output-watch-events", selector) as window:
        clone_and_edit(kubectl)
        lifecycle(kubectl, FIRST, "Proposed")
        lifecycle(kubectl, FIRST, "Draft", approval=True)
        publish(kubectl, FIRST)
        check_git_after_approval(kubectl, empty_remote, tmp_path / "clone")
        make_second_revision(kubectl)
        delete_first(kubectl, empty_remote)
        check_watch(window)


def clone_and_edit(kubectl: Kubectl) -> None:
    created = kubectl.create(package_revision("deployments", "assets", "v1", clone_task("blueprints.bucket.v1")))
    assert created["metadata"]["name"] == FIRST
    assert created["status"]["deployment"] is True
    replaced = edit_files(kubectl, FIRST, "storage-class: nearline", "storage-class: coldline")
    assert replaced.returncode == 0, replaced.stderr
    files = kubectl.json("get", "packagerevisionresources", FIRST)["spec"]["resources"]
    bucket = yaml.safe_load(files["bucket.yaml"])
    assert bucket["spec"]["storageClass"] == "coldline", "the package's own apply-setters ran"
    kptfile = yaml.safe_load(files["Kptfile"])
    assert kptfile["metadata"]["name"] == "assets"
    assert kptfile["upstream"]["git"]["ref"] == "bucket/v1"
    context = yaml.safe_load(files["package-context.yaml"])
    assert context["data"]["name"] == "assets"


def check_git_after_approval(kubectl: Kubectl, remote: Remote, clone: Path) -> None:
    """What was approved is an ordinary tag and commit for git itself; no draft branch is left."""
    revision = kubectl.json("get", "packagerevision", FIRST)
    assert (revision["spec"]["revision"], revision["spec"]["lifecycle"]) == (1, "Published")
    assert revision["metadata"]["labels"]["kpt.dev/latest-revision"] == "true"
    assert revision["status"]["publishedBy"] == "admin"
    placeholder = kubectl.json("get", "packagerevision", "deployments.assets.main")
    assert (placeholder["spec"]["revision"], placeholder["spec"]["lifecycle"]) == (-1, "Published")
    subprocess.run(["git", "clone", "--quiet", remote.url, clone], check=True, timeout=120)
    assert (clone / "README.md").exists(), "what was on main is still there"
    files = kubectl.json("get", "packagerevisionresources", FIRST)["spec"]["resources"]
    assert {path.name: path.read_text() for path in (clone / "assets").iterdir()} == files
    found = refs(remote.path)
    assert found["refs/tags/assets/v1"] == revision["status"]["selfLock"]["git"]["commit"]
    assert set(found) == {"refs/heads/main", "refs/tags/assets/v1"}
    log = subprocess.run(
        ["git", "-C", clone, "log", "--first-parent", "-1", "--format=%P|%an|%cn <%ce>|%s", "main"],
        check=True, capture_output=True, text=True, timeout=30,
    ).stdout.strip().split("|")  # fmt: skip
    assert len(log[0].split()) == 2, "the approval merges the draft"
    assert log[1:] == ["admin", "Package Orchestration Service <porch@kpt.dev>", "Approving package revision assets/1"]
    subprocess.run(["git", "-C", clone, "fsck", "--strict"], check=True, capture_output=True, timeout=120)


def make_second_revision(kubectl: Kubectl) -> None:
    created = kubectl.create(package_revision("deployments", "assets", "v2", edit_task(FIRST)))
    assert created["spec"]["tasks"] == [edit_task(FIRST)]
    replaced = edit_files(kubectl, SECOND, "enabled: false", "enabled: true")
    assert replaced.returncode == 0, replaced.stderr
    publish(kubectl, SECOND)
    latest = kubectl.ok("get", "packagerevisions", "-l", "kpt.dev/latest-revision=true", "-o", "name").split()
    assert f"packagerevision.porch.kpt.dev/{SECOND}" in latest
    assert f"packagerevision.porch.kpt.dev/{FIRST}" not in latest
    revision = kubectl.json("get", "packagerevision", SECOND)
    assert revision["spec"]["revision"] == 2


def delete_first(kubectl: Kubectl, remote: Remote) -> None:
    refused = kubectl("delete", "packagerevision", FIRST)
    assert refused.returncode == 1
    assert "must be proposed for deletion by setting spec.lifecycle to 'DeletionProposed'" in refused.stderr
    commit = refs(remote.path)["refs/tags/assets/v1"]
    lifecycle(kubectl, FIRST, "DeletionProposed")
    eventually(lambda: _is_at(remote, "refs/heads/deletionProposed/assets/v1", commit))
    kubectl.ok("delete", "packagerevision", FIRST)
    gone = kubectl("get", "packagerevision", FIRST)
    assert "NotFound" in gone.stderr
    found = refs(remote.path)
    assert set(found) == {"refs/heads/main", "refs/tags/assets/v2"}
    assert files_at(remote.path, "refs/heads/main", "assets"), "main keeps the package"


def check_watch(window: WatchedLines) -> None:
    told = ["Draft", "Proposed", "Draft", "Proposed", "Published", "DeletionProposed", "DELETED"]
    lines = window.wait_for(lambda seen: any(line.startswith("DELETED") for line in seen))
    assert seen_lifecycles(lines, FIRST) == told
    assert seen_lifecycles(lines, SECOND) == ["Draft", "Proposed", "Published"]
    assert lines[0].split()[:2] == ["EVENT", "NAME"]


def test_a_draft_is_on_its_branch_in_the_remote_a_moment_after_it_was_saved(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, empty_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote, deployments=empty_remote)
    kubectl.create(package_revision("deployments", "assets", "v1", clone_task("blueprints.basens.v4")))

    def pushed() -> dict[str, str]:
        assert "refs/heads/drafts/assets/v1" in refs(empty_remote.path)
        return files_at(empty_remote.path, "refs/heads/drafts/assets/v1", "assets")

    files = eventually(pushed)
    assert files == kubectl.json("get", "packagerevisionresources", FIRST)["spec"]["resources"]


def test_unmet_readiness_gates_hold_propose_and_approve_with_a_cause_for_each(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, empty_remote: Remote
) -> None:
    gate = "nephio.org.Specializer.specialize"
    register(blueprints=test_blueprints_remote, deployments=empty_remote)
    kubectl.create(package_revision("deployments", "assets", "v1", clone_task("blueprints.unready.v1")))

    refused = kubectl("patch", "packagerevision", FIRST, "--type=merge", "-p", '{"spec":{"lifecycle":"Proposed"}}')

    assert refused.returncode == 1
    assert gate in refused.stderr
    assert "spec.lifecycle" in refused.stderr
    assert kubectl.json("get", "packagerevision", FIRST)["spec"]["lifecycle"] == "Draft"
    met = kubectl.json("get", "packagerevision", FIRST)
    for condition in met["status"]["conditions"]:
        condition["status"] = "True"
    kubectl.replace(met)
    publish(kubectl, FIRST)
    assert kubectl.json("get", "packagerevision", FIRST)["spec"]["revision"] == 1


def test_deleting_a_repository_takes_its_revisions_away_and_leaves_git_alone(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    kubectl.create(package_revision("deployments", "assets", "v1", init_task()))
    publish(kubectl, FIRST)
    before = refs(empty_remote.path)

    kubectl.ok("delete", "repository", "deployments")

    assert kubectl.ok("get", "packagerevisions,repositories", "-o", "name") == ""
    assert refs(empty_remote.path) == before
    register(deployments=empty_remote)
    again = kubectl.json("get", "packagerevision", FIRST)
    assert (again["spec"]["revision"], again["spec"]["tasks"][0]["type"]) == (1, "init")


def test_deleting_a_namespace_unregisters_everything_in_it_and_leaves_git_alone(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    kubectl.create(package_revision("deployments", "assets", "v1", init_task()))
    publish(kubectl, FIRST)
    kubectl.ok("create", "configmap", "other", "--from-literal=a=b")
    before = refs(empty_remote.path)

    kubectl.ok("delete", "namespace", kubectl.namespace)

    assert "NotFound" in kubectl("get", "namespace", kubectl.namespace).stderr
    for resource in ("packagerevisions", "repositories", "configmaps", "secrets"):
        assert kubectl.ok("get", resource, "-o", "name") == ""
    assert refs(empty_remote.path) == before


def _is_at(remote: Remote, ref: str, commit: str) -> None:
    assert refs(remote.path).get(ref) == commit

"""Cases of upstream's suite of its client that are only described: ``porch-api.md`` 11.2."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from eventually import eventually
from porch_process import PorchProcess
from porchctl_cases import GITEA, WORKDIR, place_of
from porchctl_client import Done
from porchctl_shell import Shell

PORCH_TEST = f"{GITEA}/nephio/porch-test"
BLUEPRINTS = f"{GITEA}/nephio/test-blueprints.git"
LOGIN = ("--repo-basic-username=nephio", "--repo-basic-password=secret")
GET_COLUMNS = "--output=custom-columns=NAME:.metadata.name,PKG:.spec.packageName,REV:.spec.revision"
BAD_PIPELINE = """pipeline:
  mutators:
  - image: ghcr.io/kptdev/krm-functions-catalog/set-annotations:v0.1.4
"""
PUSHED = "Package pushed to remote despite render failure"
NOT_PUSHED = "Package NOT pushed to remote"


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path, porch_server: PorchProcess) -> Iterator[Shell]:
    """A shell in the namespace that the test's parameter names."""
    for name in ("remotes", "work"):
        (tmp_path / name).mkdir()
    with place_of(request.param, tmp_path / "remotes", porch_server) as place:
        yield Shell(place, porch_server, tmp_path / "work")


def in_namespace(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shell", [name], indirect=True)


def ok(done: Done) -> str:
    assert done.exit_code == 0, done.stderr
    return done.stdout


def register(shell: Shell, url: str, name: str, *flags: str) -> None:
    ok(shell.porchctl("repo", "register", url, f"--name={name}", *LOGIN, *flags))


def pulled(shell: Shell, name: str) -> dict[str, Any]:
    """Pull a package and return its items by kind."""
    found = yaml.safe_load(ok(shell.porchctl("rpkg", "pull", name)))
    assert (found["apiVersion"], found["kind"]) == ("config.kubernetes.io/v1", "ResourceList")
    return {item["kind"]: item for item in found["items"]}


@in_namespace("rpkg-get")
def test_rpkg_get_lists_what_was_discovered(shell: Shell) -> None:
    register(shell, BLUEPRINTS, "test-blueprints", "--description", "Test Blueprints")

    rows = [line.split() for line in ok(shell.porchctl("rpkg", "get", GET_COLUMNS)).splitlines()]

    numbers = {"basens": 4, "bucket": 1, "empty": 1, "redis-bucket": 1, "unready": 1, "update": 2}
    tagged = [(package, f"v{at}", at) for package, last in numbers.items() for at in range(1, last + 1)]
    wanted = [*tagged, *((package, "main", -1) for package in numbers)]
    assert rows[0] == ["NAME", "PKG", "REV"]
    assert sorted(rows[1:]) == sorted(
        [f"test-blueprints.{package}.{workspace}", package, str(revision)] for package, workspace, revision in wanted
    )
    assert len(rows) == 1 + 16

    assert ok(shell.porchctl("rpkg", "get", "test-blueprints.basens.v1")).splitlines() == [
        "NAME                        PACKAGE   WORKSPACENAME   REVISION   LATEST   LIFECYCLE   REPOSITORY",
        "test-blueprints.basens.v1   basens    v1              1          false    Published   test-blueprints",
    ]
    assert sorted(ok(shell.porchctl("rpkg", "get", "--name=basens")).splitlines()) == [
        "NAME                          PACKAGE   WORKSPACENAME   REVISION   LATEST   LIFECYCLE   REPOSITORY",
        "test-blueprints.basens.main   basens    main            -1         false    Published   test-blueprints",
        "test-blueprints.basens.v1     basens    v1              1          false    Published   test-blueprints",
        "test-blueprints.basens.v2     basens    v2              2          false    Published   test-blueprints",
        "test-blueprints.basens.v3     basens    v3              3          false    Published   test-blueprints",
        "test-blueprints.basens.v4     basens    v4              4          true     Published   test-blueprints",
    ]
    assert [line.split()[0] for line in ok(shell.porchctl("rpkg", "get", "--workspace=v2")).splitlines()] == [
        "NAME",
        "test-blueprints.basens.v2",
        "test-blueprints.update.v2",
    ]


@in_namespace("rpkg-get")
def test_rpkg_get_shows_one_kptfile_and_nothing_else(shell: Shell) -> None:
    register(shell, BLUEPRINTS, "test-blueprints")

    kptfile = yaml.safe_load(ok(shell.porchctl("rpkg", "get", "--show-kptfile", "test-blueprints.basens.v4")))

    assert (kptfile["apiVersion"], kptfile["kind"]) == ("kpt.dev/v1", "Kptfile")
    assert kptfile["metadata"]["labels"] == {"test-label": "test-value"}
    for arguments, message in {
        (): "--show-kptfile requires exactly one package revision name as an argument",
        (
            "test-blueprints.basens.v1",
            "--name=x",
        ): "--show-kptfile cannot be combined with --name, --revision, or --workspace",
        ("test-blueprints.basens.v1", "-A"): "--show-kptfile cannot be combined with --all-namespaces",
    }.items():
        done = shell.porchctl("rpkg", "get", "--show-kptfile", *arguments)
        assert (done.exit_code, done.stderr) == (1, f"Error: {message} \n")


@in_namespace("rpkg-init-deploy")
def test_rpkg_init_in_a_deployment_repository_leaves_the_example_context(shell: Shell) -> None:
    register(shell, PORCH_TEST, "git", "--deployment=true")

    created = shell.porchctl(
        "rpkg",
        "init",
        "init-package",
        "--repository=git",
        "--workspace=init-1",
        "--description",
        "Test Package Description",
        "--keywords=test,package",
        "--site",
        "http://kpt.dev/init-package",
    )

    assert ok(created) == "git.init-package.init-1 created\n"
    items = pulled(shell, "git.init-package.init-1")
    assert items["ConfigMap"]["metadata"]["name"] == "kptfile.kpt.dev"
    assert items["ConfigMap"]["data"] == {"name": "example"}
    assert items["Kptfile"]["info"] == {
        "description": "Test Package Description",
        "keywords": ["test", "package"],
        "site": "http://kpt.dev/init-package",
    }
    conditions = [{"type": "Rendered", "status": "True", "reason": "RenderSuccess"}]
    assert items["Kptfile"]["status"] == {"conditions": conditions}


@in_namespace("rpkg-copy")
def test_rpkg_copy_keeps_where_the_package_came_from(shell: Shell) -> None:
    register(shell, PORCH_TEST, "git")
    source = f"{BLUEPRINTS}/basens@basens/v1"
    ok(shell.porchctl("rpkg", "clone", source, "basens-edit", "--repository=git", "--workspace=clone-1"))
    cloned = pulled(shell, "git.basens-edit.clone-1")
    assert ok(shell.porchctl("rpkg", "propose", "git.basens-edit.clone-1")) == "git.basens-edit.clone-1 proposed\n"
    assert ok(shell.porchctl("rpkg", "approve", "git.basens-edit.clone-1")) == "git.basens-edit.clone-1 approved\n"

    created = shell.porchctl("rpkg", "copy", "git.basens-edit.clone-1", "--workspace=copy-2")

    assert ok(created) == "git.basens-edit.copy-2 created\n"
    copied = pulled(shell, "git.basens-edit.copy-2")
    metadata = copied["KptRevisionMetadata"]["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("git.basens-edit.copy-2", "rpkg-copy")
    assert metadata["uid"] == "dc403caa-3f59-5a61-8a79-adcdf40bc52a"
    git = {"repo": BLUEPRINTS, "directory": "basens", "ref": "basens/v1"}
    assert copied["Kptfile"]["upstream"] == {"type": "git", "git": git}
    commit = "67f29546028f0a48c6bbb08614934d0e070cdd3a"
    assert copied["Kptfile"]["upstreamLock"] == {"type": "git", "git": {**git, "commit": commit}}
    assert copied["Kptfile"] == cloned["Kptfile"]
    assert copied["Namespace"] == cloned["Namespace"]


@in_namespace("repo-sync")
def test_repo_sync_has_a_repository_read_again_once(shell: Shell) -> None:
    register(shell, BLUEPRINTS, "test-blueprints")
    columns = "--output=custom-columns=AT:.spec.sync.runOnceAt,DONE:.status.observedRunOnceAt"

    done = shell.porchctl("repo", "sync", "test-blueprints", "--run-once=1s")

    at = ok(done).removeprefix('Scheduled one-time sync for "test-blueprints" at ').strip()

    def synced() -> None:
        assert ok(shell.porchctl("repo", "get", columns)).splitlines()[1].split() == ["<none>", at]

    eventually(synced)


@in_namespace("rpkg-unready")
def test_rpkg_propose_of_an_unready_package_is_refused_by_the_client_and_by_the_server(shell: Shell) -> None:
    name = "git.unready-edit.v1"
    register(shell, PORCH_TEST, "git")
    source = f"{BLUEPRINTS}/unready@unready/v1"
    ok(shell.porchctl("rpkg", "clone", source, "unready-edit", "--repository=git", "--workspace=v1"))

    done = shell.porchctl("rpkg", "propose", name)
    patched = shell.kubectl(
        "patch", "packagerevision", name, "--type=merge", "--patch", '{"spec":{"lifecycle":"Proposed"}}'
    )

    message = "readiness conditions not met"
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"{name} failed ({message})\nError: errors:\n  {message} \n"
    assert patched.exit_code == 1
    assert "spec.lifecycle" in patched.stderr
    assert "nephio.org.Specializer.specialize" in patched.stderr
    lifecycle = shell.porchctl("rpkg", "get", name, "--output=jsonpath={.spec.lifecycle}")
    assert ok(lifecycle) == "Draft\n"


@in_namespace("rpkg-push-on-render-failure")
@pytest.mark.parametrize(("value", "is_pushed"), [("true", True), ("false", False), ("", False)])
def test_rpkg_push_keeps_what_does_not_render_only_where_an_annotation_says_so(
    shell: Shell, value: str, is_pushed: bool
) -> None:
    name = "git.test-package.push"
    register(shell, PORCH_TEST, "git")
    ok(shell.porchctl("rpkg", "init", "test-package", "--repository=git", "--workspace=push"))
    if value:
        annotation = f"porch.kpt.dev/push-on-render-failure={value}"
        annotated = shell.kubectl("annotate", "packagerevisions.v1alpha1.porch.kpt.dev", name, annotation)
        assert ok(annotated) == f"packagerevision.porch.kpt.dev/{name} annotated\n"
    ok(shell.porchctl("rpkg", "pull", name, f"{WORKDIR}/package"))
    ok(shell.run(["sh", "-c", f"printf '{BAD_PIPELINE}' >> {WORKDIR}/package/Kptfile"]))

    pushed = shell.porchctl("rpkg", "push", name, f"{WORKDIR}/package")

    assert pushed.exit_code == 1
    assert pushed.stdout == ""
    assert (PUSHED in pushed.stderr, NOT_PUSHED in pushed.stderr) == (is_pushed, not is_pushed)
    kptfile = yaml.safe_load(ok(shell.porchctl("rpkg", "get", "--show-kptfile", name)))
    assert ("pipeline" in kptfile) == is_pushed


@in_namespace("rpkg-push")
def test_rpkg_push_of_a_list_does_not_lose_the_comments_of_the_package(shell: Shell) -> None:
    name = "git.commented.v1"
    register(shell, PORCH_TEST, "git")
    ok(shell.porchctl("rpkg", "init", "commented", "--repository=git", "--workspace=v1"))
    ok(shell.porchctl("rpkg", "pull", name, f"{WORKDIR}/package"))
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  # how many\n  count: one # kpt-set: ${count}\n"
    ok(shell.run(["tee", f"{WORKDIR}/package/settings.yaml"], text))
    ok(shell.porchctl("rpkg", "push", name, f"{WORKDIR}/package"))

    listed = ok(shell.porchctl("rpkg", "pull", name))
    assert "# how many" not in listed
    ok(shell.run(["porchctl", "rpkg", "push", name, "-", "--namespace=rpkg-push"], listed.replace("one", "two")))

    ok(shell.porchctl("rpkg", "pull", name, f"{WORKDIR}/again"))
    settings = ok(shell.run(["cat", f"{WORKDIR}/again/settings.yaml"]))
    assert "  # how many\n  count: two # kpt-set: ${count}\n" in settings

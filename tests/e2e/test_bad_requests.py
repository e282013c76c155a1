"""Requests that ask for what cannot be: each is refused with code, reason and a way out, and changes nothing."""

from typing import Any

import pytest
from drafts import Revision, accepted, draft, proposal, published, refused
from manifests import Object, Register, clone_git_task, clone_task, edit_task, init_task
from porch_client import CONFIG, PorchClient
from remotes import Remote, refs

STALE = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.fixture
def deployments(register: Register, empty_remote: Remote) -> Remote:
    """The remote of a repository named deployments."""
    register(deployments=empty_remote)
    return empty_remote


def fields(status: Object) -> list[str]:
    """Return the fields that a Status names."""
    return [cause.get("field", "") for cause in status["details"]["causes"]]


# --- creating --------------------------------------------------------------------------------


def create(porch: PorchClient, remote: Remote, code: int, reason: str, *words: str, **spec: Any) -> Object:
    """Create something impossible and check that nothing came of it."""
    before = porch.revisions(), refs(remote.path)
    wanted = {"repository": "deployments", "package": "app", "workspace": "v1", **spec}
    status = refused(porch.create_revision(**wanted), code, reason, *words)
    assert (porch.revisions(), refs(remote.path)) == before
    assert isinstance(status, dict)
    return status


def test_an_unknown_repository_is_named(porch: PorchClient, deployments: Remote) -> None:
    words = 'repositories.config.porch.kpt.dev "nowhere" not found'
    create(porch, deployments, 404, "NotFound", words, repository="nowhere")


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        pytest.param([{"type": "frobnicate"}], ["frobnicate"], id="unknown-type"),
        pytest.param([{}], ["type"], id="no-type"),
        pytest.param([init_task(), init_task()], ["must not contain more than one task"], id="two"),
        pytest.param(
            [{"type": "clone", "clone": {"upstreamRef": {}}}], ["invalid clone source"], id="clone-of-nothing"
        ),
        pytest.param([clone_task("blueprints.nothing.v1")], ["blueprints.nothing.v1"], id="unknown-upstream"),
        pytest.param([edit_task("deployments.app.v0")], ["deployments.app.v0"], id="edit-of-unknown"),
        pytest.param([clone_task("deployments.main")], ["deployments.main"], id="upstream-is-no-name"),
    ],
)
def test_a_task_that_cannot_be_done_is_refused_with_its_reason(
    tasks: list[Object], words: list[str], porch: PorchClient, deployments: Remote
) -> None:
    create(porch, deployments, 422, "Invalid", *words, tasks=tasks)


def test_a_clone_of_an_unknown_directory_or_ref_says_what_was_looked_for(
    porch: PorchClient, deployments: Remote, test_blueprints_remote: Remote
) -> None:
    url = test_blueprints_remote.url
    create(porch, deployments, 422, "Invalid", "nothing", tasks=[clone_git_task(url, "main", "nothing")])
    create(porch, deployments, 422, "Invalid", "v99", tasks=[clone_git_task(url, "v99", "basens")])


@pytest.mark.parametrize(
    "package", ["Bad_Name", "a//b", "../app", "/app", "app/", "a" * 64, "-app", "app\u0000", "a.b"]
)
def test_a_bad_package_name_is_refused(package: str, porch: PorchClient, deployments: Remote) -> None:
    status = create(porch, deployments, 422, "Invalid", "spec.packageName", package=package)

    assert "spec.packageName" in fields(status)


def test_a_package_name_is_required(porch: PorchClient, deployments: Remote) -> None:
    create(porch, deployments, 422, "Invalid", "spec.packageName", package="")


@pytest.mark.parametrize("workspace", ["", "V1", "v_1", "v 1", "..", "w" * 64, "a/b"])
def test_a_bad_workspace_name_is_refused(workspace: str, porch: PorchClient, deployments: Remote) -> None:
    status = create(porch, deployments, 422, "Invalid", "spec.workspaceName", workspace=workspace)

    assert "spec.workspaceName" in fields(status)


@pytest.mark.parametrize("lifecycle", ["Proposed", "Published", "DeletionProposed", "Wonderful"])
def test_a_revision_begins_as_a_draft(lifecycle: str, porch: PorchClient, deployments: Remote) -> None:
    words = ("spec.lifecycle", lifecycle, "value can be only created as Draft")
    create(porch, deployments, 422, "Invalid", *words, lifecycle=lifecycle)


def test_a_second_revision_of_the_same_workspace_is_refused(porch: PorchClient, deployments: Remote) -> None:
    first = published(porch, "deployments", deployments)
    before = first.snapshot()

    again = porch.create_revision("deployments", "app", "v1", tasks=[edit_task(first.name)])

    refused(again, 409, "AlreadyExists", "workspaceNames must be unique", "workspaceName v1 already exists")
    assert first.look() == before


def test_a_second_init_of_a_package_is_refused(porch: PorchClient, deployments: Remote) -> None:
    first = draft(porch, "deployments", deployments)
    before = first.snapshot()

    again = porch.create_revision("deployments", "app", "v2")

    refused(again, 409, "AlreadyExists", 'package "app" already exists in repository "deployments"')
    assert first.look() == before


def test_packages_are_not_nested(porch: PorchClient, deployments: Remote) -> None:
    first = draft(porch, "deployments", deployments)
    before = first.snapshot()

    nested = porch.create_revision("deployments", "app/inner", "v1")

    refused(nested, 409, nested.reason, "packages cannot be nested")
    assert first.look() == before


def test_the_placeholder_is_no_upstream(
    porch: PorchClient, register: Register, deployments: Remote, test_blueprints_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote)
    create(
        porch, deployments, 422, "Invalid", "placeholder package revision", tasks=[clone_task("blueprints.basens.main")]
    )


# --- life ------------------------------------------------------------------------------------


@pytest.fixture
def app(porch: PorchClient, deployments: Remote) -> Revision:
    """A draft of the package app."""
    return draft(porch, "deployments", deployments)


def test_approving_a_draft_says_to_propose_it_first(porch: PorchClient, app: Revision) -> None:
    before = app.snapshot()

    refused(
        porch.approve(app.name),
        422,
        "Invalid",
        "cannot approve package with Draft lifecycle value; only Proposed packages can be approved",
    )
    assert app.look() == before


def test_publishing_needs_the_approval_subresource(porch: PorchClient, deployments: Remote) -> None:
    app = proposal(porch, "deployments", deployments)
    before = app.snapshot()

    refused(porch.set_lifecycle(app.name, "Published"), 422, "Invalid", "spec.lifecycle")
    assert app.look() == before


def test_an_unknown_lifecycle_is_refused(porch: PorchClient, app: Revision) -> None:
    before = app.snapshot()

    refused(porch.set_lifecycle(app.name, "Wonderful"), 422, "Invalid", "spec.lifecycle", "Wonderful")
    assert app.look() == before


def test_a_stale_save_is_a_conflict(porch: PorchClient, app: Revision) -> None:
    stale = porch.resources(app.name).object
    accepted(porch.save(app.name, {"newer.txt": "newer\n"}))
    before = app.snapshot()
    stale["spec"]["resources"]["older.txt"] = "older\n"

    answer = porch.request("PUT", porch.path("packagerevisionresources", app.name), stale)

    name = f'packagerevisionresources.porch.kpt.dev "{app.name}"'
    refused(answer, 409, "Conflict", f"Internal error occurred: Operation cannot be fulfilled on {name}: {STALE}")
    assert app.look() == before


def test_a_stale_update_is_a_conflict(porch: PorchClient, app: Revision) -> None:
    stale = porch.revision(app.name).object
    accepted(porch.save(app.name, {"newer.txt": "newer\n"}))
    before = app.snapshot()
    stale["spec"]["lifecycle"] = "Proposed"

    answer = porch.request("PUT", porch.path("packagerevisions", app.name), stale)

    refused(answer, 409, "Conflict", STALE)
    assert app.look() == before


def test_a_save_without_a_resource_version_is_refused(porch: PorchClient, app: Revision) -> None:
    before = app.snapshot()

    answer = porch.save(app.name, {"new.txt": "new\n"}, resource_version="")

    refused(answer, 422, "Invalid", "Internal error occurred: resourceVersion must be specified for an update")
    assert app.look() == before


@pytest.mark.parametrize("make", [proposal, published], ids=["proposed", "published"])
def test_only_a_draft_can_be_saved(make: Any, porch: PorchClient, deployments: Remote) -> None:
    app = make(porch, "deployments", deployments)
    before = app.snapshot()

    answer = porch.save(app.name, {"late.txt": "late\n"})

    words = f'cannot update a package revision with lifecycle value "{app.lifecycle}"; package must be Draft'
    refused(answer, 422, "Invalid", words)
    assert app.look() == before


def test_the_spec_of_a_published_revision_cannot_be_changed(porch: PorchClient, deployments: Remote) -> None:
    app = published(porch, "deployments", deployments)
    before = app.snapshot()
    changed = porch.revision(app.name).object
    changed["spec"]["packageMetadata"] = {"labels": {"late": "yes"}}

    answer = porch.request("PUT", porch.path("packagerevisions", app.name), changed)

    words = "spec can only update package with lifecycle value one of Draft,Proposed"
    refused(answer, 422, "Invalid", words)
    assert app.look() == before


def test_a_published_revision_is_not_deleted_without_a_proposal(porch: PorchClient, deployments: Remote) -> None:
    app = published(porch, "deployments", deployments)
    before = app.snapshot()

    refused(porch.delete_revision(app.name), 403, "Forbidden", "DeletionProposed")
    assert app.look() == before


def test_an_upstream_in_use_is_not_deleted(porch: PorchClient, deployments: Remote) -> None:
    app = published(porch, "deployments", deployments)
    clone = accepted(porch.create_revision("deployments", "copy", "v1", tasks=[clone_task(app.name)]))
    accepted(porch.set_lifecycle(app.name, "DeletionProposed"))
    before = app.snapshot()

    refused(porch.delete_revision(app.name), 403, "Forbidden", "referenced as upstream by", clone["metadata"]["name"])
    assert app.look().revision == before.revision


def test_the_latest_label_belongs_to_the_server(porch: PorchClient, app: Revision) -> None:
    before = app.snapshot()
    changed = porch.revision(app.name).object
    changed["metadata"]["labels"] = {"kpt.dev/latest-revision": "true"}

    answer = porch.request("PUT", porch.path("packagerevisions", app.name), changed)

    refused(answer, 422, "Invalid", "kpt.dev/latest-revision", "managed by porch")
    assert app.look() == before


@pytest.mark.parametrize("resource", ["packagerevisions", "packagerevisionresources"])
def test_what_does_not_exist_is_not_found(resource: str, porch: PorchClient, deployments: Remote) -> None:
    for name in ("deployments.nothing.v1", "foo"):
        answer = porch.request("GET", porch.path(resource, name))
        refused(answer, 404, "NotFound", f'{resource}.porch.kpt.dev "{name}" not found')


def test_a_repository_without_an_address_is_refused(porch: PorchClient, deployments: Remote) -> None:
    body = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "Repository", "metadata": {"name": "broken"}}
    path = f"{CONFIG}/namespaces/{porch.namespace}/repositories"

    answer = porch.request("POST", path, {**body, "spec": {"type": "git", "git": {"branch": "main"}}})

    refused(answer, 422, "Invalid", "spec.git.repo")


def test_without_a_certificate_nobody_is_let_in(porch_server: Any) -> None:
    client = porch_server.client(anonymous=True)
    try:
        refused(client.request("GET", client.path("packagerevisions")), 401, "Unauthorized", "Unauthorized")
    finally:
        client.close()

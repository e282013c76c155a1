"""Upstream's API scenarios of repositories: registering, cloning by address, errors, what may change (29 to 36)."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from eventually import eventually
from git_server import GitServer, git_server
from remotes import PUSHER, Remote
from upstream_client import Refused, UpstreamClient, name_of, ready_condition, repository_of

Object = dict[str, Any]
ERROR_SECONDS = 60.0
"""How long a bad address may take to be reported; upstream's suite allows 180 s."""


def clone_of_git(remote: Remote, ref: str, directory: str) -> Object:
    git = {"repo": remote.url, "ref": ref, "directory": directory}
    return {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": git}}}


def test_scenario_29_a_package_is_cloned_by_its_address_and_rendered_when_it_is_created(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("git", porch_test)

    cloned = suite.make("git", "test-bucket", "workspace", clone_of_git(test_blueprints_remote, "bucket/v1", "bucket"))

    files = suite.resources(name_of(cloned))["spec"]["resources"]
    assert yaml.safe_load(files["bucket.yaml"])["metadata"]["name"] == "blueprints-project-bucket2"


def test_scenario_30_package_names_do_not_begin_with_the_directory_of_their_repository(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    directory = "test-dir"
    suite.register("test-30", porch_test, directory=directory)
    suite.make_published("test-30", "test-package-dir", "v1")
    packages = {one["spec"]["packageName"] for one in suite.revisions()}
    assert packages == {"test-package-dir"}

    suite.unregister("test-30")
    suite.register("test-30", porch_test, directory=directory)

    found = suite.revisions()
    assert {one["spec"]["packageName"] for one in found} == packages
    assert sorted(one["spec"].get("revision", 0) for one in found) == [-1, 1]
    assert {one["spec"]["repository"] for one in found} == {"test-30"}


def test_scenario_31_a_registered_repository_says_its_type_and_that_it_is_for_deployment(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("register", porch_test, deployment=True)

    found = suite.get("Repository", "register")["spec"]

    assert (found["content"], found["type"], found["deployment"]) == ("Package", "git", True)
    assert found["git"]["repo"] == porch_test.url
    assert found["git"]["branch"] == "main"


def test_scenario_32_a_repository_that_cannot_be_reached_says_so_in_its_condition(suite: UpstreamClient) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/repository.git"
        suite.create(repository_of("repository-error", url, suite.namespace))

        def reported() -> Object:
            ready = ready_condition(suite.get("Repository", "repository-error"))
            assert ready, "there is no condition yet"
            assert ready["reason"] != "Reconciling", ready
            return ready

        ready = eventually(reported, timeout=ERROR_SECONDS)

    assert (ready["status"], ready["reason"]) == ("False", "Error")
    assert ready["message"]


def test_scenario_33_the_description_of_a_repository_is_changed_and_it_is_ready_again(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("modify", porch_test)
    repository = suite.get("Repository", "modify")
    repository["spec"]["description"] = "Updated Repository Description"

    changed = suite.update(repository)

    assert changed["spec"]["description"] == "Updated Repository Description"

    def observed() -> None:
        found = suite.get("Repository", "modify")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert ready_condition(found)["status"] == "True"

    eventually(observed)


@pytest.fixture
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """A Git server that takes requests and answers none."""
    with git_server(tmp_path_factory.mktemp("hanging"), ":".join(PUSHER)) as server:
        server.faults.hang = True
        yield server


def test_scenario_34_revisions_of_one_repository_are_listed_while_another_hangs(
    suite: UpstreamClient, test_blueprints_remote: Remote, hanging: GitServer
) -> None:
    suite.create(repository_of("hanging-repository", f"{hanging.url}/repository.git", suite.namespace))
    suite.register("working-repository", test_blueprints_remote)

    found = suite.revisions(fields="spec.repository=working-repository")

    assert len(found) == 10 + 6
    assert len(suite.revisions()) == 10 + 6


def test_scenario_35_what_a_repository_is_cannot_be_changed_and_its_description_can(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("immutable", porch_test, directory="packages")

    for field, value in [("repo", "https://example.com/other.git"), ("branch", "other"), ("directory", "elsewhere")]:
        repository = suite.get("Repository", "immutable")
        repository["spec"]["git"][field] = value
        with pytest.raises(Refused, match=rf"spec\.git\.{field} is immutable"):
            suite.update(repository)
    repository = suite.get("Repository", "immutable")
    repository["spec"]["type"] = "oci"
    with pytest.raises(Refused, match=r"spec\.type is immutable"):
        suite.update(repository)

    repository = suite.get("Repository", "immutable")
    repository["spec"]["description"] = "may change"
    assert suite.update(repository)["spec"]["description"] == "may change"


def test_scenario_36_the_branch_of_a_repository_is_main_unless_it_says_otherwise(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    wanted = repository_of("branch-default", porch_test.url, suite.namespace)
    del wanted["spec"]["git"]["branch"]

    created = suite.create(wanted)

    assert created["spec"]["git"]["branch"] == "main"
    assert suite.get("Repository", "branch-default")["spec"]["git"]["branch"] == "main"

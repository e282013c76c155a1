"""Upstream's API scenarios of concurrency (9 to 16): of identical requests sent together one wins, one is told why not.

Every request has a connection of its own, already open, as those of a Go client's pool are.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from remotes import Remote
from upstream_client import UpstreamClient, labels_of, name_of, revision_of, together, with_lifecycle

Object = dict[str, Any]
BUSY = "another request is already in progress"
ROUNDS = 5
"""How often each scenario is gone through: upstream's suite does it once, and must not fail now and then."""


class Collisions:
    """Sends identical requests at once and keeps the outcomes of those that did not meet."""

    def __init__(self, clients: list[UpstreamClient]) -> None:
        self._clients = clients
        self._missed: list[list[str]] = []

    def collide(self, method: str, wanted: Object, subresource: str = "", *, count: int = 2) -> None:
        """Send a request over ``count`` connections; one has to succeed."""
        errors = together(self._clients[:count], method, wanted, subresource)
        assert "" in errors, f"one of them has to succeed: {errors}"
        if not any(BUSY in error for error in errors):
            self._missed.append(errors)

    def check(self) -> None:
        """Check that they met: once at most may a busy machine have held one back until the other was answered."""
        assert len(self._missed) <= 1, f"none was told of another request: {self._missed}"


@pytest.fixture
def collisions(suite: UpstreamClient) -> Iterator[Collisions]:
    """Eight clients whose connections are open; the collisions are checked when the test is over."""
    with ExitStack() as stack:
        clients = [suite.another() for _ in range(8)]
        for client in clients:
            stack.callback(client.close)
            client.items("ConfigMap")
        made = Collisions(clients)
        yield made
        made.check()


def test_scenario_09_of_concurrent_clones_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("upstream", test_blueprints_remote)
    suite.register("downstream", porch_test)
    task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "upstream.basens.v2"}}}}

    for number in range(ROUNDS):
        wanted = revision_of("downstream", f"clone-{number}", "v1", task, suite.namespace)
        collisions.collide("POST", wanted)
        assert suite.revision(f"downstream.clone-{number}.v1")["spec"]["tasks"] == [task]


def test_scenario_10_of_concurrent_inits_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)

    for number in range(ROUNDS):
        wanted = revision_of("git", f"empty-package-{number}", "v1", namespace=suite.namespace)
        collisions.collide("POST", wanted)
        assert suite.exists(f"git.empty-package-{number}.v1")


def test_scenario_11_of_concurrent_edits_one_wins_and_has_one_task(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    source = name_of(suite.make_published("git", "test-edit", "v1"))
    task = {"type": "edit", "edit": {"sourceRef": {"name": source}}}

    for number in range(2, 2 + ROUNDS):
        wanted = revision_of("git", "test-edit", f"v{number}", task, suite.namespace)
        collisions.collide("POST", wanted)
        assert suite.revision(f"git.test-edit.v{number}")["spec"]["tasks"] == [task]


def test_scenario_12_of_concurrent_updates_of_the_files_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    draft = name_of(suite.make("git", "test-resources", "v1"))

    for number in range(ROUNDS):
        files = suite.resources(draft)
        files["spec"]["resources"]["config-map.yaml"] = config_map(number)
        collisions.collide("PUT", files)
        assert f"round: '{number}'" in suite.resources(draft)["spec"]["resources"]["config-map.yaml"]


def config_map(number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: test\ndata:\n  round: '{number}'\n"


def test_scenario_13_of_concurrent_proposals_and_approvals_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)

    for number in range(ROUNDS):
        draft = suite.make("git", f"test-package-{number}", "v1")
        collisions.collide("PUT", with_lifecycle(draft, "Proposed"))
        proposed = suite.revision(name_of(draft))
        assert proposed["spec"]["lifecycle"] == "Proposed"
        collisions.collide("PUT", with_lifecycle(proposed, "Published"), "approval")
        published = suite.revision(name_of(draft))
        assert (published["spec"]["lifecycle"], published["spec"]["revision"]) == ("Published", 1)


def test_scenario_14_of_eight_concurrent_deletions_one_wins_and_the_revision_is_gone(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)

    for number in range(ROUNDS):
        draft = suite.make("git", f"test-delete-{number}", "v1")
        collisions.collide("DELETE", draft, count=8)
        assert not suite.exists(name_of(draft))


def test_scenario_15_of_concurrent_proposals_of_deletion_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)

    for number in range(ROUNDS):
        published = suite.make_published("git", f"test-propose-delete-{number}", "v1")
        collisions.collide("PUT", with_lifecycle(published, "DeletionProposed"))
        assert suite.revision(name_of(published))["spec"]["lifecycle"] == "DeletionProposed"


def test_scenario_16_of_concurrent_updates_of_a_draft_one_wins(
    suite: UpstreamClient, collisions: Collisions, porch_test: Remote
) -> None:
    suite.register("git", porch_test)

    for number in range(ROUNDS):
        draft = suite.make("git", f"test-update-{number}", "v1")
        changed = copy.deepcopy(draft)
        changed["spec"]["tasks"] = [{"type": "init", "init": {"description": "changed"}}]
        collisions.collide("PUT", changed)
        labelled = suite.revision(name_of(draft))
        assert labelled["spec"]["tasks"] == draft["spec"]["tasks"], "tasks of a draft stay what they are"
        labelled["metadata"]["labels"] = {"round": str(number)}
        collisions.collide("PUT", labelled)
        assert labels_of(suite.revision(name_of(draft))) == {"round": str(number)}

# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Five pauses inside a publish (``make soak`` has a hundred): nothing is published twice, no number is given twice.

And one between the plan and the push, in which the proposal is taken back: nothing is published.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from eventually import eventually
from git_server import GitServer, create_repository, run_git
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, proposed, register, running_replicas
from split_brain import SplitBrain, approve, paused_before_commands

ROUNDS = range(1, 6)


@pytest.mark.timeout(900)
def test_a_replica_that_sleeps_through_its_lease_inside_a_publish_publishes_nothing_twice(
    replicas: ReplicaSet, remote: GitServer
) -> None:
    create_repository(remote.root / "split.git")
    clients = replicas.clients()
    register(clients, remote, "split")
    for client in clients:
        client.close()
    story = SplitBrain(replicas, remote, "split")
    for seed in ROUNDS:
        story.round(seed)

    print(f"taken over after at most {max(story.took):.1f} s")  # noqa: T201
    assert story.seen["other 200"] + story.seen["sleeper 200"] >= len(ROUNDS)


@pytest.mark.timeout(900)
def test_a_replica_that_slept_before_it_sent_a_publish_does_not_publish_what_was_taken_back(
    tmp_path: Path, url: str, remote: GitServer
) -> None:
    path = create_repository(remote.root / "taken-back.git")
    before = run_git(path, "rev-parse", "main")
    # No branch of the draft moves in the remote, so the push would lose against nothing.
    with running_replicas(tmp_path, url, arguments=["--push-drafts=never"]) as own, ThreadPoolExecutor(1) as pool:
        sleeper, other = own.members
        with closing(sleeper.client()) as first, closing(other.client()) as second:
            register([first, second], remote, "taken-back")
            name = proposed(second, "taken-back", "app")

            def taken_back() -> None:
                answer = second.set_lifecycle(name, "Draft")
                assert answer.code == 200, answer.body  # until then the sleeper has the claim

            with paused_before_commands(remote, sleeper) as pause:
                asleep = pool.submit(approve, sleeper, name)
                assert pause.begun.wait(SLOW), "the replica never pushed"
                eventually(taken_back, SLOW)
            answer = asleep.result(2 * SLOW)

            assert answer.code in {409, 422, 503}, answer.body
            assert (run_git(path, "rev-parse", "main"), run_git(path, "tag")) == (before, "")
            for client in (first, second):
                told = client.request("GET", client.path("packagerevisions", name)).object
                assert told["spec"]["lifecycle"] == "Draft", told

# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Two replicas on one database: what one does the other knows, goes on with, and does not do again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest
from eventually import eventually
from git_server import GitServer, create_repository, run_git
from porch_client import PorchClient
from replica_fixtures import remote, replicas, url  # noqa: F401 # found by name
from replica_set import SLOW, ReplicaSet, proposed, register

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def clients(replicas: ReplicaSet) -> Iterator[list[PorchClient]]:
    both = replicas.clients()
    yield both
    for client in both:
        client.close()


@pytest.fixture
def repository(request: pytest.FixtureRequest, clients: list[PorchClient], remote: GitServer) -> str:
    name = f"repo-{abs(hash(request.node.name)) % 10**8}"
    create_repository(remote.root / f"{name}.git")
    register(clients, remote, name)
    return name


def refs(remote: GitServer, repository: str) -> dict[str, str]:
    lines = run_git(remote.root / f"{repository}.git", "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def test_each_step_of_a_life_may_be_taken_at_another_replica(
    clients: list[PorchClient], remote: GitServer, repository: str
) -> None:
    one, two = clients
    names = []
    for number in range(4):
        made = one.create_revision(repository, f"package-{number}")
        assert made.code == 201, made.body
        name = made.object["metadata"]["name"]
        saved = two.save(name, {"note.txt": "from two\n"})
        assert saved.code == 200, saved.body
        again = one.save(name, {"other.txt": "from one\n"})
        assert again.code == 200, again.body
        assert again.object["spec"]["resources"]["note.txt"] == "from two\n"
        assert two.propose(name).code == 200
        approved = one.approve(name) if number % 2 else two.approve(name)
        assert approved.code == 200, approved.body
        names.append(name)

    for client in clients:
        for name in names:
            status = client.revision(name).object["status"]
            assert status["publishedBy"]
            assert client.resources(name).object["spec"]["resources"]["other.txt"] == "from one\n"
    tags = [ref for ref in refs(remote, repository) if ref.startswith("refs/tags/")]
    assert sorted(tags) == [f"refs/tags/package-{number}/v1" for number in range(4)]
    eventually(lambda: _no_drafts(remote, repository), SLOW)


def _no_drafts(remote: GitServer, repository: str) -> None:
    assert [
        ref for ref in refs(remote, repository) if ref.startswith(("refs/heads/drafts", "refs/heads/proposed"))
    ] == []


def test_a_draft_that_one_saved_and_pushed_is_edited_at_the_other_without_a_merge(
    clients: list[PorchClient], remote: GitServer, repository: str
) -> None:
    one, two = clients
    name = one.create_revision(repository, "drafted").object["metadata"]["name"]
    for number, client in enumerate([two, one, two]):
        pushed = client.revision(name).object["status"]["selfLock"]["git"]["commit"]
        eventually(partial(_at, remote, repository, "drafts/drafted/v1", pushed), SLOW)
        assert client.save(name, {f"file-{number}": "x\n"}).code == 200
    last = one.revision(name).object["status"]["selfLock"]["git"]["commit"]
    eventually(lambda: _at(remote, repository, "drafts/drafted/v1", last), SLOW)

    path = remote.root / f"{repository}.git"
    assert run_git(path, "rev-list", "--merges", "--count", last) == "0"


def _at(remote: GitServer, repository: str, branch: str, commit: str) -> None:
    assert refs(remote, repository).get(f"refs/heads/{branch}") == commit


def test_approvals_of_one_package_at_both_replicas_get_numbers_of_their_own(
    replicas: ReplicaSet, clients: list[PorchClient], remote: GitServer, repository: str
) -> None:
    one = clients[0]
    first = proposed(one, repository, "shared")
    assert one.approve(first).code == 200
    edit = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
    names = []
    for number in range(6):
        made = clients[number % 2].create_revision(repository, "shared", f"w{number}", tasks=[edit])
        assert made.code == 201, made.body
        names.append(made.object["metadata"]["name"])
        assert clients[number % 2].propose(names[-1]).code == 200

    def approve(number: int) -> int:
        with closing(replicas.members[number % 2].client()) as client:
            return client.approve(names[number]).code

    with ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(approve, range(6)))

    assert codes == [200] * 6
    for client in clients:
        found = [r for r in client.revisions() if r["spec"]["repository"] == repository]
        numbers = sorted(r["spec"].get("revision", 0) for r in found if r["spec"].get("revision", 0) > 0)
        latest = [r["spec"]["revision"] for r in found if "kpt.dev/latest-revision" in r["metadata"].get("labels", {})]
        assert numbers == [1, 2, 3, 4, 5, 6, 7]
        assert latest == [7]
    tags = sorted(ref for ref in refs(remote, repository) if ref.startswith("refs/tags/"))
    assert tags == [f"refs/tags/shared/v{number}" for number in range(1, 8)]


def test_a_package_is_begun_once(replicas: ReplicaSet, repository: str) -> None:
    def begin(number: int) -> int:
        path = "nest/inner" if number % 4 < 2 else "nest"
        with closing(replicas.members[number % 2].client()) as client:
            return client.create_revision(repository, path, f"w{number}").code

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(begin, range(8)))

    assert sorted(codes) == [201] + [409] * 7


def test_an_approval_of_one_proposal_at_both_replicas_publishes_it_once(
    replicas: ReplicaSet, clients: list[PorchClient], remote: GitServer, repository: str
) -> None:
    for round_ in range(5):
        name = proposed(clients[round_ % 2], repository, f"once-{round_}")

        def approve(number: int, name: str = name) -> int:
            with closing(replicas.members[number].client()) as client:
                return client.approve(name).code

        with ThreadPoolExecutor(2) as pool:
            codes = sorted(pool.map(approve, range(2)))
        assert codes in ([200, 409], [200, 200]), (
            codes
        )  # the later one may have read what was published, and change nothing
        assert clients[0].revision(name).object["spec"]["revision"] == 1
    tags = sorted(ref for ref in refs(remote, repository) if ref.startswith("refs/tags/"))
    assert tags == [f"refs/tags/once-{number}/v1" for number in range(5)]


def test_a_published_revision_is_deleted_at_the_replica_that_did_not_publish_it(
    clients: list[PorchClient], remote: GitServer, repository: str
) -> None:
    one, two = clients
    name = proposed(one, repository, "goes")
    assert one.approve(name).code == 200
    assert two.set_lifecycle(name, "DeletionProposed", "approval").code == 200
    gone = two.delete_revision(name)

    assert gone.code == 200, gone.body
    assert "refs/tags/goes/v1" not in refs(remote, repository)
    for client in clients:
        assert client.revision(name).code == 404

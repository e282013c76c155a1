# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""A replica that begins with nothing and fetches for long keeps no other one from publishing."""

import shutil
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from eventually import eventually
from git_server import GitServer, create_repository
from porch_process import PorchProcess
from replica_fixtures import remote, url  # noqa: F401 # found by name
from replica_set import SHARED, SLOW, ReplicaSet, proposed, register, running_replicas

pytestmark = pytest.mark.timeout(600)


def newcomer(replicas: ReplicaSet, folder: Path, url: str) -> PorchProcess:
    """Return one more replica, with the keys of the others and no clones."""
    more = PorchProcess(folder / "newcomer", environment={"PORCH_DATABASE_URL": url, "PORCH_REPLICA_LEASE": "2"})
    more.data.mkdir()
    for name in SHARED:
        shutil.copy(replicas.members[0].data / name, more.data / name)
    return more


def test_others_publish_while_a_new_replica_fetches(tmp_path: Path, url: str, remote: GitServer) -> None:
    create_repository(remote.root / "large.git")
    begun, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        let_go.wait(2 * SLOW)

    with running_replicas(tmp_path, url, 1) as replicas, closing(replicas.members[0].client()) as client:
        register([client], remote, "large")
        assert client.approve(proposed(client, "large", "first")).code == 200
        more = newcomer(replicas, tmp_path, url)
        remote.faults.before_fetch.append(hold)
        try:
            more.start()
            assert begun.wait(SLOW), "the new replica never fetched"

            for number in range(3):
                answer = client.approve(proposed(client, "large", f"meanwhile-{number}"))
                assert answer.code == 200, answer.body
            assert not let_go.is_set()

            let_go.set()
            with closing(more.client()) as other:
                name = eventually(partial(proposed, other, "large", "by-the-new-one"), SLOW)
                assert other.approve(name).code == 200
                published = [one for one in other.revisions() if one["spec"].get("revision", 0) > 0]
                assert len(published) == 5
        finally:
            let_go.set()
            if more.running:
                more.kill()

"""Previews of sets that a cluster keeps: the server in front of it answers what a server that keeps them itself answers.

The cluster is a standalone server, which has all that previews read; the test of the front door is in ``tests/aggregated``.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from drafts import accepted
from git_server import GitServer
from porch_client import PORCH
from porch_process import PorchProcess
from set_place import SetPlace, package_set
from variant_place import Json, new_place

from apiserver.cluster.sets import ClusterSets
from apiserver.machinery.rest import Scope, User, WriteOptions
from apiserver.resources.variant_set_previews import VariantSetPreviews
from krm.client.client import KubeClient, connect
from krm.meta.errors import BadRequest, ServiceUnavailable
from krm.variants.sets.rendering_pool import RenderingPool
from storage.interfaces import Entry, ObjectKey

TEAM = ("krm-platform.bigco.com", "v1", "Team", "teams")
TEAMS = {"objectSelector": {"apiVersion": "krm-platform.bigco.com/v1", "kind": "Team"}}
CLUSTERS = {"repositorySelector": {"matchLabels": {"env": "prod"}}}
CASES: dict[str, list[Json]] = {
    "stored": [CLUSTERS],
    "new": [{"repositories": [{"name": "cluster-01"}]}, TEAMS],
    "no-kind": [{"objectSelector": {"apiVersion": "x.io/v1", "kind": "Nothing"}}],
    "secrets": [{"objectSelector": {"apiVersion": "v1", "kind": "Secret"}}],
    "reviews": [{"objectSelector": {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}}],
    "namespaces": [
        {
            "objectSelector": {"apiVersion": "v1", "kind": "Namespace", "name": "cluster-previews"},
            "template": {"downstream": {"repo": "cluster-02"}},
        }
    ],
    "rolling": [CLUSTERS],
}
SPECS: dict[str, Json] = {"rolling": {"rollout": {"strategy": "Rolling", "settleOn": "Published", "maxInFlight": 2}}}


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """A stored set with one variant of its own, one that is not its own, and a team."""
    made = SetPlace(new_place(porch_server, git_http, "cluster-previews"))
    made.prepare()
    made.define(*TEAM)
    made.add_object(*TEAM, "cluster-04")
    uid = made.add(package_set("stored", CLUSTERS))["metadata"]["uid"]
    for number, labels in ((1, {"config.porch.kpt.dev/packagevariantset": uid}), (2, {})):
        repo = f"cluster-0{number}"
        spec = {
            "upstream": {"repo": "example-repo", "package": "foo"},
            "downstream": {"repo": repo, "package": "foo"},
        }
        metadata = {"name": f"stored-{repo}-foo", "labels": labels}
        body = {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": metadata,
            "spec": spec,
        }
        made.place.create("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", body)
    yield made
    made.place.porch.close()


async def everything(_user: User, _info: Any) -> str | None:
    """Let everybody do everything."""
    return None


async def any_namespace(*_: object) -> None:
    """Accept any namespace."""


@pytest.fixture
async def client(sets: SetPlace) -> AsyncIterator[KubeClient]:
    async with connect(sets.place.server.kubeconfig, agent="test") as made:
        yield made


@pytest.fixture
async def previews(sets: SetPlace, client: KubeClient) -> AsyncIterator[VariantSetPreviews]:
    """The resource, whose package revisions are the cluster's, too."""

    def revisions(_namespace: str, repository: str, package: str) -> list[Entry]:
        found = sets.porch.revisions(f"spec.repository={repository},spec.packageName={package}")
        return [Entry(ObjectKey("", "", ""), 0, 0, "", orjson.dumps(one), {}, ()) for one in found]

    pool = RenderingPool()
    yield VariantSetPreviews(ClusterSets(client, revisions), {False: pool, True: pool}, everything, any_namespace)
    await pool.close()


async def answer(previews: VariantSetPreviews, **spec: Any) -> Json:
    entry = await previews.create(
        Scope("cluster-previews", User("somebody")), {"metadata": {}, "spec": spec}, WriteOptions()
    )
    status: Json = orjson.loads(entry.body)["status"]
    return status


@pytest.mark.parametrize("name", CASES)
async def test_both_answer_alike(sets: SetPlace, previews: VariantSetPreviews, name: str) -> None:
    written = package_set(name, *CASES[name], **SPECS.get(name, {}))
    body = {"kind": "PackageVariantSetPreview", "apiVersion": "porch.kpt.dev/v1alpha1", "spec": {"set": written}}
    path = sets.place.path(PORCH, "packagevariantsetpreviews")
    theirs = accepted(sets.porch.request("POST", path, body))["status"]
    ours = await answer(previews, set=written)

    for one in (theirs, ours):  # when it began
        one.get("rollout", {}).pop("startedAt", None)
    assert ours == theirs
    if name == "stored":
        assert ours["summary"]["failed"] == 1, "one has its name taken"
        assert ours["summary"]["update"] == 1


async def test_a_stored_set_is_found_by_its_name(previews: VariantSetPreviews) -> None:
    assert (await answer(previews, name="stored"))["summary"]["create"] == 2


async def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path, sets: SetPlace) -> None:
    nowhere = tmp_path / "kubeconfig"
    text = sets.place.server.kubeconfig.read_text()
    nowhere.write_text(text.replace(f":{sets.place.server.port}", ":1"))
    async with connect(nowhere, agent="test") as client:
        reader = ClusterSets(client, lambda *_: [])
        body = {"metadata": {"name": "x", "namespace": "cluster-previews"}}

        for question in (
            reader.stored_set("cluster-previews", "stored"),
            reader.resource_of(("v1", "ConfigMap")),
            reader.surroundings(User("somebody"), body, []),
        ):
            with pytest.raises(ServiceUnavailable, match="the cluster cannot be read"):
                await question


async def test_no_more_is_read_than_a_preview_needs(
    sets: SetPlace, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apiserver.cluster.sets.MAX_LISTED", 1)
    body = {"metadata": {"name": "x", "namespace": sets.place.namespace}}

    with pytest.raises(BadRequest, match="more than 1 repositories"):
        await ClusterSets(client, lambda *_: []).surroundings(User("somebody"), body, [])

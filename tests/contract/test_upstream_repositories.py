"""Repositories that an upstream server wrote show the same revisions here (data: a live installation's, ``porch-adopt``)."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import remotes
import yaml
from engine_fixture import Engine, eventually, running_engine

from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from storage.bodies import decode, encode_body
from storage.interfaces import Mutation, ObjectKey, Op

Json = dict[str, Any]
DATA = Path(__file__).parents[1] / "data" / "porch-adopt"
NAMESPACE = "sites"
PIPELINE = "PackagePipelinePassed"
"""Our own gate, which upstream does not have (``decisions.md`` 14)."""


def upstream_revisions() -> dict[str, Json]:
    items = yaml.load((DATA / "packagerevisions.yaml").read_text(), Loader=yaml.CSafeLoader)["items"]
    return {item["metadata"]["name"]: item for item in items}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine with the two repositories registered as they were there."""
    edge = tmp_path / "edge.git"
    remotes.init_bare(edge)
    remotes.git("fetch", "--quiet", str(DATA / "edge.bundle"), "refs/*:refs/*", cwd=edge)
    blueprints = remotes.blueprints_remote(tmp_path / "test-blueprints.git")
    (tmp_path / "data").mkdir()
    async with running_engine(tmp_path / "data") as running:
        for name, path in (("edge", edge), ("blueprints", blueprints)):
            uid = str(uuid.uuid4())
            body = {
                "apiVersion": "config.porch.kpt.dev/v1alpha1",
                "kind": "Repository",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid, "generation": 1},
                "spec": {"type": "git", "deployment": name == "edge", "git": {"repo": path.as_uri()}},
            }
            key = ObjectKey(REPOSITORIES, NAMESPACE, name)
            await running.store.write([Mutation(key, Op.CREATE, 0, uid, encode_body(body))])
        held = [running.repositories.get(NAMESPACE, name) for name in ("edge", "blueprints")]
        await eventually(lambda: all(one.repository.synced for one in held))
        yield running


def comparable(item: Json) -> Json:
    """Return what Git tells, without the remote's address, which differs, and our own gate."""
    spec, status = dict(item["spec"]), dict(item["status"])
    spec["readinessGates"] = [gate for gate in spec.get("readinessGates") or [] if gate["conditionType"] != PIPELINE]
    spec["tasks"] = spec.get("tasks") or []
    status["conditions"] = [one for one in status.get("conditions") or [] if one["type"] != PIPELINE]
    status["selfLock"] = {**status["selfLock"]["git"], "repo": ""}
    if spec.get("revision") == -1:
        # Ours have the task of the revision with the same content, and the commit that brought it (``porch-api.md`` 4.4).
        spec["tasks"], status["selfLock"]["commit"] = [], ""
    metadata = {key: item["metadata"][key] for key in ("name", "namespace", "uid")}
    latest = (item["metadata"].get("labels") or {}).get("kpt.dev/latest-revision")
    return {"metadata": metadata, "latest": latest, "spec": spec, "status": status}


async def test_every_revision_is_as_upstream_showed_it(engine: Engine) -> None:
    theirs = upstream_revisions()

    ours = {entry.name: decode(entry) for entry in engine.store.snapshot("packagerevisions.porch.kpt.dev", NAMESPACE)}

    assert ours.keys() == theirs.keys()
    for name, item in theirs.items():
        assert comparable(ours[name]) == comparable(item), name

"""Previews of sets from values: what of a set counts that is applied over a stored one, and what is kept of a long answer."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from controllers.packagevariantset.cached_values import Member
from krm.variants.revisions import Revision
from krm.variants.sets import preview as preview_module
from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.previewing import as_applied, preview
from krm.variants.sets.progress import VariantState
from krm.variants.sets.rendering import Rendered, render
from krm.variants.sets.rendering_worker import RenderingTooLarge
from krm.variants.sets.targets import Context, Kind, SelectedObject

Json = dict[str, Any]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SET_LABEL = "config.porch.kpt.dev/packagevariantset"
UPSTREAM = {"repo": "blueprints", "package": "web", "revision": 1}
PUBLISHED = {
    "metadata": {"name": "blueprints.web.v1", "namespace": "ns"},
    "spec": {
        "repository": "blueprints",
        "packageName": "web",
        "workspaceName": "v1",
        "revision": 1,
        "lifecycle": "Published",
    },
}


@dataclass
class Around:
    """What there is in a namespace."""

    repository_names: Sequence[str] = ("edge-1", "edge-2", "edge-3")
    variants: dict[str, Json] = field(default_factory=dict)

    def repositories(self) -> Iterable[Json]:
        return ({"metadata": {"name": name, "namespace": "ns"}} for name in self.repository_names)

    def revisions(self, repository: str, package: str) -> Iterable[Json]:
        return [PUBLISHED] if (repository, package) == ("blueprints", "web") else []

    def variants_of(self, set_uid: str) -> Iterable[Json]:
        return [one for one in self.variants.values() if one["metadata"]["labels"][SET_LABEL] == set_uid]

    def variant(self, name: str) -> Json | None:
        return self.variants.get(name)

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        return {}

    def write(self, answer: Json) -> None:
        """Do what the next pass does."""
        for one in answer["targets"]:
            if not one.get("admitted"):
                continue
            if one["action"] == "delete":
                del self.variants[one["name"]]
            else:
                metadata = {"name": one["name"], "namespace": "ns", "uid": one["name"], "labels": {SET_LABEL: "u"}}
                self.variants[one["name"]] = {"metadata": metadata, "spec": one["spec"]}


class InProcess:
    """Renders here."""

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        return render(set_body, upstream, contexts, repositories)


class TooLarge(InProcess):
    """Refuses to render."""

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        raise RenderingTooLarge("it is too much")


def fleet(*targets: Json, **spec: Any) -> Json:
    """Build a stored set."""
    return {
        "metadata": {"name": "fleet", "namespace": "ns", "uid": "u", "generation": 3},
        "spec": {"upstream": UPSTREAM, "targets": list(targets) or [{"repositorySelector": {}}], **spec},
    }


async def told(set_body: Json, around: Around) -> Json:
    return await preview(set_body, around, InProcess(), defaults=GuardDefaults(), now=NOON)


async def test_what_was_admitted_is_unchanged_afterwards() -> None:
    around = Around()
    first = await told(fleet(), around)
    around.write(first)
    second = await told(fleet(), around)
    around.repository_names = ("edge-1",)
    third = await told(fleet({"repositorySelector": {}, "template": {"labels": {"a": "b"}}}), around)
    around.write(third)

    assert first["summary"]["create"] == first["summary"]["admitted"] == 3
    assert (second["summary"]["unchanged"], second["summary"]["admitted"]) == (3, 0)
    assert [(one["action"], one["name"]) for one in third["targets"]] == [
        ("update", "fleet-edge-1-web"),
        ("delete", "fleet-edge-2-web"),
        ("delete", "fleet-edge-3-web"),
    ]
    assert third["targets"][0]["diff"] == [{"path": "spec.labels", "new": {"a": "b"}}]
    assert list(around.variants) == ["fleet-edge-1-web"]


async def test_a_set_that_goes_does_nothing() -> None:
    body = fleet()
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = await told(body, Around())

    assert "targets" not in found
    assert found["warnings"] == [{"message": "the package variant set is being deleted, and its variants with it"}]


async def test_what_cannot_be_rendered_at_all_stalls_the_set() -> None:
    found = await preview(fleet(), Around(), TooLarge(), defaults=GuardDefaults(), now=NOON)

    assert found["conditions"][0] == {
        "type": "Stalled",
        "status": "True",
        "observedGeneration": 3,
        "reason": "UnexpectedError",
        "message": "it is too much",
    }
    assert found["upstream"]["name"] == "blueprints.web.v1"


async def test_a_long_answer_keeps_errors_and_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Around(repository_names=[f"edge-{number}" for number in range(1, 6)])
    around.write(await told(fleet(), around))
    around.repository_names = ["edge-1", "edge-2", "edge-9"]
    targets = [{"repositories": [{"name": name} for name in ("edge-2", "nowhere", "edge-9", "edge-1")]}]
    whole = await told(fleet(*targets, errorPolicy="BestEffort"), around)
    sizes = {one["downstream"]["repo"]: len(orjson.dumps(one)) + 1 for one in whole["targets"]}
    # The failure and all deletions, and no more.
    needed = sum(size for repo, size in sizes.items() if repo not in ("edge-1", "edge-2", "edge-9"))
    monkeypatch.setattr(preview_module, "MAX_BYTES", needed)
    short = await told(fleet(*targets, errorPolicy="BestEffort"), around)

    assert [one["downstream"]["repo"] for one in short["targets"]] == ["nowhere", "edge-3", "edge-4", "edge-5"]
    assert short["summary"] == {**whole["summary"], "omitted": 3}


STORED: Json = {
    "metadata": {
        "name": "fleet",
        "namespace": "ns",
        "uid": "u",
        "generation": 7,
        "annotations": {"a": "1", "b": "1"},
        "labels": {"l": "1"},
        "resourceVersion": "9",
    },
    "spec": {"upstream": UPSTREAM},
    "status": {"observedGeneration": 7},
}


def test_a_set_is_applied_over_the_stored_one() -> None:
    written = {
        "metadata": {"name": "fleet", "annotations": {"b": "2"}, "uid": "theirs", "generation": 99},
        "spec": {"upstream": {**UPSTREAM, "revision": 2}},
        "status": {"rollout": {"phase": "Complete"}},
    }
    same = as_applied({"spec": STORED["spec"]}, STORED, namespace="ns", name="fleet")
    found = as_applied(written, STORED, namespace="ns", name="fleet")
    new = as_applied(written, None, namespace="ns", name="fleet")

    assert same == STORED
    assert found["metadata"] == {**STORED["metadata"], "annotations": {"a": "1", "b": "2"}, "generation": 8}
    assert found["spec"] == written["spec"]
    assert found["status"] == STORED["status"]
    assert (new["metadata"]["uid"], new["metadata"]["generation"], new["status"]) == ("", 1, {})


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("ready", [None, "True", "False", "Unknown"])
@pytest.mark.parametrize("stalled", [None, "True", "False"])
@pytest.mark.parametrize("annotations", [None, {"config.porch.kpt.dev/paused": "true"}])
def test_previews_and_the_controller_read_the_same_of_a_variant(
    published: bool, ready: str | None, stalled: str | None, annotations: Json | None
) -> None:
    told_conditions = {"Ready": ready, "Stalled": stalled}
    conditions = [{"type": kind, "status": value, "reason": "R"} for kind, value in told_conditions.items() if value]
    body: Json = {
        "metadata": {"name": "v", "namespace": "ns", "uid": "1", "generation": 4, "annotations": annotations},
        "spec": {"downstream": {"repo": "r", "package": "p"}},
        "status": {"observedGeneration": 3, "conditions": conditions},
    }

    assert VariantState.of(body, published=published) == Member.of(body).state(published=published)

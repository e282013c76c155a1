"""What the engine counts, seen as a scraper sees it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_fixture import NAMESPACE, Engine, eventually, new_remote, running_engine
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.engine.engine_metrics import EngineMetrics
from apiserver.rules.lifecycle import Door
from krm.functions.step_cache import Lookup
from krm.meta.errors import Conflict, Invalid, StatusError


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
async def engine(tmp_path: Path, remote: Path) -> AsyncIterator[Engine]:
    async with running_engine(tmp_path) as running:
        await running.register("repo", remote)
        yield running


def values(engine: Engine) -> dict[str, float]:
    return samples(engine.registry)


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """Return every sample, named as ``name`` or ``name{value}``, without buckets."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        sample.name + "".join(f"{{{value}}}" for value in sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if "le" not in sample.labels
    }


async def test_pushes_are_counted_by_what_became_of_them(engine: Engine, remote: Path) -> None:
    names = [(await engine.create(package)).name for package in ("one", "two", "three")]
    for name in names:
        await engine.move(name, "Proposed")
    await eventually(lambda: values(engine)["porch_outbox_drafts"] == 0)
    before = values(engine)

    await asyncio.gather(*(engine.approve(name) for name in names))

    after = values(engine)
    pushes = after["porch_git_push_jobs_count"] - before["porch_git_push_jobs_count"]
    jobs = after["porch_git_push_jobs_sum"] - before["porch_git_push_jobs_sum"]
    assert 1 <= pushes <= 3
    assert jobs >= 3
    assert after["porch_git_push_duration_seconds_count{pushed}"] == after["porch_git_push_jobs_count"]
    hook = remote / "hooks" / "update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    await engine.create("four")
    await eventually(lambda: values(engine).get("porch_git_push_duration_seconds_count{refused}", 0) >= 1)
    await eventually(lambda: values(engine)["porch_outbox_drafts"] == 1)
    assert values(engine)["porch_outbox_bytes"] > 100
    assert values(engine)["porch_outbox_oldest_seconds"] > 0


async def test_revisions_are_counted_in_the_lifecycle_they_are_in(engine: Engine) -> None:
    name = (await engine.create("app")).name
    other = (await engine.create("other")).name
    await engine.move(name, "Proposed")

    assert values(engine)["porch_package_revisions{Draft}"] == 1
    assert values(engine)["porch_package_revisions{Proposed}"] == 1
    await engine.approve(name)
    await engine.delete(other)

    found = values(engine)
    assert found["porch_package_revisions{Draft}"] == 0
    assert found["porch_package_revisions{Published}"] == 2, "the revision, and the one of the branch"
    assert found["porch_repositories{ready}"] == 1


async def test_a_repository_that_cannot_be_read_is_counted_as_failing(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await engine.register("gone", tmp_path / "nowhere")
    await eventually(lambda: values(engine)["porch_repositories{failing}"] == 1)
    await eventually(lambda: values(engine).get("porch_repository_sync_duration_seconds_count{failed}", 0) >= 1)

    found = values(engine)

    assert found["porch_repository_sync_duration_seconds_count{failed}"] >= 1
    assert found["porch_repository_sync_duration_seconds_count{changed}"] == 1


async def test_the_oldest_look_is_that_of_the_repository_that_is_left_behind(engine: Engine, tmp_path: Path) -> None:
    young = values(engine)["porch_repository_oldest_sync_seconds"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await engine.register("gone", tmp_path / "nowhere")
    await eventually(lambda: values(engine)["porch_repositories{failing}"] == 1)
    held = engine.repositories.get(NAMESPACE, "gone")

    held.looked -= 1000
    assert values(engine)["porch_repository_oldest_sync_seconds"] >= 1000 > young

    new_remote(tmp_path / "nowhere")
    held.wake.set()
    await eventually(lambda: values(engine)["porch_repository_oldest_sync_seconds"] < 1000)


async def test_writes_that_meet_are_counted(engine: Engine) -> None:
    name = (await engine.create("app")).name

    outcomes = await asyncio.gather(*(engine.save(name, a_txt=str(n)) for n in range(4)), return_exceptions=True)

    refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict) and "in progress" in outcome.message]
    assert refused
    assert values(engine)["porch_claims_refused_total"] == len(refused)
    assert values(engine)["porch_claims_held"] == 0


async def test_renders_are_counted_by_whose_fault_it_was(engine: Engine) -> None:
    name = (await engine.create("app")).name
    before = values(engine)
    with pytest.raises(Invalid):
        await engine.save(name, broken_yaml="a: [\n")
    with pytest.raises(StatusError):
        await engine.save(name, Kptfile="pipeline: {mutators: [{image: nobody.example/knows:v1}]}\n")

    after = values(engine)

    assert after["porch_render_duration_seconds_count{failed}"] > before.get(
        "porch_render_duration_seconds_count{failed}", 0
    )
    assert after["porch_renders_in_progress"] == 0


def test_functions_that_are_not_built_in_make_one_series() -> None:
    registry = CollectorRegistry()
    metrics, name = EngineMetrics(registry), "porch_function_cache_lookups_total"
    own = [f"registry.example/{function}:v1" for function in ("starlark", "one", "two")]
    built_in = ["ghcr.io/kptdev/krm-functions-catalog/starlark:v0.5.0", "gcr.io/kpt-fn/starlark:v0.4.3"]
    metrics.functions_looked_up({Lookup(image, found): 2 for image in own + built_in for found in (True, False)})
    metrics.functions_looked_up({Lookup("builtins/gen-pkg-context:v0.1.0", True): 1})

    assert {labels: value for labels, value in samples(registry).items() if labels.startswith(name)} == {
        f"{name}{{starlark}}{{hit}}": 4,
        f"{name}{{starlark}}{{miss}}": 4,
        f"{name}{{other}}{{hit}}": 6,
        f"{name}{{other}}{{miss}}": 6,
        f"{name}{{gen-pkg-context}}{{hit}}": 1,
    }


async def test_the_wait_of_a_proposal_is_counted_once_it_is_published(engine: Engine, remote: Path) -> None:
    waiting, rejected, refused = [await proposed(engine, package, "repo") for package in ("app", "other", "third")]
    await eventually(lambda: values(engine)["porch_proposals_oldest_seconds"] > 0.05)
    await engine.move(rejected, "Draft", Door.APPROVAL)
    hook = remote / "hooks" / "update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(StatusError):
        await engine.approve(refused)

    assert values(engine)["porch_approval_wait_seconds_count"] == 0
    assert values(engine)["porch_proposals_oldest_seconds"] > 0.05
    hook.unlink()
    await engine.approve(waiting)
    await engine.approve(refused)
    found = values(engine)
    assert found["porch_approval_wait_seconds_count"] == 2
    assert found["porch_approval_wait_seconds_sum"] > 0.05
    assert found["porch_proposals_oldest_seconds"] == 0


async def test_series_do_not_grow_with_what_there_is(engine: Engine, tmp_path: Path) -> None:
    await engine.approve(await proposed(engine, "first", "repo"))
    before = set(values(engine))
    for number in range(3):
        await engine.register(f"repo{number}", new_remote(tmp_path / f"{number}.git"))
        await engine.approve(await proposed(engine, "app", f"repo{number}"))

    assert set(values(engine)) - before <= {
        "porch_repository_sync_duration_seconds_count{unchanged}",
        "porch_repository_sync_duration_seconds_sum{unchanged}",
    }


async def proposed(engine: Engine, package: str, repository: str) -> str:
    name = (await engine.create(package, repository)).name
    await engine.move(name, "Proposed")
    return name

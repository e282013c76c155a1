"""Nobody reaches Proposed or Published with an unmet gate, whatever they do before. Source: ``decisions.md`` 14.

Random walks through everything that a client can do to a revision. Whether gates are met is computed here from the files
alone: the Kptfile's gates and conditions, and whether its pipeline can run. In the end, a server that knows nothing but the
remote has to come to the same gates and conditions.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from engine_fixture import NAMESPACE, Engine, Json, new_remote, running_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.rules.lifecycle import Door
from krm.meta.errors import StatusError
from storage.bodies import decode

NO_FUNCTION = "example.com/no-such-function:v1"
TYPES = ("acme.com/a", "acme.com/b", "PackagePipelinePassed", "Rendered")
STATUSES = ("True", "False", "Unknown")

types = st.sampled_from(TYPES)
condition_lists = st.dictionaries(types, st.sampled_from(STATUSES)).map(
    lambda chosen: [{"type": name, "status": status, "message": "m"} for name, status in chosen.items()]
)
gate_lists = st.lists(types, unique=True)
lifecycles = st.sampled_from(("Draft", "Proposed", "Published", "DeletionProposed"))
doors = st.sampled_from((Door.MAIN, Door.APPROVAL))
ACTIONS = st.one_of(
    st.tuples(st.just("put"), lifecycles, doors, st.none() | gate_lists, st.none() | condition_lists, st.booleans()),
    st.tuples(st.just("put"), st.just("Proposed"), st.just(Door.MAIN), st.none(), st.none(), st.just(value=False)),
    st.tuples(st.just("put"), st.just("Published"), st.just(Door.APPROVAL), st.none(), st.none(), st.just(value=False)),
    st.tuples(st.just("save"), gate_lists, condition_lists, st.booleans()),
    st.tuples(st.just("keep"), st.booleans()),
    st.tuples(st.just("label"), st.sampled_from(("x", "y"))),
)


@dataclass
class Running:
    """An engine that lives on between the examples of a test, and names for its packages."""

    runner: asyncio.Runner
    engine: Engine
    remote: Path
    names: Iterator[int]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    stack = AsyncExitStack()
    remote = new_remote(tmp_path / "remote.git")

    async def start() -> Engine:
        engine = await stack.enter_async_context(running_engine(tmp_path))
        await engine.register("repo", remote)
        return engine

    with asyncio.Runner() as runner:
        yield Running(runner, runner.run(start()), remote, itertools.count())
        runner.run(stack.aclose())


def kptfile(package: str, gates: list[str], conditions: list[Json], *, fails: bool) -> str:
    made: Json = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": package}}
    made["info"] = {"readinessGates": [{"conditionType": gate} for gate in gates]}
    made["status"] = {"conditions": conditions}
    if fails:
        made["pipeline"] = {"mutators": [{"image": NO_FUNCTION}]}
    return yaml.safe_dump(made)


def is_ready(text: str) -> bool:
    """Tell from a Kptfile alone whether the package may go out."""
    found = yaml.safe_load(text)
    if NO_FUNCTION in text:
        return False
    gates = [gate["conditionType"] for gate in (found.get("info") or {}).get("readinessGates") or ()]
    conditions = (found.get("status") or {}).get("conditions") or ()
    met = {each["type"] for each in conditions if each.get("status") == "True"}
    return all(gate in met for gate in gates if gate != "PackagePipelinePassed")


async def act(engine: Engine, name: str, action: tuple[Any, ...]) -> None:
    """Do one thing to a revision; that it is refused is fine."""
    kind, *rest = action
    package = name.split(".")[1]
    try:
        if kind == "put":
            lifecycle, door, gates, conditions, bypass = rest
            await engine.service.update(
                NAMESPACE, name, putting(lifecycle, gates, conditions, bypass), "eve", door, dry_run=False
            )
        elif kind == "save":
            gates, conditions, fails = rest
            await engine.save(name, Kptfile=kptfile(package, gates, conditions, fails=fails))
        elif kind == "keep":
            await engine.service.update(NAMESPACE, name, keeping(rest[0]), "eve", Door.MAIN, dry_run=False)
        else:
            await engine.service.update(NAMESPACE, name, labelling(rest[0]), "eve", Door.MAIN, dry_run=False)
    except StatusError:
        return


def putting(
    lifecycle: str, gates: list[str] | None, conditions: list[Json] | None, bypass: bool
) -> Callable[[Json], Json]:
    def change(body: Json) -> Json:
        body["spec"]["lifecycle"] = lifecycle
        if gates is not None:
            body["spec"]["readinessGates"] = [{"conditionType": gate} for gate in gates]
        if conditions is not None:
            body["status"]["conditions"] = conditions
        if bypass:
            body["metadata"].setdefault("annotations", {})["porch.kpt.dev/bypass-gates"] = "because"
        return body

    return change


def keeping(keep: bool) -> Callable[[Json], Json]:
    def change(body: Json) -> Json:
        body["metadata"]["annotations"] = {"porch.kpt.dev/push-on-render-failure": str(keep).lower()}
        return body

    return change


def labelling(value: str) -> Callable[[Json], Json]:
    def change(body: Json) -> Json:
        body["spec"]["packageMetadata"] = {"labels": {"label": value}}
        return body

    return change


async def rebuilt(engine: Engine, remote: Path, folder: Path) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return gates, conditions and lifecycles as they are, and as a server that knows only the remote finds them."""
    async with asyncio.timeout(60):
        while await engine.store.outbox.parcels(f"{NAMESPACE}/repo"):
            await asyncio.sleep(0.05)
    async with running_engine(folder) as other:
        await other.register("repo", remote)
        return shown(engine), shown(other)


def shown(engine: Engine) -> dict[str, Json]:
    bodies = [decode(entry) for entry in engine.index.revisions(NAMESPACE, "repo")]
    return {
        body["metadata"]["name"]: {
            "lifecycle": body["spec"]["lifecycle"],
            "gates": body["spec"]["readinessGates"],
            "conditions": body["status"]["conditions"],
        }
        for body in bodies
    }


def test_no_walk_ends_with_an_unready_package_proposed_or_published(running: Running, tmp_path: Path) -> None:
    engine = running.engine
    reached: set[str] = set()

    @settings(max_examples=60, deadline=None, database=None)
    @given(actions=st.lists(ACTIONS, min_size=2, max_size=10))
    def walk(actions: list[tuple[Any, ...]]) -> None:
        async def walk_through() -> None:
            name = (await engine.create(f"app{next(running.names)}")).name
            for action in actions:
                before = engine.body(name)["spec"]["lifecycle"]
                await act(engine, name, action)
                after = engine.body(name)["spec"]["lifecycle"]
                if after in {"Proposed", "Published"} and before != after:
                    text = (await engine.contents(name))["Kptfile"].data.decode()
                    assert is_ready(text), (action, text)
                    reached.add(after)

        running.runner.run(walk_through())

    walk()

    assert reached == {"Proposed", "Published"}, "walks that never arrive prove nothing"
    folder = tmp_path / "rebuilt"
    folder.mkdir()
    before, after = running.runner.run(rebuilt(engine, running.remote, folder))
    assert after == before
    assert any(each["conditions"][0]["status"] == "False" for each in after.values())

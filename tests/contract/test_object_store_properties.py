# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Concurrent writers against a model of one dictionary: who wins, what is told, what is kept."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from object_store_cases import (
    RESOURCE,
    create,
    delete,
    key,
    new_sqlite,
    open_store,
    sqlite_template,  # noqa: F401 # fixtures are found by name
    update,
)

from storage.interfaces import Entry, Event, ListQuery, Mutation, Op, StaleWrite

NAMES = ("a", "b", "c")
Step = tuple[Op, str, bool]
steps = st.tuples(st.sampled_from(Op), st.sampled_from(NAMES), st.booleans())
rounds = st.lists(st.lists(steps, min_size=1, max_size=6), min_size=1, max_size=8)


def mutation_of(step: Step, number: int, seen: dict[str, list[Entry]]) -> Mutation:
    """A writer's wish, by what it saw: the newest entry, or on purpose an older one."""
    op, name, old = step
    known = seen.get(name, [])
    if op is Op.CREATE or not known:
        return create(name, colour=str(number))
    entry = known[0] if old else known[-1]
    return update(entry, colour=str(number)) if op is Op.UPDATE else delete(entry)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(rounds=rounds)
def test_exactly_the_first_of_those_who_saw_the_newest_revision_wins(
    sqlite_template: Path,
    rounds: list[list[Step]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(new_sqlite(sqlite_template, Path(folder)), rounds))


async def _run(path: Path, rounds: list[list[Step]]) -> None:
    model: dict[str, int] = {}
    states: dict[int, dict[str, int]] = {0: {}}
    seen: dict[str, list[Entry]] = {}
    rv = number = 0
    async with open_store(path) as store:
        _, watch = store.watch(RESOURCE, namespace=None, after=0)
        for wishes in rounds:
            mutations = [mutation_of(step, number + offset, seen) for offset, step in enumerate(wishes)]
            number += len(wishes)
            results = await asyncio.gather(*[store.write([one]) for one in mutations], return_exceptions=True)
            for mutation, result in zip(mutations, results, strict=True):
                name = mutation.key.name
                if model.get(name, 0) == mutation.prev_rv:
                    assert not isinstance(result, BaseException)
                    rv += 1
                    assert result[0].rv == rv
                    seen.setdefault(name, []).append(result[0])
                    model[name] = rv
                    if mutation.op is Op.DELETE:
                        del model[name]
                    states[rv] = dict(model)
                else:
                    assert isinstance(result, StaleWrite)
                    assert result.current_rv == model.get(name, 0)
            assert {entry.name: entry.rv for entry in store.snapshot(RESOURCE)} == model
        for at, state in states.items():
            page = await store.list(RESOURCE, ListQuery(at=at))
            assert {entry.name: entry.rv for entry in page.entries} == state
        events: list[Event] = []
        while len(events) < rv:
            events.extend(await anext(aiter(watch)))
        assert _replayed(events) == model
    async with open_store(path) as store:
        assert {entry.name: entry.rv for entry in store.snapshot(RESOURCE)} == model
        assert store.get(key("never")) is None


def _replayed(events: list[Event]) -> dict[str, int]:
    """Believe only the events, as an informer does."""
    state: dict[str, int] = {}
    for event in events:
        name = event.entry.name
        assert (event.previous.rv if event.previous else 0) == state.get(name, 0)
        if event.type == "DELETED":
            del state[name]
        else:
            assert (event.type == "ADDED") == (name not in state)
            state[name] = event.rv
    return state

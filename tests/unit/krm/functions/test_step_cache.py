"""Remembering single slow functions: a hit leaves resources exactly as running the function would."""

import time
from collections.abc import Callable

import pytest
from render_packages import CONFIG_MAP, OwnFunctions, mutate, package

from krm.functions import step_cache
from krm.functions.pipeline import render
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.functions.size_bound import SizeBound
from krm.functions.step_cache import Lookup, StepCache


def _slow(
    change: Callable[[list[Resource]], list[Resource] | None],
) -> Callable[[list[Resource]], list[Resource] | None]:
    def slow(items: list[Resource]) -> list[Resource] | None:
        time.sleep(0.01)
        return change(items)

    return slow


def _everything(items: list[Resource]) -> list[Resource]:
    """Change, move, delete and add; the Kptfile is the first."""
    items[1].data["data"]["x"] = "changed"
    items[2].path = "moved.yaml"
    items[2].set_text("# rewritten\n" + items[2].text())
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}}
    return [*items[:3], Resource(made)]


PACKAGE = package(mutate("x"), a_yaml=CONFIG_MAP, b_yaml=CONFIG_MAP, c_yaml=CONFIG_MAP)


def test_slow_function_is_remembered_from_its_second_call_on() -> None:
    runner, cache = OwnFunctions(_slow(_everything)), StepCache(1 << 20)

    outcomes = [render(PACKAGE, runner, step_cache=cache) for _ in range(4)]

    assert runner.calls == ["x", "x"]
    assert all(outcome.contents == outcomes[0].contents for outcome in outcomes)
    assert all(outcome.results == outcomes[0].results for outcome in outcomes)
    assert set(outcomes[3].contents) == {"Kptfile", "a.yaml", "moved.yaml", "secret_made.yaml"}


def test_lookups_are_counted_until_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_cache, "_SLOW_CALL", 60.0)
    cache, resource = StepCache(1 << 20), Resource({"apiVersion": "v1", "kind": "B"}, path="a.yaml")

    def call(image: str) -> None:
        cache.run(image, ResourceList([resource]), lambda resources: FunctionResult(resources.items))

    call("quick:v1")
    monkeypatch.setattr(step_cache, "_SLOW_CALL", -1.0)
    monkeypatch.setattr(step_cache, "_SLOW_RESOURCE", -1.0)
    for image in ("slow:v1", "slow:v1", "slow:v1", "slow:v1", "other:v1", "other:v1"):
        call(image)

    assert cache.take_lookups() == {
        Lookup("slow:v1", False): 1,
        Lookup("slow:v1", True): 2,
        Lookup("other:v1", False): 1,
    }
    assert cache.take_lookups() == {}


def test_quick_function_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_cache, "_SLOW_CALL", 60.0)  # however busy the machine is
    runner, cache = OwnFunctions(_everything), StepCache(1 << 20)

    for _ in range(4):
        render(PACKAGE, runner, step_cache=cache)

    assert len(runner.calls) == 4


def test_function_that_may_do_otherwise_is_not() -> None:
    runner, cache = OwnFunctions(_slow(_everything), deterministic=False), StepCache(1 << 20)

    for _ in range(4):
        render(PACKAGE, runner, step_cache=cache)

    assert len(runner.calls) == 4


@pytest.mark.parametrize(
    "other",
    [
        Resource({"apiVersion": "v1"}, path="a.yaml"),
        Resource({"apiVersion": "v1", "kind": "B"}, path="b.yaml"),
        Resource({"apiVersion": "v1", "kind": "B"}, path="a.yaml", index=1),
        Resource({"apiVersion": "v1", "kind": "B"}, path="a.yaml", package="sub"),
        Resource({"kind": "B", "apiVersion": "v1"}, path="a.yaml"),
        Resource.of_document({"apiVersion": "v1", "kind": "B"}, "apiVersion: v1 # c\nkind: B\n", path="a.yaml"),
    ],
    ids=["data", "path", "index", "package", "order", "comment"],
)
def test_any_difference_of_the_input_runs_the_function(other: Resource) -> None:
    calls = 0

    def call(resources: ResourceList) -> FunctionResult:
        nonlocal calls
        calls += 1
        time.sleep(0.01)
        return FunctionResult(resources.items)

    cache = StepCache(1 << 20)
    first = Resource({"apiVersion": "v1", "kind": "B"}, path="a.yaml")
    for resource in (first, first, first, other):
        cache.run("x:v1", ResourceList([resource]), call)

    assert calls == 3


@pytest.mark.parametrize(
    "other",
    [
        FunctionConfig({"a": "c"}, "f.yaml", {"a": 1}, "a: 1 # one\n"),
        FunctionConfig({"a": "1"}, "g.yaml", {"a": 1}, "a: 1 # one\n"),
        FunctionConfig({"a": "1"}, "f.yaml", {"a": "1"}, "a: 1 # one\n"),
        FunctionConfig({"a": "1"}, "f.yaml", {"a": 1}, "a: 1 # two\n"),
        None,
    ],
    ids=["data", "path", "types", "comment", "none"],
)
def test_any_difference_of_the_configuration_runs_the_function(other: FunctionConfig | None) -> None:
    calls = 0

    def call(resources: ResourceList) -> FunctionResult:
        nonlocal calls
        calls += 1
        time.sleep(0.01)
        return FunctionResult(resources.items)

    cache = StepCache(1 << 20)
    config = FunctionConfig({"a": "1"}, "f.yaml", {"a": 1}, "a: 1 # one\n")
    for given in (config, config, config, other):
        cache.run("x:v1", ResourceList([Resource({"kind": "B"}, path="a.yaml")], given), call)

    assert calls == 3


def test_bound_forgets_what_was_used_least_recently() -> None:
    bound: SizeBound[str, int] = SizeBound(1000)
    for number, key in enumerate("abc"):
        bound.put(key, number, 100)
    bound.get("a")

    bound.put("d", 3, 100)

    assert [bound.get(key) for key in "abcd"] == [0, None, 2, 3]
    assert bound.size <= 1000


def test_bound_refuses_what_is_larger_than_itself() -> None:
    bound: SizeBound[str, int] = SizeBound(1000)
    bound.put("a", 1, 10)

    bound.put("a", 2, 2000)

    assert bound.get("a") is None
    assert (len(bound), bound.size) == (0, 0)

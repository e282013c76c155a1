"""Whatever functions do, a render answers, and its answer is all or nothing."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from render_packages import CONFIG_MAP, OwnFunctions, annotated, mutate, package

from krm.functions.pipeline import render
from krm.functions.render_cache import RenderCache
from krm.functions.resource import Resource
from krm.package.contents import Contents, File, path_problem
from krm.package.yaml_reader import read_documents

SAVE = "save-on-render-failure"
NAMES = ("config.kubernetes.io/path", "internal.config.kubernetes.io/path", "config.kubernetes.io/index", "note")
PATHS = st.sampled_from(
    [
        "a.yaml",
        "b.yaml",
        "sub/c.yaml",
        "new/d.yaml",
        "e.json",
        "Kptfile",
        "",
        ".",
        "sub",
        "../x",
        "/x",
        "a.yaml/x",
        "c/",
    ]
) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
Action = Callable[[list[Resource], int], None]


def _move(path: str) -> Action:
    def act(items: list[Resource], place: int) -> None:
        items[place].path = path

    return act


def _renumber(index: int | None) -> Action:
    def act(items: list[Resource], place: int) -> None:
        items[place].index = index

    return act


def _annotate(name: str, value: Any) -> Action:
    def act(items: list[Resource], place: int) -> None:
        items[place].data["metadata"]["annotations"] = {name: value}

    return act


def _change(key: str, value: Any) -> Action:
    def act(items: list[Resource], place: int) -> None:
        items[place].data[key] = value

    return act


def _delete(items: list[Resource], place: int) -> None:
    del items[place]


def _double(items: list[Resource], place: int) -> None:
    items.append(items[place])


def _add(items: list[Resource], place: int) -> None:
    items.insert(place, Resource({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{len(items)}"}}))


ACTIONS = st.one_of(
    PATHS.map(_move),
    st.one_of(st.none(), st.integers(-1, 3)).map(_renumber),
    st.builds(_annotate, st.sampled_from(NAMES), PATHS | st.integers(0, 3)),
    st.builds(_change, st.sampled_from(["data", "kind", "metadata", "spec"]), VALUES),
    st.sampled_from([_delete, _double, _add]),
)


def _function(actions: list[tuple[Action, int]]) -> Callable[[list[Resource]], None]:
    def run(items: list[Resource]) -> None:
        for act, place in actions:
            if items:
                act(items, place % len(items))

    return run


def _package(*, saves: bool) -> dict[str, File]:
    contents = package(mutate("x", "y"), a_yaml=f"{CONFIG_MAP}---\n# second\n{CONFIG_MAP}", b_yaml=CONFIG_MAP)
    contents |= {"sub/Kptfile": package()["Kptfile"], "sub/c.yaml": File(CONFIG_MAP.encode()), "logo": File(b"\xff")}
    return annotated(contents, SAVE) if saves else contents


def _check(given_: Contents, contents: Contents) -> None:
    """Whatever was written is a sound package, and what no function saw is what it was."""
    assert contents["logo"] is given_["logo"]
    for path, file in contents.items():
        assert path_problem(path) == ""
        if path != "logo":
            read_documents(file.data)
    assert not any(
        f"{path}/" in f"{other}/"[: len(path) + 1] for path in contents for other in contents if path != other
    )


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(ACTIONS, st.integers(0, 9)), max_size=4),
    st.lists(st.tuples(ACTIONS, st.integers(0, 9)), max_size=4),
    st.booleans(),
)
def test_functions_can_do_what_they_like(
    first: list[tuple[Action, int]], second: list[tuple[Action, int]], saves: bool
) -> None:
    contents = _package(saves=saves)
    runner = OwnFunctions({"x": _function(first), "y": _function(second)})

    rendered = render(contents, runner)

    _check(contents, rendered.contents)
    if rendered.failed:
        assert rendered.error
        assert rendered.cause
        if not saves:
            changed = {path for path, file in rendered.contents.items() if file is not contents.get(path)}
            assert changed <= {"Kptfile"}
            assert rendered.contents.keys() == contents.keys()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 9)), max_size=4))
def test_remembered_renders_are_what_any_function_gives(actions: list[tuple[Action, int]]) -> None:
    runner = OwnFunctions(_function(actions))
    cache = RenderCache(1 << 20)
    contents: Contents = _package(saves=False)
    for _ in range(3):
        remembered = render(contents, runner, cache=cache)
        plain = render(contents, runner)
        assert (remembered.contents, remembered.error) == (plain.contents, plain.error)
        contents = plain.contents
        if "logo" not in contents or "Kptfile" not in contents:
            break

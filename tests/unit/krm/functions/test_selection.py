"""Selectors and exclusions of a step: ``kpt.md`` 2.6."""

from typing import Any

import pytest
from render_packages import OwnFunctions, mutate, package

from krm.functions.pipeline import render
from krm.functions.resource import Resource
from krm.functions.selection import selected
from krm.package.contents import File
from krm.package.kptfile import Function, Selector


def _resource(name: str, kind: str = "ConfigMap", **metadata: Any) -> Resource:
    return Resource({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}})


ITEMS = [
    _resource("a", namespace="prod", labels={"tier": "db", "app": "x"}),
    _resource("b", "Secret", annotations={"note": "1"}),
    _resource("c", labels={"tier": 1, "on": True}),
]


def _names(function: Function) -> str:
    return "".join(item.data["metadata"]["name"] for item in selected(ITEMS, function))


@pytest.mark.parametrize(
    ("selectors", "exclude", "chosen"),
    [
        ((), (), "abc"),
        ((Selector(),), (), "abc"),
        ((Selector(kind="Secret"),), (), "b"),
        ((Selector(kind="Secret"), Selector(name="b")), (), "b"),
        ((Selector(kind="Secret"), Selector(name="a")), (), "ab"),
        ((Selector(kind="Secret", name="a"),), (), ""),
        ((Selector(kind="secret"),), (), ""),
        ((Selector(name="*"),), (), ""),
        ((Selector(api_version="v1"),), (), "abc"),
        ((Selector(namespace="prod"),), (), "a"),
        ((Selector(labels={"tier": "db"}),), (), "a"),
        ((Selector(labels={"tier": "db", "app": "y"}),), (), ""),
        ((Selector(labels={"tier": "1", "on": "true"}),), (), "c"),
        ((Selector(annotations={"note": "1"}),), (), "b"),
        ((), (Selector(),), "abc"),
        ((), (Selector(kind="Secret"), Selector(name="a")), "c"),
        ((Selector(kind="ConfigMap"),), (Selector(name="a"),), "c"),
    ],
)
def test_selectors_choose(selectors: tuple[Selector, ...], exclude: tuple[Selector, ...], chosen: str) -> None:
    assert _names(Function(image="x", selectors=selectors, exclude=exclude)) == chosen


def test_selected_resources_are_replaced_in_place_and_others_stay() -> None:
    text = "---\n".join(f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: r{kind}\n" for kind in ("A", "B", "A", "C"))
    text = text.replace("rA", "first", 1)
    pipeline = mutate("x") + "    selectors:\n    - kind: A\n"

    def change(items: list[Resource]) -> list[Resource]:
        made = {"apiVersion": "v1", "kind": "D", "metadata": {"name": "made"}}
        items[1].data["data"] = {}
        return [items[1], Resource(made, path="a.yaml", index=9)]

    rendered = render(package(pipeline, a_yaml=text), OwnFunctions(change))

    kinds = [line for line in rendered.contents["a.yaml"].data.decode().splitlines() if line.startswith("  name")]
    assert kinds == ["  name: rB", "  name: rA", "  name: rC", "  name: made"]
    assert rendered.steps[0].selected == 2


def test_resource_that_two_selectors_match_is_handed_over_once() -> None:
    seen: list[int] = []
    many = {f"d{n}.yaml": File(f"apiVersion: v1\nkind: A\nmetadata:\n  name: n{n}\n".encode()) for n in range(300)}
    pipeline = mutate("x") + "    selectors:\n    - kind: A\n    - apiVersion: v1\n"

    render({**package(pipeline), **many}, OwnFunctions(lambda items: seen.append(len(items))))

    assert seen == [300]

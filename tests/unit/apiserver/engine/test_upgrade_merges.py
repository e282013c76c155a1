"""Upgrades of any packages by any strategy: a second one changes nothing, and nothing of the package's own is lost."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.engine.package_work import Made, MergeWork
from apiserver.engine.sources import Upstream
from apiserver.engine.upgrading import STRATEGIES
from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import render
from krm.package.clone import clone_package
from krm.package.contents import Contents, File
from krm.package.kptfile import parse_kptfile
from krm.package.package_context import package_path

NAME = "nets/core"
KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: blue
pipeline:
  mutators:
  - image: set-labels:v0.2
    configMap:
      team: {team}
"""
RESOURCE = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  size: "{size}"  # of {name}
  colour: {colour}
"""
names = st.sampled_from(["a", "b", "c", "sub/d"])
resource = st.builds(
    lambda size, colour: RESOURCE.replace("{size}", str(size)).replace("{colour}", colour),
    st.integers(0, 2),
    st.sampled_from(["red", "blue"]),
)


@st.composite
def packages(draw: st.DrawFn) -> dict[str, File]:
    files = {f"{name}.yaml": draw(resource).replace("{name}", name[-1]) for name in draw(st.sets(names))}
    files |= {f"{name}.txt": draw(st.sampled_from(["one\n", "two\n"])) for name in draw(st.sets(names))}
    files["Kptfile"] = KPTFILE.replace("{team}", draw(st.sampled_from(["x", "y"])))
    if draw(st.booleans()):
        files["package-context.yaml"] = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: example\n"
        )
    return {path: File(text.encode()) for path, text in files.items()}


def upstream(contents: Contents, revision: str) -> Upstream:
    return Upstream(dict(contents), "https://git.example/up", "blue", f"blue/{revision}", revision * 20, revision)


def rendered(contents: Contents) -> dict[str, File]:
    done = render(contents, BuiltinRunner())
    assert not done.failed, done.error
    return dict(done.contents)


def clone_of(source: Upstream) -> dict[str, File]:
    section, lock = source.locks()
    clone = clone_package(source.contents, name=NAME, upstream=section, upstream_lock=lock, context_path=NAME)
    return rendered(clone)


def upgraded(strategy: str, old: Upstream, new: Upstream, local: Contents) -> Made:
    return MergeWork(NAME, strategy, old.contents, new.contents, local, *new.locks(), deployment=True).run()


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(old=packages(), new=packages(), edits=packages())
def test_an_upgrade_is_rendered_and_repeated_without_a_change(strategy: str, old: Any, new: Any, edits: Any) -> None:
    before, after = upstream(old, "v1"), upstream(new, "v2")
    local = clone_of(before)
    if strategy != "fast-forward":
        local |= {path: file for path, file in edits.items() if path.endswith(".txt")}

    result = upgraded(strategy, before, after, local)
    if result.problem:
        assert strategy == "fast-forward", "the pipeline edited files, too"
        return
    once = rendered(result.contents)

    assert rendered(once) == once
    kptfile = parse_kptfile(once["Kptfile"].data)
    assert kptfile.name == "nets/core"
    assert kptfile.upstream_lock == after.locks()[1]
    assert package_path(once) == "nets/core"
    again = upgraded(strategy, after, after, once)
    if strategy == "resource-merge":
        assert again.contents == once
    assert rendered(again.contents) == once


def plain(**files: bytes | File) -> dict[str, File]:
    named = {path.replace("__", "/").replace("_", "."): file for path, file in files.items()}
    made = {path: file if isinstance(file, File) else File(file) for path, file in named.items()}
    return {"Kptfile": File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: blue\n"), **made}


def merge(strategy: str, old: Contents, new: Contents, local: Contents) -> Made:
    section, lock = upstream(new, "v2").locks()
    return MergeWork(NAME, strategy, old, new, local, section, lock, deployment=False).run()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_byte_and_no_mode_is_lost_by_an_upgrade(strategy: str) -> None:
    script, picture = File(b"#!/bin/sh\r\n\xff\n", 0o100755), File(b"\x89PNG\0\xff")
    link, empty = File(b"run.sh", 0o120000), File(b"")
    old = plain(run_sh=script, picture_png=picture, link_txt=link, empty_yaml=empty, crlf_txt=b"a\r\nb\r\n")
    new = {**old, "new.bin": File(b"\0\1")}

    made = merge(strategy, old, new, old)

    assert made.problem == ""
    kept = {path: file for path, file in made.contents.items() if path != "Kptfile"}
    assert kept == {path: file for path, file in new.items() if path != "Kptfile"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_subpackages_go_along_with_their_package(strategy: str) -> None:
    nested = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\n"
    old = plain(kept__Kptfile=nested, kept__a_txt=b"1\n", gone__Kptfile=nested)
    new = plain(kept__Kptfile=nested, kept__a_txt=b"2\n", added__Kptfile=nested, added__b_txt=b"b\n")

    made = merge(strategy, old, new, old)

    assert made.problem == ""
    assert set(made.contents) == set(new)
    assert made.contents["kept/a.txt"].data == b"2\n"


def test_a_subpackage_that_both_sides_added_is_named() -> None:
    nested = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\n"
    added = plain(sub__Kptfile=nested)

    assert merge("resource-merge", plain(), added, added).problem == (
        'subpackage "sub" added in both upstream and local'
    )


def test_a_subpackage_with_an_upstream_of_its_own_is_left_and_named() -> None:
    def remote(ref: str) -> bytes:
        return (
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\nupstream:\n  type: git\n  git:\n"
            f"    repo: https://git.example/other.git\n    directory: /\n    ref: {ref}\n"
        ).encode()

    old, new = plain(sub__Kptfile=remote("v1")), plain(sub__Kptfile=remote("v2"))

    made = merge("resource-merge", old, new, old)

    assert made.notes == ('subpackage "sub" has an upstream of its own, which moved; it was left as it is',)
    assert b"ref: v1" in made.contents["sub/Kptfile"].data


@pytest.mark.parametrize("path", ["a.yaml", "Kptfile"])
def test_a_file_that_cannot_be_read_is_named(path: str) -> None:
    old = plain(a_yaml=RESOURCE.replace("{", "").replace("}", "").encode())
    new = plain(a_yaml=old["a.yaml"].data.replace(b"colour:", b"hue:"))

    made = merge("resource-merge", old, new, {**old, path: File(b"kind: [\n")})

    assert made.contents == {}
    assert made.problem.startswith(path)


def test_a_refusal_that_would_name_thousands_of_files_is_cut_in_its_middle() -> None:
    old = plain(**{f"file{number}_txt": b"1" for number in range(5000)})
    local = {path: File(b"2") if path != "Kptfile" else file for path, file in old.items()}

    problem = merge("fast-forward", old, old, local).problem

    assert problem.startswith("local package files have been modified: [file0.txt file1.txt")
    assert problem.endswith("].\n  use a different update --strategy.")
    assert len(problem) < 5000


def test_a_package_that_is_made_from_another_ones_revision_has_its_own_name() -> None:
    context = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\ndata:\n  name: a\n  package-path: a\n"
    )
    old = plain()
    local = {**old, "package-context.yaml": File(context)}
    section, lock = upstream(old, "v2").locks()

    made = MergeWork(NAME, "resource-merge", old, old, local, section, lock, deployment=True, moves=True).run()

    assert parse_kptfile(made.contents["Kptfile"].data).name == NAME
    assert package_path(made.contents) == NAME
    assert b"  name: nets/core\n" in made.contents["package-context.yaml"].data

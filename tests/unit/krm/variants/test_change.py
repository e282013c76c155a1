"""Whether a mutation changed a package, and the mark of what it was computed from: ``variants.md`` 2.10."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from mutation_cases import HEAD, variant

from krm.variants.change import differs, fingerprint
from krm.variants.injection import Source
from krm.variants.revisions import Lock

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n"
STATUS = "status:\n  conditions:\n  - {type: x, status: 'True'}\n"


@pytest.mark.parametrize(
    ("before", "after", "draft", "published"),
    [
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG}, False, False, id="the same text"),
        pytest.param({"a.yaml": CONFIG}, {}, True, True, id="a file less"),
        pytest.param({"a.yaml": CONFIG}, {"b.yaml": CONFIG}, True, True, id="another path"),
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG.replace(": b", ": c")}, True, True, id="another value"),
        pytest.param(
            {"a.yaml": CONFIG}, {"a.yaml": "# a\n" + CONFIG.replace("a: b", "'a':   b # c")}, False, False, id="layout"
        ),
        pytest.param({"a.yaml": "a: 1\n"}, {"a.yaml": "a: '1'\n"}, True, True, id="a number and a text"),
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG + "---\n"}, False, False, id="an empty document"),
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG + "---\na: b\n"}, True, True, id="a document more"),
        pytest.param({"a.json": '{"a": 1}'}, {"a.json": '{\n  "a": 1\n}\n'}, False, False, id="JSON layout"),
        pytest.param({"README.md": "a\n"}, {"README.md": "a\n\n"}, True, True, id="text that is no resource"),
        pytest.param({"a.yaml": "a: [\n"}, {"a.yaml": "a: [ \n"}, True, True, id="unreadable"),
        pytest.param({"Kptfile": HEAD}, {"Kptfile": HEAD + STATUS}, True, False, id="status of the Kptfile"),
        pytest.param({"sub/Kptfile": HEAD}, {"sub/Kptfile": HEAD + STATUS}, True, True, id="status of a Kptfile below"),
        pytest.param(
            {"Kptfile": HEAD + STATUS},
            {"Kptfile": HEAD + STATUS.replace("'True'", "True")},
            False,
            False,
            id="typed text",
        ),
        pytest.param(
            {"Kptfile": HEAD},
            {"Kptfile": HEAD + "info: {readinessGates: [{conditionType: a}]}\n" + STATUS},
            True,
            True,
            id="a gate",
        ),
    ],
)
def test_only_what_files_say_makes_a_difference(
    before: dict[str, str], after: dict[str, str], draft: bool, published: bool
) -> None:
    for one, other in ((before, after), (after, before)):
        assert differs(one, other, published=False) is draft
        assert differs(one, other, published=True) is published


LOCK = Lock(repo="https://x/y.git", directory="/foo/", ref="foo/v1", commit="c1")
SPEC: dict[str, Any] = {
    "packageContext": {"data": {"a": "b"}, "removeKeys": ["c", "d"]},
    "pipeline": {"mutators": [{"image": "x", "configMap": {"a": "b"}}], "validators": [{"image": "y"}]},
}
SOURCE = Source("config.injection.Team.team", "hr.example.com/v1", "Team", "beta", {"a": [1, None, 2.5], "b": {}})


def test_a_fingerprint_never_changes() -> None:
    mark = fingerprint(variant(**SPEC), LOCK, [SOURCE])

    assert mark == "sha256:c69fcdb3fde90ae1261da2ceeadb052c9a069e931cc1e2b8475ccac2e23319a7"
    assert fingerprint(variant(), None, []) == "sha256:c3ce462ebbc37221840e2c24c9bef15118a9ecea6e611c3c8332cfdb98717e2b"


def test_a_fingerprint_does_not_tell_order_of_keys_spelling_or_what_is_not_computed_from() -> None:
    mark = fingerprint(variant(**SPEC), LOCK, [SOURCE])
    other = variant(
        labels={"x": "y"},
        injectors=[{"name": "n"}],
        upstream={"repo": "r"},
        packageContext={"removeKeys": ["d", "c", "d"], "data": {"a": "b"}},
        pipeline={"validators": [{"image": "y"}], "mutators": [{"configMap": {"a": "b"}, "image": "x"}]},
    )
    lock = replace(LOCK, repo="https://x/y", directory="foo", ref="foo/v2")

    assert fingerprint(other, lock, [replace(SOURCE, value={"b": {}, "a": [1.0, None, 2.5]})]) == mark
    assert fingerprint(variant(packageContext=None), None, []) == fingerprint(variant(pipeline={}), None, ())


@pytest.mark.parametrize(
    ("spec", "lock", "source"),
    [
        ({"packageContext": {"data": {"a": "c"}, "removeKeys": ["c", "d"]}}, {}, {}),
        ({"packageContext": {"data": {"a": "b"}, "removeKeys": ["c"]}}, {}, {}),
        ({"pipeline": {"mutators": [{"image": "x"}], "validators": [{"image": "y"}]}}, {}, {}),
        ({}, {"commit": "c2"}, {}),
        ({}, {"directory": "bar"}, {}),
        ({}, {}, {"name": "alpha"}),
        ({}, {}, {"value": {"a": [1, None, "2.5"], "b": {}}}),
        ({}, {}, {"value": {"a": [True, None, 2.5], "b": {}}}),
        ({}, {}, {"value": None}),
    ],
)
def test_a_fingerprint_tells_every_input(spec: Any, lock: Any, source: Any) -> None:
    mark = fingerprint(variant(**SPEC), LOCK, [SOURCE])

    assert fingerprint(variant(**{**SPEC, **spec}), replace(LOCK, **lock), [replace(SOURCE, **source)]) != mark


def test_a_fingerprint_is_that_of_every_process() -> None:
    program = (
        "from krm.variants.change import fingerprint; from krm.variants.variant import Variant;"
        "print(fingerprint(Variant.of({'metadata': {'name': 'my-pv'}, 'spec': {'packageContext':"
        " {'removeKeys': list({'a', 'b', 'c', 'd'})}}}), None, []))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert printed.stdout.strip() == fingerprint(variant(packageContext={"removeKeys": list("abcd")}), None, [])


def test_order_and_absence_of_sources_count() -> None:
    other = replace(SOURCE, point_type="config.injection.Team.other")
    marks = {fingerprint(variant(), None, sources) for sources in ([], [SOURCE], [SOURCE, other], [other, SOURCE])}

    assert len(marks) == 4

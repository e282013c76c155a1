"""Why a draft exists and what it changes: ``variants.md`` 6.8."""

import json
from typing import Any

import pytest

from krm.api.variants import PendingChange
from krm.variants.summary import MAX_COMPACT, MAX_RESOURCES, compact, summarize, text_diff

Json = dict[str, Any]

A = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n"
BEFORE = {
    "Kptfile": "kind: Kptfile\nmetadata: {name: app}\n",
    "a.yaml": A,
    "gone.txt": "x\n",
    "moved.yaml": A.replace(": a", ": m"),
}
AFTER = {
    "Kptfile": "kind: Kptfile\nmetadata: {name: app}\n",
    "a.yaml": A.replace("a: b", "a: c"),
    "b.yaml": A.replace(": a", ": m"),
    "c.yaml": "kind: Secret\nmetadata: {name: s}\n---\njust text\n---\n{kind: Nameless}\n",
    "bad.yaml": "a: [\n",
}


def summary(before: dict[str, str] = BEFORE, after: dict[str, str] = AFTER, **more: Any) -> Json:
    said: Json = {
        "draft": "d.app.packagevariant-2",
        "base": "d.app.v1",
        "trigger": "UpstreamChanged",
        "detail": "v1 to v2",
    }
    return summarize(before, after, **said | more)


def test_a_summary_names_files_and_resources() -> None:
    assert summary() == {
        "draft": "d.app.packagevariant-2",
        "base": "d.app.v1",
        "trigger": "UpstreamChanged",
        "triggerDetail": "v1 to v2",
        "files": {
            "added": ["b.yaml", "bad.yaml", "c.yaml"],
            "modified": ["a.yaml"],
            "removed": ["gone.txt", "moved.yaml"],
        },
        "resources": [
            {"kind": "Secret", "name": "s", "change": "added"},
            {"kind": "ConfigMap", "name": "a", "change": "modified"},
        ],
    }


def test_resources_are_looked_for_in_no_more_than_takes_a_moment() -> None:
    large = "---\n".join(A.replace(": a", f": a{number}") for number in range(6000))

    found = summary({"z.yaml": A}, {"a.yaml": large, "b.yaml": A, "z.yaml": A.replace("a: b", "a: c")})

    assert found["files"] == {"added": ["a.yaml", "b.yaml"], "modified": ["z.yaml"]}
    assert [one["name"] for one in found["resources"]] == ["a"]
    assert "omitted" not in found


def test_conflicts_stand_first() -> None:
    resources = summary(conflicts=["a.yaml: data.a: changed upstream and locally", "x" * 5000])["resources"]

    assert [one["change"] for one in resources] == ["conflict", "conflict", "added", "modified"]
    assert resources[0]["detail"] == "a.yaml: data.a: changed upstream and locally"
    assert len(resources[1]["detail"]) == 500


def test_a_new_package_has_no_base_and_one_that_is_the_same_no_changes() -> None:
    assert summary({}, {"a.yaml": A}, base="", trigger="Initial", detail="") == {
        "draft": "d.app.packagevariant-2",
        "trigger": "Initial",
        "files": {"added": ["a.yaml"]},
        "resources": [{"kind": "ConfigMap", "name": "a", "change": "added"}],
    }
    assert summary({"a.yaml": A}, {"a.yaml": A}).keys() == {"draft", "base", "trigger", "triggerDetail"}


def many(count: int, length: int = 10) -> dict[str, str]:
    return {f"{'ü' * length}{number:05}.yaml": A.replace(": a", f": a{number}") for number in range(count)}


@pytest.mark.parametrize(("count", "length"), [(1, 10), (60, 10), (60, 250), (2000, 10), (70, 1000)])
def test_a_summary_is_bounded_and_counts_what_it_leaves_out(count: int, length: int) -> None:
    full = summary({}, many(count, length))
    short = json.loads(compact(full))

    for one in (full, short):
        listed = len(one.get("files", {}).get("added", ())) + len(one.get("resources", ()))
        assert listed + one.get("omitted", 0) == 2 * count
        assert len(one.get("resources", ())) <= MAX_RESOURCES
        PendingChange.model_validate(one)
    assert len(compact(full).encode()) <= MAX_COMPACT
    assert short["trigger"] == "UpstreamChanged"
    assert (short == full) is (count == 1)


def test_a_summary_of_long_words_is_small_all_the_same() -> None:
    full = summary({}, many(3), draft="d" * 5000, detail="ü" * 100_000, conflicts=["ö" * 10_000] * 100)
    short = json.loads(compact(full))

    assert len(compact(full).encode()) <= MAX_COMPACT
    assert short == {"trigger": "UpstreamChanged", "omitted": 106}


def test_a_patch_is_that_of_git() -> None:
    assert text_diff({"a": "x\ny\n", "b": "1\n"}, {"a": "x\nz", "c": "2\n"}) == (
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\\ No newline at end of file\n"
        "diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
        "diff --git a/c b/c\nnew file mode 100644\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+2\n"
    )
    assert text_diff({"a": "x"}, {"a": "x"}) == ""


def test_a_patch_is_bounded() -> None:
    text = text_diff({}, many(100), most=2000)

    assert len(text) < 2100
    assert text.endswith("… the rest is left out: the patch has more than 2000 characters\n")


@pytest.mark.timeout(300)
def test_a_patch_of_unlike_texts_takes_no_time() -> None:
    one = "".join(f"{number * 7919 % 100_003}\n" for number in range(60_000))
    other = "".join(f"{number * 104_729 % 100_003}\n" for number in range(60_000))

    assert len(text_diff({"a.txt": one}, {"a.txt": other})) > 100_000

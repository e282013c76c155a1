"""Merging Kptfiles: kpt's own table, and what ``kpt.md`` 3.5 says beyond it."""

import json
from pathlib import Path
from typing import Any

import pytest

from krm.package.kptfile_error import KptfileError
from krm.package.merge.kptfile_merge import merge_kptfiles
from krm.package.yaml_reader import read_document

_CASES = json.loads((Path(__file__).parents[4] / "data/kpt/kptfile-merge/cases.json").read_text())


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in _CASES])
def test_kpts_own_cases_give_the_expected_data(case: dict[str, Any]) -> None:
    updated: str = case["updated"] if "updated" in case else case["update"]

    merged = merge_kptfiles(
        case["origin"].encode(),
        updated.encode(),
        case["local"].encode(),
        update_upstream=case["updateUpstream"],
    )

    assert read_document(merged.data) == read_document(case["expected"])


_HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"


def _text(rest: str = "", name: str = "pkg") -> bytes:
    return (_HEAD.format(name=name) + rest).encode()


def _pipeline(*functions: str, kind: str = "mutators") -> str:
    return f"pipeline:\n  {kind}:\n" + "".join(f"  - {function}\n" for function in functions)


def _merge(origin: bytes | None, updated: bytes | None, local: bytes, *, update_upstream: bool = False) -> str:
    return merge_kptfiles(origin, updated, local, update_upstream=update_upstream).data.decode()


class TestPipelines:
    @pytest.mark.parametrize("kind", ["mutators", "validators"])
    @pytest.mark.parametrize(
        ("origin", "updated", "local", "merged"),
        [
            pytest.param([], ["image: r/a:v1"], [], ["image: r/a:v1"], id="added upstream"),
            pytest.param([], [], ["image: r/a:v1"], ["image: r/a:v1"], id="added here"),
            pytest.param(
                ["image: r/a:v1", "image: r/b:v1"],
                ["image: r/a:v1"],
                ["image: r/a:v1", "image: r/b:v1"],
                ["image: r/a:v1"],
                id="removed upstream",
            ),
            pytest.param(
                ["image: r/a:v1", "image: r/b:v1"],
                ["image: r/a:v1"],
                ["image: r/a:v1", "image: r/b:v2"],
                ["image: r/a:v1"],
                id="removed upstream although edited here",
            ),
            pytest.param(
                ["image: r/a:v1", "image: r/b:v1"],
                ["image: r/a:v2", "image: r/b:v1"],
                ["image: r/a:v1"],
                ["image: r/a:v2"],
                id="removed here",
            ),
            pytest.param(
                ["image: r/a:v1"], ["image: r/a:v2"], ["image: r/a:v3"], ["image: r/a:v2"], id="both changed the tag"
            ),
            pytest.param(
                ["image: one/a:v1"], ["image: two/a:v1"], ["image: one/a:v1"], ["image: two/a:v1"], id="registry moved"
            ),
            pytest.param(
                ["exec: a", "image: r/b"],
                ["exec: a", "image: r/b:v2"],
                ["image: r/b", "exec: a"],
                ["image: r/b:v2", "exec: a"],
                id="programs and images",
            ),
            pytest.param(
                ["image: r/a:v1"],
                ["image: r/b:v1", "image: r/a:v1"],
                ["image: r/a:v1"],
                ["image: r/b:v1", "image: r/a:v1"],
                id="nobody touched the list here: upstream's order",
            ),
            pytest.param(
                ["image: r/a:v1"],
                ["image: r/b:v1", "image: r/a:v1"],
                ["image: r/c:v1", "image: r/a:v1"],
                ["image: r/c:v1", "image: r/a:v1", "image: r/b:v1"],
                id="touched: local order, then upstream's additions",
            ),
            pytest.param(
                ["image: r/a:v1", "image: r/a:v2"],
                ["image: r/a:v1", "image: r/a:v3"],
                ["image: r/x:v1", "image: r/a:v1", "image: r/a:v2"],
                ["image: r/a:v1", "image: r/a:v3"],
                id="the same image twice: no key, upstream's list",
            ),
            pytest.param(
                ["image: r/a:v1", "image: r/a:v2"],
                ["image: r/a:v1", "image: r/a:v2"],
                ["image: r/x:v1", "image: r/a:v1"],
                ["image: r/x:v1", "image: r/a:v1"],
                id="no key, upstream unchanged: local's list",
            ),
            pytest.param(
                ["{image: r/a, name: one}"],
                ["{image: r/b, name: one}"],
                ["{image: r/c, name: two}", "{image: r/a, name: one}"],
                ["{image: r/c, name: two}", "{image: r/b, name: one}"],
                id="named: matched by name",
            ),
            pytest.param(
                ["image: r/a:v1"],
                ["image: r/a:v2"],
                ["{image: r/a:v1, name: mine}", "image: r/b:v1"],
                ["image: r/a:v2"],
                id="some named: no key, upstream's list",
            ),
        ],
    )
    def test_the_rules(
        self, kind: str, origin: list[str], updated: list[str], local: list[str], merged: list[str]
    ) -> None:
        texts = [_text(_pipeline(*functions, kind=kind) if functions else "") for functions in (origin, updated, local)]

        result = _merge(*texts)

        assert read_document(result) == read_document(_text(_pipeline(*merged, kind=kind)))

    def test_functions_merge_field_by_field(self) -> None:
        merged = _merge(
            _text(_pipeline("{image: r/a:v1, configMap: {x: one, gone: yes}}")),
            _text(_pipeline("{image: r/a:v2, configMap: {x: two, new: one}}")),
            _text(_pipeline("{image: r/a:v1, configMap: {x: one, gone: yes, mine: z}, selectors: [{kind: A}]}")),
        )

        assert read_document(merged)["pipeline"]["mutators"] == [
            {
                "image": "r/a:v2",
                "configMap": {"x": "two", "mine": "z", "new": "one"},
                "selectors": [{"kind": "A"}],
            }
        ]

    def test_a_function_that_changed_upstream_after_all_were_deleted_here_comes_back_whole(self) -> None:
        merged = _merge(
            _text(_pipeline("{image: r/a, configMap: {x: one}}", "image: r/b")),
            _text(_pipeline("{image: r/a, configMap: {x: two}}", "image: r/b")),
            _text(),
        )

        assert read_document(merged)["pipeline"]["mutators"] == [{"image": "r/a", "configMap": {"x": "two"}}]

    def test_the_lists_of_one_pipeline_are_independent(self) -> None:
        origin = _text("pipeline:\n  mutators:\n  - image: r/a:v1\n  validators:\n  - image: r/v:v1\n")
        updated = _text("pipeline:\n  mutators:\n  - image: r/a:v2\n")
        local = _text("pipeline:\n  mutators:\n  - image: r/a:v1\n  validators:\n  - image: r/v:v1\n")

        assert read_document(_merge(origin, updated, local))["pipeline"] == {"mutators": [{"image": "r/a:v2"}]}

    def test_conflicts_name_the_function(self) -> None:
        result = merge_kptfiles(
            *(_text(_pipeline(f"{{image: r/set-labels, configPath: {name}}}")) for name in "abc"),
            update_upstream=False,
            path="sub/Kptfile",
        )

        assert [(one.file, one.path, one.updated, one.local) for one in result.conflicts] == [
            ("sub/Kptfile", "pipeline.mutators[function=set-labels].configPath", '"b"', '"c"')
        ]


class TestSections:
    @pytest.mark.parametrize(
        ("origin", "updated", "local", "merged"),
        [
            pytest.param("", "info:\n  site: u\n", "", "info:\n  site: u\n", id="section added"),
            pytest.param("info:\n  site: u\n", "", "info:\n  site: u\n", "info: {}\n", id="section removed"),
            pytest.param("info:\n  site: u\n", "info:\n  site: u\n", "", "", id="section removed here"),
            pytest.param(
                "inventory:\n  name: a\n",
                "inventory:\n  name: b\n",
                "inventory:\n  name: c\n",
                "inventory:\n  name: b\n",
                id="inventory",
            ),
            pytest.param(
                "info:\n  keywords: [a]\n",
                "info:\n  keywords: [a, b]\n",
                "info:\n  keywords: [c]\n",
                "info:\n  keywords: [a, b]\n",
                id="keywords are one value",
            ),
            pytest.param(
                "info:\n  readinessGates:\n  - conditionType: a\n",
                "info:\n  readinessGates:\n  - conditionType: a\n  - conditionType: b\n",
                "info:\n  readinessGates:\n  - conditionType: a\n",
                "info:\n  readinessGates:\n  - conditionType: a\n  - conditionType: b\n",
                id="gate added",
            ),
            pytest.param(
                "info:\n  readinessGates:\n  - conditionType: a\n",
                "info:\n  readinessGates:\n  - conditionType: a\n",
                "info:\n  readinessGates:\n  - conditionType: mine\n",
                "info:\n  readinessGates:\n  - conditionType: mine\n",
                id="gate changed here",
            ),
            pytest.param("", "info:\n  site:\n  emails: []\n", "", "info: {}\n", id="what is empty is not there"),
        ],
    )
    def test_the_rules(self, origin: str, updated: str, local: str, merged: str) -> None:
        assert read_document(_merge(_text(origin), _text(updated), _text(local))) == read_document(_text(merged))

    def test_labels_and_annotations_are_merged_but_name_and_namespace_never(self) -> None:
        head = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n"
        merged = _merge(
            (head + "  name: a\n  namespace: a\n  labels: {x: one}\n").encode(),
            (head + "  name: b\n  namespace: b\n  labels: {x: two}\n  annotations: {up: one}\n").encode(),
            (head + "  name: mine\n  labels: {x: one, mine: z}\n").encode(),
        )

        assert read_document(merged)["metadata"] == {
            "name": "mine",
            "labels": {"x": "two", "mine": "z"},
            "annotations": {"up": "one"},
        }

    @pytest.mark.parametrize("origin", [None, _text(), _text("upstream:\n  type: git\n")])
    def test_upstream_is_taken_whole_where_updated_has_it(self, origin: bytes | None) -> None:
        updated = _text("upstream:\n  type: git\n  git:\n    ref: v2\n")
        local = _text(
            "upstream:\n  type: git\n  git:\n    ref: v1\n  updateStrategy: copy-merge\nupstreamLock:\n  type: git\n"
        )

        kept, taken = _merge(origin, updated, local), _merge(origin, updated, local, update_upstream=True)

        assert read_document(kept) == read_document(local)
        assert read_document(taken)["upstream"] == {"type": "git", "git": {"ref": "v2"}}
        assert read_document(taken)["upstreamLock"] == {"type": "git"}

    def test_a_kptfile_that_is_missing_upstream_is_as_good_as_an_empty_one(self) -> None:
        local = _text("info:\n  site: mine\n")

        assert _merge(None, _text("info:\n  man: up\n"), local) == local.decode() + "  man: up\n"
        assert _merge(None, None, local) == local.decode()
        assert read_document(_merge(_text("info:\n  site: mine\n"), None, local))["info"] == {}


class TestText:
    def test_what_upstream_did_not_change_keeps_every_byte(self) -> None:
        local = (
            b"\xef\xbb\xbf# mine\r\nkind:   Kptfile\r\napiVersion: 'kpt.dev/v1'\r\nmetadata: {name: x, labels: {}}\r\n"
        )

        assert _merge(_text("info: {site: a}\n"), _text("info: {site: a}\n"), local).encode() == local

    def test_new_fields_stand_where_the_schema_has_them_with_upstreams_comments(self) -> None:
        updated = _text("info: # about\n  description: new # kpt-set: ${text}\npipeline: {}\n")
        local = _text("# gate\nstatus: {}\n", name="mine")

        assert (
            _merge(_text(), updated, local)
            == _text(
                "info: # about\n  description: new # kpt-set: ${text}\npipeline: {}\n# gate\nstatus: {}\n", name="mine"
            ).decode()
        )

    def test_a_function_that_upstream_added_brings_its_comments(self) -> None:
        origin = _text(_pipeline("image: r/a:v1"))
        updated = _text(_pipeline("image: r/a:v1", "image: r/b:v1 # pinned\n    # why\n    configPath: b.yaml"))
        local = _text(_pipeline("image: r/c:v1 # mine", "image: r/a:v1"))

        assert (
            _merge(origin, updated, local)
            == _text(
                _pipeline(
                    "image: r/c:v1 # mine", "image: r/a:v1", "image: r/b:v1 # pinned\n    # why\n    configPath: b.yaml"
                )
            ).decode()
        )

    @pytest.mark.parametrize(
        ("updated", "written"),
        [
            pytest.param("2", "2", id="number"),
            pytest.param("true", "true", id="truth value"),
            pytest.param("1.10", '"1.10"', id="not what a float is written as"),
            pytest.param("yes", '"yes"', id="word that is a truth value"),
            pytest.param("0777", '"0777"', id="octal number"),
            pytest.param("x", "x", id="text"),
        ],
    )
    def test_values_of_text_fields_keep_their_text(self, updated: str, written: str) -> None:
        def text(value: str) -> bytes:
            return _text(_pipeline("image: r/a:v1\n    configMap:\n      key: " + value))

        assert _merge(text("1"), text(updated), text("1")) == text(written).decode()

    def test_new_keys_of_a_sorted_map_are_sorted_in(self) -> None:
        def text(keys: str) -> bytes:
            return _text(_pipeline("image: r/a:v1\n    configMap: {" + ", ".join(f"{key}: x" for key in keys) + "}"))

        assert _merge(text("ac"), text("abc"), text("acd")) == text("abcd").decode()
        assert _merge(text("ac"), text("abc"), text("ca")) == text("cab").decode()


@pytest.mark.parametrize("tree", ["origin", "updated", "local"])
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"a: [", id="not yaml"),
        pytest.param(b"", id="empty"),
        pytest.param(b"apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\n", id="old version"),
        pytest.param(_text("pipeline: []\n"), id="wrong type"),
    ],
)
def test_what_cannot_be_read_is_refused_by_tree(tree: str, broken: bytes) -> None:
    texts = {"origin": _text(), "updated": _text("info: {}\n"), "local": _text(), tree: broken}

    with pytest.raises(KptfileError, match=rf"dir/Kptfile \({tree}\)"):
        merge_kptfiles(**texts, update_upstream=False, path="dir/Kptfile")

"""Updating packages: the tables of ``kpt.md`` 3.1, 3.9 and 3.12, and what holds for all strategies."""

from pathlib import Path

import pytest

from krm.package.contents import EXECUTABLE, Contents, ContentsError, File
from krm.package.folder import read_folder
from krm.package.kptfile_error import KptfileError
from krm.package.merge.conflicts import Kept
from krm.package.merge.strategies import update_package, with_strategy
from krm.package.merge.update_error import LocallyModified, SubpackageAddedTwice, UnknownStrategy
from krm.package.yaml_reader import read_document, read_documents

_STRATEGIES = ("resource-merge", "fast-forward", "force-delete-replace", "copy-merge")
_PORCH_CASE = Path(__file__).parents[4] / "data/porch/update"


def _kptfile(name: str = "pkg", *, ref: str = "", description: str = "") -> File:
    text = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"
    if ref:
        text += f"upstream:\n  type: git\n  git:\n    repo: r.git\n    directory: /\n    ref: {ref}\n"
    if description:
        text += f"info:\n  description: {description}\n"
    return File(text.encode())


def _config_map(value: str, name: str = "settings") -> File:
    text = f'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: "{value}"\n'
    return File(text.encode())


def _package(files: dict[str, File] | None = None) -> dict[str, File]:
    return {"Kptfile": _kptfile(), **(files or {})}


def _below(directory: str, files: dict[str, File]) -> dict[str, File]:
    return {f"{directory}/{path}": file for path, file in files.items()}


class TestEveryStrategy:
    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_an_untouched_copy_becomes_the_new_upstream(self, strategy: str) -> None:
        origin = _package({"cm.yaml": _config_map("1"), "gone.yaml": _config_map("1", "gone"), "bin": File(b"\0")})
        updated = _package({"cm.yaml": _config_map("2"), "new/run.sh": File(b"#!", EXECUTABLE), "bin": File(b"\0\1")})

        result = update_package(origin, updated, origin, strategy=strategy)

        assert result.contents == updated
        assert result.conflicts == ()
        assert list(result.contents) == sorted(updated)

    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_name_and_upstream_of_an_untouched_copy_stay_local_when_upstream_has_none(self, strategy: str) -> None:
        origin = _package({"cm.yaml": _config_map("1")})
        local = {**origin, "Kptfile": _kptfile("mine", ref="v1")}
        updated = {**origin, "cm.yaml": _config_map("2")}

        result = update_package(origin, updated, local, strategy=strategy)

        assert result.contents == {"Kptfile": local["Kptfile"], "cm.yaml": _config_map("2")}

    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_updating_again_changes_nothing(self, strategy: str) -> None:
        origin = _package({"cm.yaml": _config_map("1"), **_below("sub", _package({"a.txt": File(b"1")}))})
        updated = _package({"cm.yaml": _config_map("2"), **_below("new", _package({"a.txt": File(b"1")}))})

        once = update_package(origin, updated, origin, strategy=strategy).contents

        again = update_package(updated, updated, once, strategy=strategy)
        assert again.contents == once
        assert again.conflicts == ()

    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_no_tree_is_changed(self, strategy: str) -> None:
        trees = [_package({"cm.yaml": _config_map(value)}) for value in ("1", "2", "1")]
        copies = [dict(tree) for tree in trees]

        update_package(*trees, strategy=strategy)

        assert trees == copies

    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_a_package_without_a_kptfile_is_refused(self, strategy: str) -> None:
        with pytest.raises(KptfileError, match="the local package has no Kptfile"):
            update_package(_package(), _package(), {"a": File(b"")}, strategy=strategy)

    @pytest.mark.parametrize("strategy", _STRATEGIES)
    def test_an_unreadable_kptfile_is_named_with_its_tree(self, strategy: str) -> None:
        broken = {"Kptfile": File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nupstreams: {}\n")}

        with pytest.raises(
            KptfileError,
            match=r"Kptfile \(updated\): upstreams: yaml: unmarshal errors:\s+line 3: field upstreams not found",
        ):
            update_package(_package(), broken, _package(), strategy=strategy)

    def test_an_empty_strategy_is_resource_merge(self) -> None:
        origin = _package({"cm.yaml": _config_map("1"), "a.txt": File(b"1")})
        local = {**origin, "a.txt": File(b"mine")}
        updated = {**origin, "cm.yaml": _config_map("2")}

        assert update_package(origin, updated, local, strategy="") == update_package(origin, updated, local)
        assert update_package(origin, updated, local).contents["a.txt"] == File(b"mine")

    def test_an_unknown_strategy_is_refused_in_upstreams_words(self) -> None:
        with pytest.raises(UnknownStrategy) as caught:
            update_package(_package(), _package(), _package(), strategy="rebase")

        assert str(caught.value) == 'unknown update strategy "rebase"'

    def test_a_file_and_a_directory_of_one_name_are_refused(self) -> None:
        origin = _package()
        with pytest.raises(ContentsError, match="a file and a directory at once"):
            update_package(origin, _package({"a/b": File(b"")}), _package({"a": File(b"")}))


class TestResourceMerge:
    def test_porchs_own_case(self) -> None:
        origin, updated, local, expected = (
            read_folder(_PORCH_CASE / name) for name in ("original", "upstream", "local", "updated")
        )

        result = update_package(origin, updated, local)

        assert sorted(result.contents) == sorted(expected)
        for path in expected:
            if path.endswith(".yaml") or path == "Kptfile":
                assert read_documents(result.contents[path].data) == read_documents(expected[path].data), path
            else:
                assert result.contents[path] == expected[path]
        assert result.conflicts == ()

    def test_unchanged_upstream_leaves_every_local_byte(self) -> None:
        origin = _package(
            {
                "cm.yaml": _config_map("1"),
                "gone.yaml": _config_map("1", "gone"),
                "README.md": File(b"r"),
                "t.json": File(b"{}"),
                **_below("sub", _package({"cm.yaml": _config_map("1")})),
                **_below("deleted", _package()),
            }
        )
        local = {
            "Kptfile": File(_kptfile("mine").data + b"# mine\npipeline: {}\n"),
            "cm.yaml": File(b"# mine\r\n" + _config_map("9").data),
            "mine.yaml": File(b"not: [yaml"),
            "t.json": File(b"{ }"),
            "sub/Kptfile": File(b"kind:   Kptfile\napiVersion: kpt.dev/v1\nmetadata: {name: pkg}"),
            "sub/extra": File(b"\0"),
        }

        result = update_package(origin, dict(origin), local)

        assert result.contents == local
        assert result.conflicts == ()

    def test_both_sides_changes_come_together_and_conflicts_say_where(self) -> None:
        origin = _package({"a/cm.yaml": _config_map("1"), "README.md": File(b"1")})
        updated = _package({"a/cm.yaml": _config_map("2"), "README.md": File(b"2")})
        local = _package({"a/cm.yaml": _config_map("3"), "README.md": File(b"3")})

        result = update_package(origin, updated, local)

        assert result.contents == _package({"a/cm.yaml": _config_map("2"), "README.md": File(b"3")})
        found = {(one.file, one.path, one.origin, one.updated, one.local, one.kept) for one in result.conflicts}
        assert found == {
            ("a/cm.yaml", "data.key", '"1"', '"2"', '"3"', Kept.UPDATED),
            ("README.md", "", '"1"', '"2"', '"3"', Kept.LOCAL),
        }

    @pytest.mark.parametrize("path", [".gitignore", ".github/workflow.yaml", "docs/.gitkeep", "my.git.txt"])
    def test_files_with_git_in_their_name_are_updated_like_others(self, path: str) -> None:
        origin, updated = _package({path: File(b"a: 1\n")}), _package({path: File(b"a: 2\n")})

        assert update_package(origin, updated, origin).contents == updated
        assert update_package(_package(), updated, _package()).contents == updated
        assert update_package(origin, _package(), origin).contents == _package()

    def test_yaml_that_krmignore_leaves_out_is_merged_as_a_file(self) -> None:
        rules = {".krmignore": File(b"templates\n")}
        origin = _package({**rules, "templates/a.yaml": File(b"{{ 1 }}: [")})
        updated = _package({**rules, "templates/a.yaml": File(b"{{ 2 }}: [")})

        assert update_package(origin, updated, origin).contents == updated
        local = _package({**rules, "templates/a.yaml": File(b"{{ mine }}: [")})
        assert update_package(origin, updated, local).contents == local

    def test_a_kptfile_keeps_its_mode_and_upstream(self) -> None:
        origin = {"Kptfile": _kptfile(ref="v1")}
        updated = {"Kptfile": _kptfile(ref="v2", description="new")}
        local = {"Kptfile": File(_kptfile("mine", ref="v1").data, EXECUTABLE)}

        result = update_package(origin, updated, local).contents["Kptfile"]

        assert result == File(_kptfile("mine", ref="v1", description="new").data, EXECUTABLE)


_ONE = _below("sub", _package({"cm.yaml": _config_map("1")}))
_TWO = _below("sub", _package({"cm.yaml": _config_map("2")}))
_EDITED = _below("sub", _package({"cm.yaml": _config_map("mine")}))
_NONE: dict[str, File] = {}


class TestLocalSubpackages:
    @pytest.mark.parametrize(
        ("origin", "updated", "local", "expected"),
        [
            pytest.param(_NONE, _TWO, _NONE, _TWO, id="added upstream: copied"),
            pytest.param(_NONE, _NONE, _ONE, _ONE, id="added here: nothing"),
            pytest.param(_ONE, _NONE, _ONE, _NONE, id="removed upstream, unchanged: deleted"),
            pytest.param(_ONE, _NONE, _EDITED, _EDITED, id="removed upstream, changed: kept"),
            pytest.param(_ONE, _TWO, _NONE, _NONE, id="removed here: stays deleted"),
            pytest.param(_ONE, _NONE, _NONE, _NONE, id="removed on both sides"),
            pytest.param(_ONE, _TWO, _ONE, _TWO, id="in all three: merged"),
        ],
    )
    def test_the_table(self, origin: Contents, updated: Contents, local: Contents, expected: Contents) -> None:
        trees = (_package(dict(tree)) for tree in (origin, updated, local))

        assert update_package(*trees).contents == _package(dict(expected))

    def test_one_added_on_both_sides_is_refused_in_upstreams_words(self) -> None:
        with pytest.raises(SubpackageAddedTwice) as caught:
            update_package(_package(), _package(_ONE), _package(_ONE))

        assert str(caught.value) == 'subpackage "sub" added in both upstream and local'

    def test_merge_keys_do_not_keep_a_subpackage_that_upstream_removed(self) -> None:
        keyed = _config_map("1").data.replace(b"metadata:", b"metadata: # kpt-merge: /settings")
        local = _package(_below("sub", _package({"cm.yaml": File(keyed)})))

        assert update_package(_package(_ONE), _package(), local).contents == _package()

    def test_its_kptfile_takes_what_upstream_has(self) -> None:
        origin = _package(_below("sub", {"Kptfile": _kptfile()}))
        updated = _package(_below("sub", {"Kptfile": _kptfile(description="new")}))
        local = _package(_below("sub", {"Kptfile": _kptfile("mine")}))

        result = update_package(origin, updated, local)

        assert result.contents["sub/Kptfile"] == _kptfile("mine", description="new")

    def test_nested_ones_are_merged_by_themselves_and_their_conflicts_have_whole_paths(self) -> None:
        def tree(value: str) -> dict[str, File]:
            return _package(_below("a", _package(_below("b/c", _package({"x.txt": File(value.encode())})))))

        result = update_package(tree("1"), tree("2"), tree("3"))

        assert result.contents == tree("3")
        assert [conflict.file for conflict in result.conflicts] == ["a/b/c/x.txt"]

    def test_a_local_one_below_a_deleted_one_survives_with_what_it_is_in(self) -> None:
        local = _package({**_ONE, **_below("sub/mine", _package({"a": File(b"")}))})

        assert update_package(_package(_ONE), _package(), local).contents == local

    def test_list_keys_of_definitions_in_other_packages_hold(self) -> None:
        crd = (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.com\n"
            "spec:\n  group: example.com\n  names: {kind: Thing}\n  versions:\n  - name: v1\n    schema:\n"
            "      openAPIV3Schema: {properties: {items: "
            "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id]}}}\n"
        )

        def tree(*items: str) -> dict[str, File]:
            thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: t\nitems:\n"
            thing += "".join(f"- {item}\n" for item in items)
            return _package(
                {
                    **_below("crds", _package({"crd.yaml": File(crd.encode())})),
                    **_below("app", _package({"thing.yaml": File(thing.encode())})),
                }
            )

        result = update_package(tree("{id: a, x: 1}"), tree("{id: a, x: 2}"), tree("{id: a, x: 1, mine: 1}", "{id: b}"))

        assert result.contents == tree("{id: a, x: 2, mine: 1}", "{id: b}")

    def test_what_upstream_adds_below_a_deleted_one_stays_out(self) -> None:
        updated = _package(
            {**_TWO, **_below("sub/new", _package()), **_below("sub/far", {"Kptfile": _kptfile(ref="v1")})}
        )

        assert update_package(_package(_ONE), updated, _package()).contents == _package()

    def test_one_that_became_a_directory_upstream_loses_its_kptfile(self) -> None:
        updated = _package({"sub/cm.yaml": _config_map("2")})

        assert update_package(_package(_ONE), updated, _package(_ONE)).contents == updated

    def test_one_that_became_a_directory_upstream_keeps_a_kptfile_that_was_edited(self) -> None:
        updated = _package({"sub/cm.yaml": _config_map("2")})
        edited = {"sub/Kptfile": _kptfile(description="mine")}

        result = update_package(_package(_ONE), updated, _package({**_ONE, **edited}))

        assert result.contents == {**updated, **edited}
        assert [conflict.file for conflict in result.conflicts] == ["sub/Kptfile"]

    def test_a_directory_that_became_one_upstream_gets_the_kptfile(self) -> None:
        plain = _package({"sub/cm.yaml": _config_map("1")})

        assert update_package(plain, _package(_TWO), plain).contents == _package(_TWO)


def _remote(ref: str, value: str = "1") -> dict[str, File]:
    return _below("sub", {"Kptfile": _kptfile("sub", ref=ref), "cm.yaml": _config_map(value)})


class TestRemoteSubpackages:
    @pytest.mark.parametrize("strategy", _STRATEGIES[:3])
    @pytest.mark.parametrize(
        ("origin", "updated", "local", "expected"),
        [
            pytest.param(_NONE, _remote("v1"), _NONE, _remote("v1"), id="added upstream: copied"),
            pytest.param(_NONE, _NONE, _remote("v1"), _remote("v1"), id="added here: left"),
            pytest.param(_remote("v1"), _remote("v2"), _NONE, _NONE, id="removed here: stays deleted"),
            pytest.param(_remote("v1"), _NONE, _remote("v1"), _NONE, id="removed upstream, unchanged: deleted"),
            pytest.param(_remote("v1"), _NONE, _remote("v1", "x"), _remote("v1", "x"), id="changed: kept"),
            pytest.param(_remote("v1"), _NONE, _NONE, _NONE, id="removed on both sides"),
            pytest.param(_remote("v1"), _remote("v1", "2"), _remote("v1"), _remote("v1"), id="same ref: left"),
        ],
    )
    def test_the_table(
        self, strategy: str, origin: Contents, updated: Contents, local: Contents, expected: Contents
    ) -> None:
        trees = (_package(dict(tree)) for tree in (origin, updated, local))

        result = update_package(*trees, strategy=strategy)

        assert result.contents == _package(dict(expected))
        assert result.pending == ()

    @pytest.mark.parametrize("strategy", _STRATEGIES[:3])
    def test_a_new_ref_is_reported_and_the_subpackage_left_as_it_is(self, strategy: str) -> None:
        local = _package(_remote("v1", "mine"))

        result = update_package(_package(_remote("v1")), _package(_remote("v2", "2")), local, strategy=strategy)

        assert result.contents == local
        assert [(one.directory, one.upstream["git"]["ref"]) for one in result.pending] == [("sub", "v2")]

    def test_one_added_on_both_sides_is_refused(self) -> None:
        with pytest.raises(SubpackageAddedTwice, match='subpackage "sub" added in both'):
            update_package(_package(), _package(_remote("v1")), _package(_remote("v1")))

    def test_what_is_nested_in_it_belongs_to_it(self) -> None:
        def tree(value: str) -> dict[str, File]:
            nested = _below("sub/nested", _package({"cm.yaml": _config_map(value)}))
            return _package({**_remote("v1"), **nested})

        assert update_package(tree("1"), tree("2"), tree("1")).contents == tree("1")

    def test_copy_merge_takes_it_as_files(self) -> None:
        updated = _package(_remote("v2", "2"))

        result = update_package(_package(_remote("v1")), updated, _package(_remote("v1", "x")), strategy="copy-merge")

        assert result.contents == updated
        assert result.pending == ()


class TestUpdatingARemoteSubpackageItself:
    def test_its_upstream_comes_from_updated(self) -> None:
        origin, updated = {"Kptfile": _kptfile(ref="v1")}, {"Kptfile": _kptfile(ref="v2")}

        result = update_package(origin, updated, {"Kptfile": _kptfile("mine", ref="v1")}, is_root=False)

        assert result.contents == {"Kptfile": _kptfile("mine", ref="v2")}

    def test_one_that_was_pointed_elsewhere_is_left_alone(self) -> None:
        origin = {"Kptfile": _kptfile(ref="v1"), "a": File(b"1")}
        updated = {"Kptfile": _kptfile(ref="v2"), "a": File(b"2")}
        local = {"Kptfile": _kptfile(ref="other"), "a": File(b"1")}

        assert update_package(origin, updated, local, is_root=False).contents == local


class TestFastForward:
    def test_edited_files_are_listed_in_upstreams_words(self) -> None:
        origin = _package(
            {"b.yaml": _config_map("1"), "a.yaml": _config_map("1", "a"), "c.yaml": _config_map("1", "c")}
        )
        local = {**origin, "b.yaml": _config_map("x"), "a.yaml": _config_map("x", "a")}

        with pytest.raises(LocallyModified) as caught:
            update_package(origin, origin, local, strategy="fast-forward")

        assert str(caught.value) == (
            "local package files have been modified: [a.yaml b.yaml].\n  use a different update --strategy."
        )

    def test_files_added_or_removed_here_count(self) -> None:
        with pytest.raises(LocallyModified, match=r"\[gone new\]"):
            update_package(
                _package({"gone": File(b"")}), _package(), _package({"new": File(b"")}), strategy="fast-forward"
            )

    def test_an_edited_kptfile_counts(self) -> None:
        with pytest.raises(LocallyModified, match=r"\[Kptfile\]"):
            update_package(_package(), _package(), {"Kptfile": _kptfile(description="mine")}, strategy="fast-forward")

    def test_a_subpackage_of_one_side_is_named(self) -> None:
        with pytest.raises(LocallyModified, match=r"\[sub \(Package\) sub/Kptfile sub/cm.yaml\]"):
            update_package(_package(), _package(), _package(_ONE), strategy="fast-forward")

    def test_render_status_and_upstream_do_not_count_and_the_status_goes(self) -> None:
        status = b'status:\n  conditions:\n  - type: Rendered\n    status: "True"\n  renderStatus: {}\n'
        local = {"Kptfile": File(_kptfile("mine", ref="v1").data + status)}

        result = update_package(_package(), {"Kptfile": _kptfile(ref="v2")}, local, strategy="fast-forward")

        assert result.contents == {"Kptfile": _kptfile("mine", ref="v2")}


class TestForceDeleteReplace:
    def test_all_but_the_kptfile_is_upstreams(self) -> None:
        origin = _package({"cm.yaml": _config_map("1")})
        updated = {"Kptfile": _kptfile("up", ref="v2", description="new"), "cm.yaml": _config_map("2"), **_TWO}
        local = {
            "Kptfile": File(b"# mine\n" + _kptfile("mine", ref="v1").data),
            "cm.yaml": _config_map("mine"),
            "mine.txt": File(b""),
            **_below("own", _package()),
        }

        result = update_package(origin, updated, local, strategy="force-delete-replace")

        kptfile = File(b"# mine\n" + _kptfile("mine", ref="v2", description="new").data)
        assert result.contents == {**updated, "Kptfile": kptfile}


class TestCopyMerge:
    @pytest.mark.parametrize(
        ("origin", "updated", "local", "merged", "is_conflict"),
        [
            pytest.param(None, None, b"L", b"L", False, id="only local: survives"),
            pytest.param(None, b"U", None, b"U", False, id="added upstream: copied"),
            pytest.param(None, b"U", b"L", b"U", True, id="added on both sides: upstream's"),
            pytest.param(b"O", b"O", b"L", b"O", True, id="edited here: upstream's all the same"),
            pytest.param(b"O", b"U", b"O", b"U", False, id="changed upstream"),
            pytest.param(b"O", b"U", None, b"U", False, id="removed here: copied again"),
            pytest.param(b"O", None, b"O", None, False, id="removed upstream"),
            pytest.param(b"O", None, b"L", None, True, id="removed upstream although edited here"),
        ],
    )
    def test_the_table(
        self, origin: bytes | None, updated: bytes | None, local: bytes | None, merged: bytes | None, is_conflict: bool
    ) -> None:
        states = (origin, updated, local)
        trees = (_package({} if state is None else {"d/f.txt": File(state)}) for state in states)

        result = update_package(*trees, strategy="copy-merge")

        assert result.contents == _package({} if merged is None else {"d/f.txt": File(merged)})
        assert [(one.file, one.kept) for one in result.conflicts] == [("d/f.txt", Kept.UPDATED)] * is_conflict

    def test_the_root_kptfile_is_merged_and_a_subpackages_replaced(self) -> None:
        origin = _package(_below("sub", {"Kptfile": _kptfile("sub")}))
        updated = {"Kptfile": _kptfile(description="new"), "sub/Kptfile": _kptfile("sub", description="new")}
        local = {"Kptfile": _kptfile("mine"), "sub/Kptfile": _kptfile("mine")}

        result = update_package(origin, updated, local, strategy="copy-merge")

        assert result.contents["Kptfile"] == _kptfile("mine", description="new")
        assert result.contents["sub/Kptfile"] == updated["sub/Kptfile"]

    def test_a_directory_gone_upstream_stays_while_it_holds_local_files(self) -> None:
        origin = _package({"d/gone.txt": File(b"")})
        local = _package({"d/gone.txt": File(b""), "d/mine.txt": File(b"")})

        result = update_package(origin, _package(), local, strategy="copy-merge")

        assert result.contents == _package({"d/mine.txt": File(b"")})


class TestRecordingTheStrategy:
    def test_it_replaces_the_one_in_the_kptfile(self) -> None:
        contents = with_strategy({"Kptfile": _kptfile(ref="v1")}, "copy-merge")

        assert read_document(contents["Kptfile"].data)["upstream"]["updateStrategy"] == "copy-merge"
        assert with_strategy(contents, "copy-merge") == contents

    def test_a_package_without_upstream_has_none(self) -> None:
        assert with_strategy(_package(), "copy-merge") == _package()

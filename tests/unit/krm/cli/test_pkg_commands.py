"""``porch pkg`` as users and suites drive it: files in, output, messages and exit codes out."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from krm.cli.pkg import cli
from krm.package.contents import File
from krm.package.folder import read_folder, write_folder
from krm.package.kptfile import parse_kptfile
from krm.package.yaml_reader import read_document, same

_DATA = Path(__file__).parents[3] / "data"
_MERGE_CASES = json.loads((_DATA / "kpt/merge3/cases.json").read_text())
_KPTFILE_CASES = json.loads((_DATA / "kpt/kptfile-merge/cases.json").read_text())
_LIST_BY_NAME = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}

_KPTFILE = b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: pkg\n"
_CONFIG_MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  key: a\n"


def _run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)


def _merge3(folder: Path, origin: str, update: str, local: str, *options: str) -> Result:
    for name, text in (("origin", origin), ("update", update), ("local", local)):
        (folder / name).write_text(text)
    files = (part for name in ("origin", "update", "local") for part in (f"--{name}", folder / name))
    return _run("merge3", *files, *options)


class TestMerge3:
    @pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in _MERGE_CASES])
    def test_kyamls_cases_need_no_option(self, tmp_path: Path, case: dict[str, Any]) -> None:
        result = _merge3(tmp_path, case["origin"], case["update"], case["local"])

        assert result.exit_code == 0
        assert same(read_document(result.stdout), read_document(case["expected"]))

    @pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in _KPTFILE_CASES])
    def test_a_kptfile_is_merged_by_its_own_rules(self, tmp_path: Path, case: dict[str, Any]) -> None:
        option = f"--update-upstream={str(case['updateUpstream']).lower()}"
        updated: str = case["updated"] if "updated" in case else case["update"]

        result = _merge3(tmp_path, case["origin"], updated, case["local"], option)

        assert result.exit_code == 0
        assert same(read_document(result.stdout), read_document(case["expected"]))

    _NAMED = "apiVersion: {version}\nkind: Thing\nspec:\n  items:\n  - name: a\n    {field}\n"

    @pytest.mark.parametrize(
        ("version", "options", "is_merged"),
        [
            pytest.param("example.com/v1", [], False, id="a type without schema: one value"),
            pytest.param("example.com/v1", ["--infer=true"], True, id="inferred"),
            pytest.param('""', [], True, id="no type: inferred"),
            pytest.param('""', ["--infer=false"], False, id="no type, not inferred"),
        ],
    )
    def test_lists_are_inferred_as_documented(
        self, tmp_path: Path, version: str, options: list[str], is_merged: bool
    ) -> None:
        states = (self._NAMED.format(version=version, field=field) for field in ("x: 1", "x: 2", "x: 1\n    mine: 1"))

        result = _merge3(tmp_path, *states, *options)

        item = read_document(result.stdout)["spec"]["items"][0]
        assert item == {"name": "a", "x": 2, **({"mine": 1} if is_merged else {})}

    def test_list_keys_of_definitions_hold(self, tmp_path: Path) -> None:
        schema = {"properties": {"spec": {"properties": {"items": _LIST_BY_NAME}}}}
        version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
        crd = {
            "kind": "CustomResourceDefinition",
            "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [version]},
        }
        (tmp_path / "crd.yaml").write_text(json.dumps(crd))
        states = [
            self._NAMED.format(version="example.com/v1", field=field) for field in ("x: 1", "x: 2", "x: 1\n    mine: 1")
        ]

        result = _merge3(tmp_path, *states, f"--crd={tmp_path / 'crd.yaml'}")

        assert read_document(result.stdout)["spec"]["items"] == [{"name": "a", "x": 2, "mine": 1}]

    def test_comments_and_layout_of_local_stay(self, tmp_path: Path) -> None:
        local = "# mine\r\nkind:   ConfigMap # k\r\napiVersion: v1\r\ndata: {a: '1', b: \"2\"}"

        result = _merge3(tmp_path, "data: {b: '2'}", "data: {b: '3'}", local)

        assert result.stdout_bytes == local.replace('"2"', '"3"').encode()

    @pytest.mark.parametrize(
        ("origin", "update", "local", "merged"),
        [
            pytest.param("a: 1\n", "", "a: 1\n", "", id="removed upstream"),
            pytest.param("a: 1\n", "# nothing\n", "a: 2\n", "a: 2\n", id="removed upstream, edited here"),
            pytest.param("", "a: 1\n", "", "a: 1\n", id="added upstream"),
            pytest.param("a: 1\n", "a: 2\n", "", "", id="removed here"),
            pytest.param("", "", "a: 1\n", "a: 1\n", id="only here"),
        ],
    )
    def test_an_empty_file_is_no_resource(
        self, tmp_path: Path, origin: str, update: str, local: str, merged: str
    ) -> None:
        result = _merge3(tmp_path, origin, update, local)

        assert (result.exit_code, result.stdout) == (0, merged)

    def test_separators_and_byte_order_marks_stay(self, tmp_path: Path) -> None:
        local = "\ufeff# top\n---\na: 1\nmine: 1\n...\n"

        result = _merge3(tmp_path, "a: 1\n", "---\na: 2\n", local)

        assert result.stdout == local.replace("a: 1", "a: 2")

    def test_files_of_several_resources_are_merged_one_by_one(self, tmp_path: Path) -> None:
        def text(*values: str) -> str:
            return "---\n".join(
                f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m{number}\ndata:\n  k: {value}\n"
                for number, value in enumerate(values)
            )

        result = _merge3(tmp_path, text("a", "b"), text("x", "b", "new"), text("a", "mine"))

        assert result.stdout == text("x", "mine", "new")

    def test_conflicts_go_to_standard_error(self, tmp_path: Path) -> None:
        result = _merge3(tmp_path, "a: 1\n", "a: 2\n", "a: 3\n")

        assert (result.exit_code, result.stdout) == (0, "a: 2\n")
        assert result.stderr == "conflict: a: both sides changed it: upstream 2, local 3; kept upstream's\n"

    def test_one_file_may_be_standard_input(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("a: 1\n")

        result = _run("merge3", "--origin", tmp_path / "a", "--update", "-", "--local", tmp_path / "a", stdin=b"a: 2\n")

        assert result.stdout == "a: 2\n"

    @pytest.mark.parametrize(
        ("update", "message"),
        [
            pytest.param("a: [", "porch pkg: document.yaml (updated): yaml: line 2:", id="not yaml"),
            pytest.param("a: 1\n--- b\n", "(updated): yaml: line 2: invalid document separator", id="separator"),
            pytest.param("\ta: 1", "porch pkg: document.yaml (updated): yaml: line 1:", id="tab"),
        ],
    )
    def test_what_cannot_be_read_fails_with_a_message_and_no_output(
        self, tmp_path: Path, update: str, message: str
    ) -> None:
        result = _merge3(tmp_path, "a: 1\n", update, "a: 1\n")

        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr

    def test_a_file_that_is_missing_is_wrong_usage(self, tmp_path: Path) -> None:
        result = _run("merge3", "--origin", tmp_path / "none", "--update", "-", "--local", "-")

        assert result.exit_code == 2
        assert "none' does not exist" in result.stderr


class TestUpdate:
    @staticmethod
    def _trees(folder: Path, **trees: dict[str, bytes]) -> None:
        for name, files in trees.items():
            write_folder(folder / name, {}, {path: File(data) for path, data in files.items()})

    def _update(self, folder: Path, *options: str) -> Result:
        return _run("update", folder / "local", "--origin", folder / "o", "--update", folder / "u", *options)

    def test_changes_come_in_place_and_conflicts_are_listed(self, tmp_path: Path) -> None:
        self._trees(
            tmp_path,
            o={"Kptfile": _KPTFILE, "cm.yaml": _CONFIG_MAP, "README.md": b"1"},
            u={"Kptfile": _KPTFILE, "cm.yaml": _CONFIG_MAP.replace(b"key: a", b"key: b"), "README.md": b"2"},
            local={"Kptfile": _KPTFILE, "cm.yaml": _CONFIG_MAP.replace(b"key: a", b"key: c"), "README.md": b"1"},
        )

        result = self._update(tmp_path)

        assert (result.exit_code, result.stdout) == (0, "")
        local = read_folder(tmp_path / "local")
        assert b"key: b" in local["cm.yaml"].data
        assert local["README.md"].data == b"2"
        assert "conflict: cm.yaml: |ConfigMap||settings: data.key: both sides changed it" in result.stderr
        assert result.stderr.endswith("2 files changed, 1 conflicts\n")

    def test_resources_carry_their_upstream_identity_afterwards(self, tmp_path: Path) -> None:
        files = {"Kptfile": _KPTFILE, "cm.yaml": _CONFIG_MAP}
        self._trees(tmp_path, o=files, u=files, local=files)

        self._update(tmp_path)

        assert b"metadata: # kpt-merge: /settings" in (tmp_path / "local/cm.yaml").read_bytes()
        assert (tmp_path / "local/Kptfile").read_bytes() == _KPTFILE
        assert self._update(tmp_path).stderr == "0 files changed, 0 conflicts\n"

    def test_the_strategy_is_used_and_recorded(self, tmp_path: Path) -> None:
        upstream = b"upstream:\n  type: git\n  git:\n    repo: r\n    directory: d\n    ref: v1\n"
        self._trees(
            tmp_path,
            o={"Kptfile": _KPTFILE, "a": b"1"},
            u={"Kptfile": _KPTFILE, "a": b"2"},
            local={"Kptfile": _KPTFILE + upstream, "a": b"mine"},
        )

        result = self._update(tmp_path, "--strategy=force-delete-replace")

        assert result.exit_code == 0
        assert (tmp_path / "local/a").read_bytes() == b"2"
        kptfile = parse_kptfile((tmp_path / "local/Kptfile").read_bytes())
        assert kptfile.upstream
        assert kptfile.upstream["updateStrategy"] == "force-delete-replace"

    def test_a_refused_update_changes_nothing(self, tmp_path: Path) -> None:
        files = {"Kptfile": _KPTFILE, "a.yaml": _CONFIG_MAP}
        self._trees(tmp_path, o=files, u=files, local={**files, "a.yaml": _CONFIG_MAP + b"  mine: x\n"})
        before = read_folder(tmp_path / "local")

        result = self._update(tmp_path, "--strategy", "fast-forward")

        assert result.exit_code == 1
        assert result.stderr == (
            "porch pkg: local package files have been modified: [a.yaml].\n  use a different update --strategy.\n"
        )
        assert read_folder(tmp_path / "local") == before

    def test_an_unknown_strategy_is_wrong_usage(self, tmp_path: Path) -> None:
        self._trees(tmp_path, o={"Kptfile": _KPTFILE}, u={"Kptfile": _KPTFILE}, local={"Kptfile": _KPTFILE})

        assert self._update(tmp_path, "--strategy=rebase").exit_code == 2

    def test_a_remote_subpackage_with_a_new_ref_is_named(self, tmp_path: Path) -> None:
        def tree(ref: bytes) -> dict[str, bytes]:
            return {"Kptfile": _KPTFILE, "sub/Kptfile": _KPTFILE + b"upstream:\n  git:\n    ref: " + ref + b"\n"}

        self._trees(tmp_path, o=tree(b"v1"), u=tree(b"v2"), local=tree(b"v1"))

        assert "sub: has an upstream of its own that changed" in self._update(tmp_path).stderr


class TestDiff:
    def test_the_same_package_exits_with_zero(self, tmp_path: Path) -> None:
        write_folder(tmp_path, {}, {"a": File(b"1")})

        result = _run("diff", tmp_path, tmp_path)

        assert (result.exit_code, result.output) == (0, "")

    def test_a_difference_is_printed_and_exits_with_one(self, tmp_path: Path) -> None:
        write_folder(tmp_path / "a", {}, {"f": File("é\r\n".encode())})
        write_folder(tmp_path / "b", {}, {"f": File(b"e\r\n")})

        result = _run("diff", tmp_path / "a", tmp_path / "b")

        assert result.exit_code == 1
        assert result.stdout_bytes == ("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-é\r\n+e\r\n".encode())

    def test_what_cannot_be_compared_exits_with_two(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/back\\slash").touch()

        result = _run("diff", tmp_path / "a", tmp_path / "a")

        assert result.exit_code == 2
        assert "porch pkg: 'back\\\\slash': the path contains a backslash" in result.stderr
        assert _run("diff", tmp_path / "none", tmp_path).exit_code == 2


class TestInit:
    def test_a_folder_becomes_a_package(self, tmp_path: Path) -> None:
        result = _run(
            "init", tmp_path / "new/app", "--description=An app", "--keywords=a, b,", "--site=https://example.com"
        )

        assert result.exit_code == 0
        kptfile = parse_kptfile((tmp_path / "new/app/Kptfile").read_bytes())
        assert kptfile.name == "app"
        assert kptfile.info == {"site": "https://example.com", "description": "An app", "keywords": ["a", "b"]}
        assert sorted(read_folder(tmp_path / "new/app")) == ["Kptfile", "README.md", "package-context.yaml"]
        assert result.stderr.splitlines()[0] == f"wrote {tmp_path / 'new/app/Kptfile'}"

    def test_the_name_can_be_given(self, tmp_path: Path) -> None:
        _run("init", tmp_path, "--name", "other")

        assert parse_kptfile((tmp_path / "Kptfile").read_bytes()).name == "other"

    def test_a_kptfile_that_exists_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "Kptfile").write_bytes(b"mine")

        result = _run("init", tmp_path)

        assert result.exit_code == 1
        assert f"{tmp_path / 'Kptfile'}: exists; the folder is a package already" in result.stderr
        assert read_folder(tmp_path) == {"Kptfile": File(b"mine")}

    def test_other_files_that_exist_stay(self, tmp_path: Path) -> None:
        (tmp_path / "README.md").write_bytes(b"mine")

        assert _run("init", tmp_path).exit_code == 0
        assert (tmp_path / "README.md").read_bytes() == b"mine"


def test_the_command_runs_as_a_program_and_loads_no_server() -> None:
    script = (
        "import sys; from krm.cli.pkg import cli; cli(['--help'], standalone_mode=False);"
        "print([name for name in sys.modules if name.split('.')[0] in ('apiserver', 'fastapi', 'pydantic', 'krm')])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert "merge3" in done.stdout
    assert done.stdout.splitlines()[-1] == "['krm', 'krm.cli', 'krm.cli.pkg']"

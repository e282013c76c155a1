"""How packages differ: patches for people, and which files count as edited."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from cost import metered
from hypothesis import given, settings
from hypothesis import strategies as st

from krm.package.clone import clone_package
from krm.package.contents import EXECUTABLE, SYMLINK, File
from krm.package.folder import read_folder, write_folder
from krm.package.merge import package_diff
from krm.package.merge.package_diff import changed_files, edited_files, patch

_KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: base
info:
  description: A base
"""
_CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  a: "1"
"""


def _patch(one: dict[str, File], other: dict[str, File]) -> str:
    return "".join(patch(one, other))


class TestPatch:
    def test_shows_changed_added_and_removed_files_in_order(self) -> None:
        one = {"b": File(b"1\n2\n3\n"), "gone": File(b"x\n"), "same": File(b"s\n")}
        other = {"b": File(b"1\ntwo\n3\n"), "a": File(b"new\n", EXECUTABLE), "same": File(b"s\n")}

        assert _patch(one, other) == (
            "diff --git a/a b/a\n"
            "new file mode 100755\n"
            "--- /dev/null\n"
            "+++ b/a\n"
            "@@ -0,0 +1 @@\n"
            "+new\n"
            "diff --git a/b b/b\n"
            "--- a/b\n"
            "+++ b/b\n"
            "@@ -1,3 +1,3 @@\n"
            " 1\n"
            "-2\n"
            "+two\n"
            " 3\n"
            "diff --git a/gone b/gone\n"
            "deleted file mode 100644\n"
            "--- a/gone\n"
            "+++ /dev/null\n"
            "@@ -1 +0,0 @@\n"
            "-x\n"
        )

    def test_binary_files_and_links_are_named_only(self) -> None:
        one = {"bin": File(b"\0"), "link": File(b"a", SYMLINK), "latin": File(b"\xe9")}
        other = {"bin": File(b"\1\0"), "link": File(b"b", SYMLINK), "latin": File(b"\xe8")}

        lines = _patch(one, other).splitlines()

        assert [line for line in lines if not line.startswith("diff")] == [
            "Binary files a/bin and b/bin differ",
            "Binary files a/latin and b/latin differ",
            "Binary files a/link and b/link differ",
        ]

    def test_a_change_of_mode_alone_has_no_hunks(self) -> None:
        assert _patch({"run": File(b"x\n")}, {"run": File(b"x\n", EXECUTABLE)}) == (
            "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
        )

    def test_equal_packages_have_no_patch(self) -> None:
        assert _patch({"a": File(b"x")}, {"a": File(b"x")}) == ""

    @pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patch")
    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "é\n", "\n"])), st.data())
    def test_git_applies_it_and_gets_the_other_package(self, lines: list[str], data: st.DataObject) -> None:
        old = "".join(lines) + data.draw(st.sampled_from(["", "end"]))
        changed = data.draw(st.lists(st.sampled_from([*lines, "new\n"])))
        new = "".join(changed) + data.draw(st.sampled_from(["", "end"]))
        self._assert_applies({"f": File(old.encode())}, {"f": File(new.encode())})

    @pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patch")
    @pytest.mark.parametrize("most", [0, 4, 2000])
    def test_a_long_file_is_compared_in_part_only_and_still_applies(
        self, monkeypatch: pytest.MonkeyPatch, most: int
    ) -> None:
        monkeypatch.setattr(package_diff, "_MOST_COMPARED_LINES", most)
        old = [f"{number}\n" for number in range(30)]
        for start, end, new in ((0, 1, []), (10, 12, ["x\n"] * 4), (29, 30, ["last"]), (0, 30, []), (5, 5, ["y\n"])):
            changed = [*old[:start], *new, *old[end:]]
            self._assert_applies({"f": File("".join(old).encode())}, {"f": File("".join(changed).encode())})
            self._assert_applies({"f": File("".join(changed).encode())}, {"f": File("".join(old).encode())})

    @staticmethod
    def _assert_applies(one: dict[str, File], other: dict[str, File]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_folder(Path(folder), {}, one)
            text = "".join(patch(one, other))
            if text:
                subprocess.run(
                    ["git", "apply", "--unsafe-paths", "--whitespace=nowarn", "-"],
                    input=text.encode(),
                    cwd=folder,
                    check=True,
                    env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)},
                )
            assert read_folder(Path(folder)) == other

    def test_a_hostile_file_is_compared_in_bounded_time(self) -> None:
        old = File("".join(f"{number % 99}\n" for number in range(100_000)).encode())
        new = File("".join(f"{number % 98}\n" for number in range(100_000)).encode())
        with metered() as cost:
            assert len(_patch({"f": old}, {"f": new})) > len(old.data)

        assert cost.seconds < 5


class TestEditedFiles:
    def test_a_fresh_clone_has_none(self) -> None:
        upstream = {"type": "git", "git": {"repo": "r", "directory": "d", "ref": "v1"}}
        origin = {"Kptfile": File(_KPTFILE.encode()), "cm.yaml": File(_CONFIG_MAP.encode()), "README.md": File(b"r")}

        clone = clone_package(origin, name="mine", upstream=upstream, upstream_lock=upstream, context_path=None)

        assert clone != origin
        assert edited_files(origin, clone) == []

    @pytest.mark.parametrize(
        ("path", "old", "new"),
        [
            pytest.param("cm.yaml", '"1"', '"2"', id="value"),
            pytest.param("cm.yaml", '"1"', '"1" # why', id="comment"),
            pytest.param("cm.yaml", "name: settings", "name: mine", id="name of a resource"),
            pytest.param("Kptfile", "A base", "My base", id="description"),
            pytest.param("sub/Kptfile", "name: base", "name: mine", id="name of a subpackage"),
            pytest.param("README.md", "r", "R", id="other file"),
            pytest.param("broken.yaml", "}", "]", id="not yaml"),
        ],
    )
    def test_what_a_person_writes_counts(self, path: str, old: str, new: str) -> None:
        origin = {
            "Kptfile": File(_KPTFILE.encode()),
            "sub/Kptfile": File(_KPTFILE.encode()),
            "cm.yaml": File(_CONFIG_MAP.encode()),
            "README.md": File(b"r"),
            "broken.yaml": File(b"a: {}}"),
        }
        local = {**origin, path: File(origin[path].data.decode().replace(old, new).encode())}
        assert local != origin

        assert edited_files(origin, local) == [path]

    @pytest.mark.parametrize(
        "addition",
        [
            pytest.param("upstream:\n  type: git\n", id="upstream"),
            pytest.param("upstreamLock:\n  type: git\n", id="lock"),
            pytest.param('status:\n  conditions:\n  - type: Rendered\n    status: "True"\n', id="render status"),
            pytest.param("status:\n  renderStatus:\n    mutationSteps: []\n", id="render steps"),
        ],
    )
    def test_what_tools_write_in_the_root_kptfile_does_not_count(self, addition: str) -> None:
        origin = {"Kptfile": File(_KPTFILE.encode())}

        assert edited_files(origin, {"Kptfile": File((_KPTFILE + addition).encode())}) == []

    def test_another_condition_counts(self) -> None:
        added = 'status:\n  conditions:\n  - type: Ready\n    status: "True"\n'

        assert edited_files({"Kptfile": File(_KPTFILE.encode())}, {"Kptfile": File((_KPTFILE + added).encode())}) == [
            "Kptfile"
        ]

    def test_a_generated_kptfile_beside_none_does_not_count(self) -> None:
        generated = File(b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: any\n")

        assert edited_files({}, {"Kptfile": generated}) == []
        assert edited_files({}, {"Kptfile": File(_KPTFILE.encode())}) == ["Kptfile"]

    def test_a_mode_counts(self) -> None:
        assert edited_files({"a": File(b"")}, {"a": File(b"", EXECUTABLE)}) == ["a"]


def test_changed_files_are_sorted_and_count_bytes_and_modes() -> None:
    one = {"c": File(b"1"), "a": File(b"1"), "m": File(b"")}
    other = {"c": File(b"2"), "b": File(b"1"), "m": File(b"", EXECUTABLE)}

    assert changed_files(one, other) == ["a", "b", "c", "m"]

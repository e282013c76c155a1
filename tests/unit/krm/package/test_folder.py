"""Packages as folders: what is read, what is written, and what an interruption leaves."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from krm.package import folder
from krm.package.contents import EXECUTABLE, REGULAR, SUBMODULE, SYMLINK, ContentsError, File
from krm.package.folder import read_folder, write_folder


def _fill(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


class TestReading:
    def test_every_file_is_read_with_its_mode(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"Kptfile": b"k", "a/b/run.sh": b"#!", "empty": b"", "bin": b"\0\xff"})
        (tmp_path / "a/b/run.sh").chmod(0o755)

        contents = read_folder(tmp_path)

        assert contents == {
            "Kptfile": File(b"k"),
            "a/b/run.sh": File(b"#!", EXECUTABLE),
            "bin": File(b"\0\xff"),
            "empty": File(b""),
        }

    def test_paths_come_in_lexical_order_directory_by_directory(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"b": b"", "a/z": b"", "a/b/c": b"", "a.yaml": b""})

        assert list(read_folder(tmp_path)) == ["a.yaml", "a/b/c", "a/z", "b"]

    @pytest.mark.parametrize("path", [".git/HEAD", "sub/.git/HEAD", "sub/.git"])
    def test_git_directories_are_no_part_of_a_package(self, tmp_path: Path, path: str) -> None:
        _fill(tmp_path, {"Kptfile": b"", path: b"ref"})

        assert list(read_folder(tmp_path)) == ["Kptfile"]

    def test_what_a_killed_write_left_is_no_part_of_the_package(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"a/.porch-0123456789abcdef.tmp": b"ha", "a/.porch-notes.tmp": b"n"})

        assert list(read_folder(tmp_path)) == ["a/.porch-notes.tmp"]

    def test_links_below_are_entries_and_not_followed(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        _fill(tmp_path, {"outside/secret": b"s", "package/Kptfile": b""})
        (tmp_path / "package/link").symlink_to(outside)
        (tmp_path / "package/broken").symlink_to("nowhere")

        contents = read_folder(tmp_path / "package")

        assert contents["link"] == File(os.fsencode(outside), SYMLINK)
        assert contents["broken"] == File(b"nowhere", SYMLINK)
        assert sorted(contents) == ["Kptfile", "broken", "link"]

    def test_the_folder_itself_may_be_a_link(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"package/Kptfile": b"k"})
        (tmp_path / "link").symlink_to("package")

        assert read_folder(tmp_path / "link") == {"Kptfile": File(b"k")}

    def test_a_pipe_is_refused_and_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(ContentsError, match="'pipe': neither a file"):
            read_folder(tmp_path)

    def test_the_size_is_limited_in_all(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder, "MAX_TOTAL_BYTES", 1 << 20)
        _fill(tmp_path, {"a": b"x" * (1 << 19), "b": b"x" * ((1 << 19) + 1)})

        with pytest.raises(ContentsError, match="larger than 1 MiB"):
            read_folder(tmp_path)

    def test_the_number_of_files_is_limited(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder, "MAX_FILES", 2)
        _fill(tmp_path, {"a": b"", "b": b"", "c": b""})

        with pytest.raises(ContentsError, match="more than 2 files"):
            read_folder(tmp_path)

    def test_a_folder_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="absent"):
            read_folder(tmp_path / "absent")


class TestWriting:
    def test_what_was_written_is_read_again(self, tmp_path: Path) -> None:
        new = {
            "Kptfile": File(b"k"),
            "a/b/run.sh": File(b"#!", EXECUTABLE),
            "link": File(b"a/b", SYMLINK),
            "empty": File(b""),
        }

        write_folder(tmp_path / "made/here", {}, new)

        assert read_folder(tmp_path / "made/here") == new

    def test_only_what_changed_is_touched(self, tmp_path: Path) -> None:
        old = {"a": File(b"1"), "b": File(b"2"), "c": File(b"3")}
        write_folder(tmp_path, {}, old)
        before = {name: (tmp_path / name).stat().st_ino for name in old}

        write_folder(tmp_path, old, {"a": File(b"1"), "b": File(b"new")})

        assert (tmp_path / "a").stat().st_ino == before["a"]
        assert (tmp_path / "b").stat().st_ino != before["b"]
        assert read_folder(tmp_path) == {"a": File(b"1"), "b": File(b"new")}

    def test_permissions_of_a_replaced_file_stay_but_for_the_execute_bits(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"secret": b"1", "tool": b"2"})
        (tmp_path / "secret").chmod(0o640)
        (tmp_path / "tool").chmod(0o750)
        old = read_folder(tmp_path)

        write_folder(tmp_path, old, {"secret": File(b"x", EXECUTABLE), "tool": File(b"y")})

        assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o750
        assert (tmp_path / "tool").stat().st_mode & 0o777 == 0o640

    def test_directories_that_become_empty_are_left(self, tmp_path: Path) -> None:
        old = {"a/b": File(b"")}
        write_folder(tmp_path, {}, old)

        write_folder(tmp_path, old, {})

        assert list((tmp_path / "a").iterdir()) == []

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            pytest.param({"a": File(b"1")}, {"a/b": File(b"2")}, id="file to directory"),
            pytest.param({"a/b/c": File(b"1"), "a/d": File(b"")}, {"a": File(b"2")}, id="directory to file"),
            pytest.param({"a": File(b"b", SYMLINK)}, {"a/b": File(b"2")}, id="link to directory"),
            pytest.param({"a": File(b"b", SYMLINK)}, {"a": File(b"2")}, id="link to file"),
            pytest.param({"a": File(b"2")}, {"a": File(b"b", SYMLINK)}, id="file to link"),
        ],
    )
    def test_a_path_changes_its_kind(self, tmp_path: Path, old: dict[str, File], new: dict[str, File]) -> None:
        write_folder(tmp_path, {}, old)

        write_folder(tmp_path, old, new)

        assert read_folder(tmp_path) == new

    def test_nothing_is_written_through_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "package").mkdir()
        (tmp_path / "package/link").symlink_to(tmp_path / "outside")

        with pytest.raises(ContentsError, match="'link': is a symbolic link where the package has a directory"):
            write_folder(tmp_path / "package", {}, {"a": File(b""), "link/evil": File(b"")})

        assert list((tmp_path / "outside").iterdir()) == []
        assert not (tmp_path / "package/a").exists()

    def test_nothing_is_deleted_through_a_link(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"outside/file": b"mine"})
        (tmp_path / "package").mkdir()
        (tmp_path / "package/link").symlink_to(tmp_path / "outside")

        with pytest.raises(ContentsError, match="'link': is a symbolic link"):
            write_folder(tmp_path / "package", {"link/file": File(b"mine")}, {})

        assert (tmp_path / "outside/file").read_bytes() == b"mine"

    @pytest.mark.parametrize(
        ("path", "file"),
        [
            pytest.param("../evil", File(b""), id="outside"),
            pytest.param(".git/hooks/pre-commit", File(b"", EXECUTABLE), id="repository"),
            pytest.param("module", File(b"", SUBMODULE), id="submodule"),
        ],
    )
    def test_what_is_no_part_of_a_package_is_refused_before_anything_is_written(
        self, tmp_path: Path, path: str, file: File
    ) -> None:
        with pytest.raises(ContentsError, match=path):
            write_folder(tmp_path / "package", {}, {"a": File(b""), path: file})

        assert not (tmp_path / "package/a").exists()

    def test_a_directory_that_holds_other_files_is_not_replaced(self, tmp_path: Path) -> None:
        _fill(tmp_path, {"a/mine": b"1"})

        with pytest.raises(OSError, match="not empty"):
            write_folder(tmp_path, {}, {"a": File(b"2")})

        assert (tmp_path / "a/mine").read_bytes() == b"1"

    @pytest.mark.parametrize("failing", range(3))
    def test_a_failure_in_the_middle_leaves_each_file_old_or_new_and_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
    ) -> None:
        old = {name: File(b"old" * 100_000) for name in ("a", "b", "c", "gone")}
        new = {name: File(b"new" * 200_000) for name in ("a", "b", "c")}
        write_folder(tmp_path, {}, old)
        replaced = 0
        replace = Path.replace

        def stop_after_a_while(self: Path, target: Path) -> Path:
            nonlocal replaced
            if replaced == failing:
                raise OSError("no space left on device")
            replaced += 1
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", stop_after_a_while)
        with pytest.raises(OSError, match="no space left"):
            write_folder(tmp_path, old, new)
        monkeypatch.undo()

        left = read_folder(tmp_path)
        assert sorted(left) == ["a", "b", "c", "gone"]
        assert [left[name] == new[name] for name in new].count(True) == failing
        assert all(left[name] in (old[name], new[name]) for name in new)
        write_folder(tmp_path, old, new)
        assert read_folder(tmp_path) == new

    def test_a_kill_in_the_middle_leaves_each_file_old_or_new_and_whole(self, tmp_path: Path) -> None:
        program = (
            "import sys; from pathlib import Path; from krm.package.contents import File\n"
            "from krm.package.folder import write_folder\n"
            "one, two = ({str(n): File(text * 200_000) for n in range(20)} for text in (b'o', b'n'))\n"
            "write_folder(Path(sys.argv[1]), {}, one); print('written', flush=True)\n"
            "while True:\n"
            "    write_folder(Path(sys.argv[1]), one, two); write_folder(Path(sys.argv[1]), two, one)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            assert writer.stdout.readline() == b"written\n"
            time.sleep(0.05)
            writer.kill()

        left = read_folder(tmp_path)

        assert sorted(left) == sorted(map(str, range(20)))
        assert {file.data for file in left.values()} <= {b"o" * 200_000, b"n" * 200_000}

    def test_a_new_file_has_the_umasks_permissions(self, tmp_path: Path) -> None:
        (tmp_path / "reference").touch()

        write_folder(tmp_path, {}, {"plain": File(b"", REGULAR), "run": File(b"", EXECUTABLE)})

        plain = (tmp_path / "reference").stat().st_mode & 0o777
        assert (tmp_path / "plain").stat().st_mode & 0o777 == plain
        assert (tmp_path / "run").stat().st_mode & 0o777 == plain | (plain & 0o444) >> 2

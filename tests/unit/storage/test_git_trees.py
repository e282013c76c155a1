import pytest
from cost import processor_seconds
from hypothesis import given
from hypothesis import strategies as st

from krm.package.contents import EXECUTABLE, SUBMODULE, SYMLINK, File
from storage.git.errors import CorruptObject, LimitExceeded, ObjectMissing, UnsafePath
from storage.git.objects import GitObject, Overlay, blob, git_object
from storage.git.trees import (
    EMPTY_TREE,
    Limits,
    entries,
    find_entry,
    read_package,
    replace_subtree,
    subtree,
    write_package,
)

names = st.text(st.sampled_from("ab.-4 0"), min_size=1, max_size=8).filter(lambda name: name.strip(". ") != "")


class Objects(dict[str, GitObject]):
    def read(self, oid: str) -> GitObject:
        if oid not in self:
            raise ObjectMissing(oid)
        return self[oid]

    def keep(self, made: tuple[str, list[GitObject]]) -> str:
        self.update({item.oid: item for item in made[1]})
        return made[0]


def tree_of(rows: dict[bytes, tuple[int, str]]) -> bytes:
    ordered = sorted(rows, key=lambda name: name + b"/" if rows[name][0] == 0o40000 else name)
    return b"".join(b"%o %s\0" % (rows[name][0], name) + bytes.fromhex(rows[name][1]) for name in ordered)


@given(st.dictionaries(names, st.tuples(st.sampled_from([0o40000, 0o100644, 0o100755]), st.binary(max_size=4))), names)
def test_an_entry_is_found_exactly_when_the_tree_has_it(rows: dict[str, tuple[int, bytes]], wanted: str) -> None:
    table = {name.encode(): (mode, blob(data).oid) for name, (mode, data) in rows.items()}
    tree = tree_of(table)

    assert find_entry(tree, wanted.encode()) == table.get(wanted.encode())
    assert {name: (mode, oid) for mode, name, oid in entries(tree)} == table


def test_a_file_name_that_looks_like_an_entry_is_not_taken_for_one() -> None:
    """Names may hold spaces, so the bytes of another entry can be written into one."""
    for length in range(30):
        rows = {b"a": (0o100644, "00" * 20), b"b" * length + b" 40000 x": (0o100644, "00" * 20)}

        assert find_entry(tree_of(rows), b"x") is None


@given(st.dictionaries(names, st.binary(min_size=1, max_size=3), max_size=12), names, st.binary(min_size=1, max_size=3))
def test_splicing_a_package_gives_the_tree_git_would_write(packages: dict[str, bytes], name: str, data: bytes) -> None:
    source = Objects()
    whole = {f"{package}/f": File(content) for package, content in packages.items()}
    root = source.keep(write_package(whole))
    package = source.keep(write_package({"f": File(data)}))

    spliced = source.keep(replace_subtree(source, root, name, package))

    assert spliced == write_package(whole | {f"{name}/f": File(data)})[0]


@given(st.dictionaries(names, st.binary(max_size=3), min_size=1, max_size=8))
def test_removing_every_package_again_leaves_the_empty_tree(packages: dict[str, bytes]) -> None:
    source = Objects()
    root = source.keep(write_package({f"deep/{package}/f": File(content) for package, content in packages.items()}))

    for package in packages:
        root = source.keep(replace_subtree(source, root, f"deep/{package}", None))

    assert root == EMPTY_TREE


def test_removing_what_is_not_there_changes_nothing() -> None:
    source = Objects()
    root = source.keep(write_package({"a/f": File(b"1")}))

    assert replace_subtree(source, root, "b/c", None) == (root, [])


def test_a_file_in_the_way_of_a_package_is_replaced() -> None:
    source = Objects()
    root = source.keep(write_package({"a": File(b"file"), "a.b": File(b"stays"), "a0": File(b"stays")}))
    package = source.keep(write_package({"f": File(b"1")}))

    made = source.keep(replace_subtree(source, root, "a", package))

    assert sorted(read_package(source, made)) == ["a.b", "a/f", "a0"]
    assert made == write_package({"a/f": File(b"1"), "a.b": File(b"stays"), "a0": File(b"stays")})[0]


def test_a_package_keeps_every_byte_and_mode() -> None:
    contents = {
        "Kptfile": File(b"kind: Kptfile\r\n"),
        "bin/run": File(b"#!/bin/sh\n", EXECUTABLE),
        "empty": File(b""),
        "link": File(b"../target", SYMLINK),
        "sub": File(b"ab" * 20, SUBMODULE),
        "umläut/\udcff": File(b"\x00\xff"),
    }
    source = Objects()

    assert read_package(source, source.keep(write_package(contents))) == dict(sorted(contents.items()))


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../b", "./a", "a//b", ".git/config", ".GIT/x", "a/.git", "git~1/x", ".git /x",
     ".git::$INDEX_ALLOCATION/x", ".g\u200cit/x", "a\\..\\b", "a\x00b", "a\nb", "x" * 256, "/".join("a" * 40), "a/"],
)  # fmt: skip
def test_a_hostile_path_is_never_written(path: str) -> None:
    with pytest.raises(UnsafePath):
        write_package({path: File(b"")})


def test_a_path_that_is_both_file_and_directory_is_refused() -> None:
    with pytest.raises(CorruptObject):
        write_package({"a": File(b""), "a/b": File(b"")})
    with pytest.raises(CorruptObject):
        write_package({"a/b": File(b""), "a": File(b"")})


@pytest.mark.parametrize(
    "limits", [Limits(files=2), Limits(size=10), Limits(depth=2)], ids=["files", "bytes", "levels"]
)
def test_a_package_over_a_limit_is_not_read(limits: Limits) -> None:
    source = Objects()
    tree = source.keep(write_package({"a": File(b"12345"), "b": File(b"123456"), "c/d/e": File(b"")}))

    with pytest.raises(LimitExceeded):
        read_package(source, tree, limits=limits)


def test_garbage_is_no_tree() -> None:
    with pytest.raises(CorruptObject):
        list(entries(b"100644 a\0short"))


def test_splicing_a_root_of_ten_thousand_packages_takes_about_a_millisecond() -> None:
    source = Objects()
    package = source.keep(write_package({"f": File(b"1")}))
    row = bytes.fromhex(blob(b"x").oid)
    root = git_object("tree", b"".join(b"40000 pkg%05d\0" % number + row for number in range(10_000)))
    source[root.oid] = root
    numbers = iter(range(20))

    def splice() -> None:
        number = next(numbers)
        replace_subtree(source, root.oid, f"pkg{number * 499:05d}{'new' * (number % 2)}", package)

    # The rule is below 1 ms on a quiet machine; a broken one (walking the tree) takes above 4.
    assert processor_seconds(splice, times=20) < 0.002


def test_a_subtree_is_found_at_any_depth_and_files_are_none() -> None:
    source = Objects()
    root = source.keep(write_package({"a/b/c/f": File(b"1"), "a/x": File(b"2")}))

    assert subtree(source, root, "a/b/c") == write_package({"f": File(b"1")})[0]
    assert subtree(source, root, "") == root
    assert subtree(source, root, "a/x") is None
    assert subtree(source, root, "a/b/d") is None


def test_pending_objects_lie_over_the_clone_until_each_addition_is_discarded() -> None:
    stored, pending, elsewhere = blob(b"stored"), blob(b"pending"), blob(b"elsewhere")
    overlay = Overlay(Objects({stored.oid: stored}), lambda oid: elsewhere if oid == elsewhere.oid else None)
    overlay.add([pending])
    overlay.add([pending])
    overlay.discard([pending.oid, "0" * 40])

    assert [overlay.read(item.oid) for item in (stored, pending, elsewhere)] == [stored, pending, elsewhere]
    overlay.discard([pending.oid])
    with pytest.raises(ObjectMissing):
        overlay.read(pending.oid)

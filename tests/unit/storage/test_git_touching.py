"""Which commit last touched a package: merges, reverts, many packages, bounds."""

import pytest

from krm.package.contents import File
from storage.git import touching
from storage.git.commits import Identity, build_commit
from storage.git.errors import ObjectMissing
from storage.git.objects import GitObject, git_object
from storage.git.touching import last_touching
from storage.git.trees import replace_subtree, write_package

WHO = Identity("ann", "ann@example.com")


class Branch:
    """A branch in memory; commits get longer ago the earlier they are made."""

    def __init__(self) -> None:
        root = git_object("tree", b"")
        self.objects: dict[str, GitObject] = {root.oid: root}
        self.reads = 0
        self.root, self.head, self.time = root.oid, "", 1_700_000_000

    def read(self, oid: str) -> GitObject:
        self.reads += 1
        if oid not in self.objects:
            raise ObjectMissing(oid)
        return self.objects[oid]

    def commit(self, path: str, text: str | None, *merged: str) -> str:
        tree, objects = (None, []) if text is None else write_package({"Kptfile": File(text.encode())})
        self.root, trees = replace_subtree(self, self.root, path, tree)
        self.time += 1
        parents = tuple(parent for parent in (self.head, *merged) if parent)
        made = build_commit(self.root, parents, WHO, f"change {path}", self.time)
        self.objects |= {item.oid: item for item in [*objects, *trees, made]}
        self.head = made.oid
        return made.oid


def test_the_newest_commit_of_each_package_is_found_whatever_came_after() -> None:
    branch = Branch()
    a = branch.commit("a", "1")
    nested = branch.commit("dir/sub/b", "1")
    branch.commit("c", "1")
    c = branch.commit("c", "2")
    branch.commit("README", "x")

    assert last_touching(branch, branch.head, ["a", "dir/sub/b", "c"]) == {"a": a, "dir/sub/b": nested, "c": c}


def test_a_revert_touches_although_the_content_is_an_old_one() -> None:
    branch = Branch()
    branch.commit("a", "1")
    branch.commit("a", "2")
    reverted = branch.commit("a", "1")
    branch.commit("b", "1")

    assert last_touching(branch, branch.head, ["a"]) == {"a": reverted}


def test_a_package_that_was_removed_and_came_back_was_touched_when_it_came_back() -> None:
    branch = Branch()
    branch.commit("a", "1")
    branch.commit("a", None)
    again = branch.commit("a", "1")

    assert last_touching(branch, branch.head, ["a"]) == {"a": again}


def test_what_a_merge_brought_was_touched_by_the_merge() -> None:
    branch = Branch()
    branch.commit("a", "1")
    main, root = branch.head, branch.root
    side = branch.commit("a", "2")
    branch.head, branch.root = main, root
    merge = branch.commit("a", "2", side)

    assert last_touching(branch, branch.head, ["a"]) == {"a": merge}


def test_history_that_ends_early_answers_what_is_known() -> None:
    branch = Branch()
    first = branch.commit("a", "1")
    second = branch.commit("b", "1")
    third = branch.commit("c", "1")
    del branch.objects[first]

    assert last_touching(branch, third, ["a", "b", "c"]) == {"c": third}
    assert second not in last_touching(branch, third, ["a"]).values()


def test_the_walk_ends_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touching, "MAX_COMMITS", 3)
    branch = Branch()
    branch.commit("a", "1")
    for number in range(5):
        branch.commit("b", str(number))

    assert last_touching(branch, branch.head, ["a", "b"]) == {"b": branch.head}


def test_a_thousand_packages_take_one_walk() -> None:
    branch = Branch()
    commits = {f"p{number}": branch.commit(f"p{number}", "1") for number in range(1000)}
    branch.reads = 0

    assert last_touching(branch, branch.head, commits.keys()) == commits
    assert branch.reads < 5 * len(commits)

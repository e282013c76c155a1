from krm.package.contents import File
from storage.git.commits import Annotation, Identity, Task, approval_line, build_commit, format_message
from storage.git.discovery import Discovery, FoundRevision, discover
from storage.git.errors import ObjectMissing
from storage.git.objects import GitObject, git_object
from storage.git.trees import EMPTY_TREE, replace_subtree, write_package

WHO = Identity("ann", "ann@example.com")
INIT: Task = {"type": "init", "init": {}}
MAIN = "refs/heads/main"


class History:
    """Builds the history of a repository in memory, as the engine would."""

    def __init__(self) -> None:
        self.objects: dict[str, GitObject] = {}
        self.refs: dict[str, str] = {}
        self.time = 1_700_000_000
        root = git_object("tree", b"")
        self.objects[root.oid] = root
        self.refs[MAIN] = self.commit(EMPTY_TREE, (), "Initial commit")

    def read(self, oid: str) -> GitObject:
        if oid not in self.objects:
            raise ObjectMissing(oid)
        return self.objects[oid]

    def commit(self, tree: str, parents: tuple[str, ...], message: str) -> str:
        self.time += 10
        made = build_commit(tree, parents, WHO, message, self.time)
        self.objects[made.oid] = made
        return made.oid

    def change(self, parent: str, path: str, text: str | None, message: str, merge: str | None = None) -> str:
        tree, objects = (None, []) if text is None else write_package({"Kptfile": File(text.encode())})
        old = self.objects[parent].data[5:45].decode()
        root, trees = replace_subtree(self, old, path, tree)
        self.objects.update({item.oid: item for item in [*objects, *trees]})
        return self.commit(root, (parent, merge) if merge else (parent,), message)

    def draft(self, path: str, workspace: str, text: str, task: Task = INIT) -> str:
        first = self.change(
            self.refs[MAIN], path, text + "0", format_message("made", Annotation(path, workspace, "0", task))
        )
        render: Task = {"type": "render"}
        second = self.change(first, path, text, format_message("x", Annotation(path, workspace, "0", render)))
        self.refs[f"refs/heads/drafts/{path}/{workspace}"] = second
        return second

    def publish(self, path: str, workspace: str, number: int, text: str, task: Task = INIT) -> str:
        draft = self.draft(path, workspace, text, task)
        del self.refs[f"refs/heads/drafts/{path}/{workspace}"]
        message = format_message(approval_line(path, number), Annotation(path, workspace, str(number)))
        merged = self.change(self.refs[MAIN], path, text, message, draft)
        self.refs[MAIN] = self.refs[f"refs/tags/{path}/v{number}"] = merged
        return merged

    def found(self, directory: str = "", only: set[str] | None = None, was: str | None = None) -> Discovery:
        return discover(self, self.refs, directory=directory, branch="main", only=only, branch_was=was)


def by_name(found: Discovery) -> dict[str, FoundRevision]:
    return {f"{revision.package}.{revision.workspace}": revision for revision in found.revisions}


def test_every_state_is_found_with_its_task_and_author() -> None:
    history = History()
    history.publish("a/pkg", "w1", 1, "one")
    clone: Task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "x"}}}}
    history.publish("a/pkg", "w2", 2, "two", clone)
    history.draft("b", "wd", "draft")
    proposed = history.draft("c", "wp", "proposed")
    history.refs["refs/heads/proposed/c/wp"] = proposed
    del history.refs["refs/heads/drafts/c/wp"]
    history.refs["refs/heads/deletionProposed/a/pkg/v1"] = history.refs["refs/tags/a/pkg/v1"]

    result = history.found()
    found = by_name(result)

    assert result.problems == []
    assert {name: (r.revision, r.lifecycle, r.deletion_proposed) for name, r in found.items()} == {
        "a/pkg.w1": (1, "Published", True),
        "a/pkg.w2": (2, "Published", False),
        "b.wd": (0, "Draft", False),
        "c.wp": (0, "Proposed", False),
        "a/pkg.main": (-1, "Published", False),
    }
    assert found["a/pkg.w1"].task == INIT
    assert found["a/pkg.w2"].task == found["a/pkg.main"].task == clone
    assert found["b.wd"].kptfile == b"draft"
    assert {revision.author_email for revision in found.values()} == {"ann@example.com"}
    assert found["a/pkg.main"].tree == found["a/pkg.w2"].tree


def test_a_directory_hides_what_lies_outside_and_shortens_names() -> None:
    history = History()
    history.publish("in/a", "w", 1, "in")
    history.publish("out/b", "w", 1, "out")
    history.publish("inside", "w", 1, "no")

    assert set(by_name(history.found("in"))) == {"a.w", "a.main"}


def test_a_kptfile_ends_the_descent() -> None:
    history = History()
    history.refs[MAIN] = history.change(history.refs[MAIN], "a", "outer", "by hand")
    tree, objects = write_package({"Kptfile": File(b"outer"), "sub/Kptfile": File(b"inner")})
    root, trees = replace_subtree(history, EMPTY_TREE, "x/a", tree)
    history.objects.update({item.oid: item for item in [*objects, *trees]})
    history.refs[MAIN] = history.commit(root, (history.refs[MAIN],), "by hand")

    assert set(by_name(history.found())) == {"x/a.main"}


def test_packages_nobody_annotated_have_no_task() -> None:
    history = History()
    history.refs[MAIN] = history.refs["refs/tags/a/v1"] = history.change(history.refs[MAIN], "a", "x", "by hand")

    found = by_name(history.found())

    assert found["a.v1"].task is None
    assert found["a.v1"].revision == 1
    assert found["a.main"].task is None


def test_other_versions_of_a_tag_are_revisions_without_a_number() -> None:
    history = History()
    history.refs["refs/tags/a/v1.2.0"] = history.change(history.refs[MAIN], "a", "x", "by hand")

    found = by_name(history.found())

    assert (found["a.v1.2.0"].revision, found["a.v1.2.0"].lifecycle) == (-1, "Published")


def test_a_draft_made_anew_under_its_old_name_has_its_new_task_only() -> None:
    history = History()
    edit: Task = {"type": "edit", "edit": {"sourceRef": {"name": "s"}}}
    history.draft("a", "w", "old")
    history.draft("a", "w", "new", edit)

    assert by_name(history.found())["a.w"].task == edit


def test_a_broken_ref_is_one_problem_and_the_rest_is_found() -> None:
    history = History()
    history.publish("a", "w", 1, "x")
    history.refs["refs/tags/gone/v1"] = "1" * 40
    history.refs["refs/tags/empty/v1"] = history.refs[MAIN]
    history.refs["refs/tags/odd/v1"] = git_object("tree", b"").oid

    result = history.found()

    assert set(by_name(result)) == {"a.w", "a.main"}
    assert sorted(problem.partition(":")[0] for problem in result.problems) == [
        "refs/tags/empty/v1", "refs/tags/gone/v1", "refs/tags/odd/v1",
    ]  # fmt: skip


def test_annotated_tags_are_peeled() -> None:
    history = History()
    oid = history.publish("a", "w", 1, "x")
    tag = git_object("tag", f"object {oid}\ntype commit\ntag a/v1\n\nx".encode())
    history.objects[tag.oid] = tag
    history.refs["refs/tags/a/v1"] = tag.oid

    assert by_name(history.found())["a.w"].commit == oid


def test_only_changed_refs_and_changed_packages_of_the_branch_are_read() -> None:
    history = History()
    history.publish("a", "w", 1, "a")
    history.publish("b", "w", 1, "b")
    history.publish("c", "w", 1, "c")
    before = history.refs[MAIN]
    history.publish("b", "w2", 2, "b2")
    history.refs[MAIN] = history.change(history.refs[MAIN], "c", None, "Delete c")

    result = history.found(only={MAIN, "refs/tags/b/v2"}, was=before)

    assert set(by_name(result)) == {"b.w2", "b.main"}
    assert result.removed == ["c"]
    assert by_name(result)["b.main"].task == INIT


def test_a_branch_head_that_goes_back_to_a_published_content_borrows_its_task_without_reading_all_tags() -> None:
    history = History()
    for number in range(1, 6):
        history.publish("a", f"w{number}", number, f"text {number}")

    result = history.found(only={MAIN})

    assert [(r.workspace, r.task) for r in result.revisions] == [("main", INIT)]

"""Find package revisions in the refs and trees of a repository. Source: porch-api.md 6.3 and 6.7.

Where upstream has a defect ([BEAT] there) the right thing is done: content is compared by commit and tree, a branch
called ``v3`` is still the branch, one broken tag is one problem and nothing else.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from storage.git.commits import CREATING_TASKS, Annotation, CommitInfo, Task, parse_annotations, parse_commit
from storage.git.errors import CorruptObject, LimitExceeded, ObjectMissing
from storage.git.objects import ObjectSource
from storage.git.package_trees import changed_packages, kptfile_entry
from storage.git.refs import DELETIONS, HEADS, TAGS, RefMeaning, full_path, is_valid_ref, parse_ref
from storage.git.touching import last_touching
from storage.git.trees import DIRECTORY, find_entry

Lifecycle = Literal["Draft", "Proposed", "Published"]

MAX_KPTFILE = 1 << 20
"""Bytes of a Kptfile that is still read."""

MAX_TASK_COMMITS = 1000
"""Commits followed to find how a revision came to be."""

LONG_MESSAGE = 4096
"""Characters; a longer message without an annotation is forgotten after reading."""

MAX_PEEL = 8
"""Tags of tags followed."""

_BROKEN = (ObjectMissing, CorruptObject, LimitExceeded)


@dataclass(frozen=True, slots=True)
class FoundRevision:
    """One package revision as Git shows it; ``package`` is relative to the repository's directory.

    ``author_time`` is in seconds since 1970; for the branch head's packages author and time are those of the
    latest published revision if the content is the same, else those of ``commit``, the newest that touched the package;
    without an author unless it approved a revision. Their task is that of the revision that was approved there last.
    """

    package: str
    workspace: str
    revision: int
    lifecycle: Lifecycle
    deletion_proposed: bool
    ref: str
    commit: str
    tree: str
    kptfile: bytes = field(repr=False)
    task: Task | None
    author_email: str
    author_time: int


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found, and one sentence for each thing that could not be read.

    ``removed`` names packages that the branch had at ``branch_was`` and has no more. ``incomplete`` tells that objects
    which the refs need are not in the clone.
    """

    revisions: list[FoundRevision]
    problems: list[str]
    removed: list[str] = field(default_factory=list)
    incomplete: bool = False


def discover(
    source: ObjectSource,
    refs: Mapping[str, str],
    *,
    directory: str,
    branch: str,
    only: Collection[str] | None = None,
    branch_was: str | None = None,
) -> Discovery:
    """Find the package revisions below ``directory``.

    ``only`` limits the work to these refs (those that changed); the rest of ``refs`` still tells which deletions are
    proposed, and lends its published revisions' tasks to the branch head's packages. ``branch_was`` is the branch's
    commit at the last discovery: packages that did not change since are left out.
    """
    return _Search(source, refs, directory.strip("/"), branch).run(only, branch_was)


class _Search:
    def __init__(self, source: ObjectSource, refs: Mapping[str, str], directory: str, branch: str) -> None:
        self._source = source
        self._refs = refs
        self._directory = directory
        self._branch = branch
        self._problems: list[str] = []
        self._incomplete = False
        self._commits: dict[str, CommitInfo] = {}
        self._kptfiles: dict[str, bytes | None] = {}

    def run(self, only: Collection[str] | None, branch_was: str | None) -> Discovery:
        wanted = self._refs if only is None else [ref for ref in only if ref in self._refs]
        found = [
            revision
            for ref, oid, commit, meaning in self._in_order(wanted)
            if (revision := self._revision(ref, oid, commit, meaning)) is not None
        ]
        removed: list[str] = []
        head = HEADS + self._branch
        if head in self._refs and (only is None or head in only):
            packages, removed = self._branch_packages(self._refs[head], branch_was)
            found += self._placeholders(packages, head, found)
        return Discovery(found, self._problems, removed, self._incomplete)

    def _note(self, ref: str, error: Exception) -> None:
        self._problems.append(f"{ref}: {error}")
        self._incomplete |= isinstance(error, ObjectMissing)

    def _in_order(self, wanted: Iterable[str]) -> list[tuple[str, str, CommitInfo, RefMeaning]]:
        """Read the commits of revisions, oldest first: neighbours share most of their root trees, as deltas do."""
        rows: list[tuple[str, str, CommitInfo, RefMeaning]] = []
        for ref in wanted:
            meaning = parse_ref(ref, self._directory)
            if meaning is None or meaning.kind in ("branch", "deletion") or not is_valid_ref(ref):
                continue
            usual = f"{ref[: -len(meaning.name)]}v{meaning.revision}"
            if meaning.kind == "tag" and meaning.revision > 0 and usual != ref and usual in self._refs:
                continue  # "1" or "v01" beside "v1" is the same revision once more
            try:
                oid = self._peeled(self._refs[ref])
                rows.append((ref, oid, self._commit(oid), meaning))
            except _BROKEN as error:
                self._note(ref, error)
        rows.sort(key=lambda row: row[2].committer_time)
        return rows

    def _revision(self, ref: str, oid: str, commit: CommitInfo, meaning: RefMeaning) -> FoundRevision | None:
        path = full_path(self._directory, meaning.package)
        try:
            tree = self._subtree(commit.tree, path)
            kptfile = self._kptfile(tree) if tree else None
            if tree is None or kptfile is None:
                self._problems.append(f"{ref}: there is no package with a Kptfile at {path}")
                return None
            workspace = self._workspace(commit, path, meaning)
            task = self._task(oid, commit, path, workspace)
        except _BROKEN as error:
            self._note(ref, error)
            return None
        published = meaning.kind == "tag"
        number = meaning.revision if published else 0
        return FoundRevision(
            package=meaning.package,
            workspace=workspace,
            revision=number,
            lifecycle="Published" if published else "Proposed" if meaning.kind == "proposed" else "Draft",
            deletion_proposed=published and f"{DELETIONS}{ref[len(TAGS) :]}" in self._refs,
            ref=ref,
            commit=oid,
            tree=tree,
            kptfile=kptfile,
            task=task,
            author_email=commit.author_email,
            author_time=commit.author_time,
        )

    def _placeholders(
        self, packages: Mapping[str, tuple[str, bytes]], head: str, found: Iterable[FoundRevision]
    ) -> list[FoundRevision]:
        """Make the revisions of the branch head."""
        latest = self._latest(packages, found)
        newest = self._newest_commits(packages, latest)
        made: list[FoundRevision] = []
        for package, (tree, kptfile) in packages.items():
            oid = newest[package]
            twin = latest[package]
            if twin is not None and twin.tree == tree:
                email, time = twin.author_email, twin.author_time
            else:
                commit = self._commit(oid)
                email = commit.author_email if self._approval(package, oid) is not None else ""
                time = commit.author_time
            made.append(
                FoundRevision(
                    package=package,
                    workspace=self._branch,
                    revision=-1,
                    lifecycle="Published",
                    deletion_proposed=f"{DELETIONS}{full_path(self._directory, package)}/{self._branch}" in self._refs,
                    ref=head,
                    commit=oid,
                    tree=tree,
                    kptfile=kptfile,
                    task=self._lent_task(package, oid, twin),
                    author_email=email,
                    author_time=time,
                )
            )
        return made

    def _latest(self, packages: Iterable[str], found: Iterable[FoundRevision]) -> dict[str, FoundRevision | None]:
        """Return the published revision with the highest number of each package."""
        known: dict[str, FoundRevision] = {}
        for revision in found:
            if revision.revision > max(0, known[revision.package].revision if revision.package in known else 0):
                known[revision.package] = revision
        return {package: known.get(package) or self._numbered(package) for package in packages}

    def _newest_commits(
        self, packages: Mapping[str, tuple[str, bytes]], latest: Mapping[str, FoundRevision | None]
    ) -> dict[str, str]:
        """Return for each package the newest commit of the branch that touched it; the head where that lies too deep.

        An approval that nothing followed is known from its tag; only for the others the branch is walked.
        """
        head = self._refs[HEADS + self._branch]
        newest: dict[str, str] = {}
        walked: dict[str, str] = {}
        for package, (tree, _) in packages.items():
            twin = latest[package]
            if twin is not None and twin.tree == tree and self._approval(package, twin.commit) is not None:
                newest[package] = twin.commit
            else:
                walked[full_path(self._directory, package)] = package
        touching = last_touching(self._source, head, walked) if walked else {}
        return newest | {package: touching.get(path, head) for path, package in walked.items()}

    def _approval(self, package: str, oid: str) -> Annotation | None:
        """Return what a commit says of the package if it approved a revision of it."""
        path = full_path(self._directory, package)
        own = [each for each in parse_annotations(self._commit(oid).message) if each.package == path]
        return own[-1] if own and all(each.task is None for each in own) else None

    def _lent_task(self, package: str, oid: str, latest: FoundRevision | None) -> Task | None:
        """Return the task of the revision whose approval is the branch's newest change, else of the latest revision."""
        if latest is not None and latest.commit == oid:
            return latest.task
        approval = self._approval(package, oid)
        if approval is not None:
            with suppress(*_BROKEN):
                return self._task(oid, self._commit(oid), approval.package, approval.workspace)
        return latest.task if latest is not None else None

    def _numbered(self, package: str) -> FoundRevision | None:
        """Look at the newest numbered tag of a package whose refs were not asked for."""
        path = full_path(self._directory, package)
        number = 0
        # Revisions are numbered without gaps except where one was deleted; doubling finds the end in a few looks.
        step = 1
        while step:
            if f"{TAGS}{path}/v{number + step}" in self._refs:
                number, step = number + step, step * 2
            else:
                step //= 2
        if number == 0:
            return None
        ref = f"{TAGS}{path}/v{number}"
        problems = len(self._problems)
        with suppress(*_BROKEN):
            oid = self._peeled(self._refs[ref])
            revision = self._revision(ref, oid, self._commit(oid), RefMeaning("tag", package, f"v{number}"))
            del self._problems[problems:]
            return revision
        return None

    def _branch_packages(self, head: str, was: str | None) -> tuple[dict[str, tuple[str, bytes]], list[str]]:
        """Return path → (tree, Kptfile) of the packages at the branch head that changed, and those that went."""
        now, before = dict[str, str](), dict[str, str]()
        try:
            tree = self._subtree(self._commit(head).tree, self._directory)
            old = None
            if was is not None and was != head:
                try:
                    old = self._subtree(self._commit(was).tree, self._directory)
                except _BROKEN:
                    old = None  # the commit is no longer here, so everything is new
            now, before = changed_packages(self._source, tree, old)
        except _BROKEN as error:
            self._note(HEADS + self._branch, error)
        packages = {path: (tree, kptfile) for path, tree in now.items() if (kptfile := self._kptfile(tree)) is not None}
        return packages, sorted(before.keys() - now.keys())

    def _workspace(self, commit: CommitInfo, path: str, meaning: RefMeaning) -> str:
        if meaning.kind != "tag" or meaning.revision < 0:
            return meaning.name  # a tag that is no number beside one that is would else claim the same workspace
        for annotation in reversed(parse_annotations(commit.message)):
            said = annotation.revision.removeprefix("v")
            # An approval says which revision it made; another number on the same commit is somebody's own tag.
            another = annotation.task is None and said.isdecimal() and said != str(meaning.revision)
            if annotation.package == path and annotation.workspace and not another:
                return annotation.workspace
        return f"v{meaning.revision}"

    def _task(self, oid: str, commit: CommitInfo, path: str, workspace: str) -> Task | None:
        """Return the newest creating task along the draft's own commits, as far as they are annotated as its."""
        for _ in range(MAX_TASK_COMMITS):
            own = [a for a in parse_annotations(commit.message) if _is_of(a, path, workspace)]
            if not own:
                return None
            for annotation in reversed(own):
                if annotation.task_type in CREATING_TASKS:
                    return annotation.task
            # An approval has no task; the draft it merged is its second parent.
            approval = len(commit.parents) > 1 and all(annotation.task is None for annotation in own)
            if not commit.parents:
                return None
            oid = commit.parents[1 if approval else 0]
            commit = self._commit(oid)
        return None

    def _commit(self, oid: str) -> CommitInfo:
        known = self._commits.get(oid)
        if known is None:
            item = self._source.read(oid)
            if item.kind != "commit":
                raise CorruptObject(f"object {oid} is a {item.kind}, not a commit")
            known = self._remember(oid, item.data)
        return known

    def _remember(self, oid: str, data: bytes) -> CommitInfo:
        known = parse_commit(data)
        if len(known.message) > LONG_MESSAGE and "kpt:" not in known.message:
            known = replace(known, message="")
        self._commits[oid] = known
        return known

    def _peeled(self, oid: str) -> str:
        for _ in range(MAX_PEEL):
            item = self._source.read(oid)
            if item.kind == "commit":
                if oid not in self._commits:
                    self._remember(oid, item.data)
                return oid
            if item.kind != "tag" or not item.data.startswith(b"object "):
                break
            oid = item.data[7:47].decode("ascii", "replace")
        raise CorruptObject(f"{oid} is not a commit")

    def _subtree(self, root: str, path: str) -> str | None:
        oid = root
        for name in path.split("/") if path else []:
            found = find_entry(self._source.read(oid).data, name.encode("utf-8", "surrogateescape"))
            if found is None or found[0] != DIRECTORY:
                return None
            oid = found[1]
        return oid

    def _kptfile(self, tree: str) -> bytes | None:
        """Return the Kptfile of a package tree; equal trees are read once."""
        if tree not in self._kptfiles:
            oid = kptfile_entry(self._source.read(tree).data)
            data = self._source.read(oid).data if oid else None
            if data is not None and len(data) > MAX_KPTFILE:
                raise LimitExceeded(f"a Kptfile is over {MAX_KPTFILE} bytes")
            self._kptfiles[tree] = data
        return self._kptfiles[tree]


def _is_of(annotation: Annotation, path: str, workspace: str) -> bool:
    return annotation.package == path and annotation.workspace == workspace

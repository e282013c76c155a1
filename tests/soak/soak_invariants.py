"""What must be true of a server and its remotes once all is quiet, whatever was killed before."""

import shutil
import sqlite3
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from porch_client import Object, PorchClient
from remotes import Remote, git, refs
from soak_client import SHARED
from soak_ledger import MARK, PAIR, Owed, State

LATEST = "kpt.dev/latest-revision"
MOVING = ("refs/heads/drafts/", "refs/heads/proposed/")
"""Branches that are at what was saved last."""


@dataclass(frozen=True)
class Seen:
    """One revision as the API shows it."""

    body: Object
    files: Mapping[str, str]

    @property
    def lifecycle(self) -> str:
        return str(self.body["spec"]["lifecycle"])

    @property
    def revision(self) -> int:
        return int(self.body["spec"].get("revision") or 0)

    @property
    def place(self) -> tuple[str, str]:
        """Repository and package."""
        return self.body["spec"]["repository"], self.body["spec"]["packageName"]

    @property
    def refs(self) -> set[str]:
        """The branches and tags that its remote has to have for it."""
        package, workspace = self.place[1], self.body["spec"]["workspaceName"]
        if self.revision < 0:
            return {"refs/heads/main"}
        if self.lifecycle == "Draft":
            return {f"refs/heads/drafts/{package}/{workspace}"}
        if self.lifecycle == "Proposed":
            return {f"refs/heads/proposed/{package}/{workspace}"}
        tag = {f"refs/tags/{package}/v{self.revision}"}
        proposed = {f"refs/heads/deletionProposed/{package}/v{self.revision}"}
        return tag | (proposed if self.lifecycle == "DeletionProposed" else set())


def look(porch: PorchClient) -> dict[str, Seen]:
    """Read every package revision and its files through the API."""
    found = {}
    for body in porch.revisions():
        name = body["metadata"]["name"]
        answer = porch.resources(name)
        assert answer.code == 200, f"files of {name}: {answer.code} {answer.body[:300]!r}"
        found[name] = Seen(body, answer.object["spec"]["resources"])
    return found


def state_of(seen: Seen | None) -> State:
    """Return what the ledger calls this; a revision whose two files disagree has no state."""
    if seen is None:
        return State()
    numbers = {seen.files.get(path) for path in PAIR}
    assert len(numbers) == 1, f"{seen.body['metadata']['name']} was saved by halves: {numbers}"
    (text,) = numbers
    saved = int(text.partition('saved: "')[2].partition('"')[0]) if text else 0
    state = State(seen.lifecycle, saved, (seen.body["metadata"].get("labels") or {}).get(MARK, ""))
    assert (text or "") == next(iter(state.files.values()), ""), f"{seen.body['metadata']['name']} has a torn file"
    return state


def check_owed(found: Mapping[str, Seen], owed: Iterable[Owed]) -> None:
    """Nothing acknowledged is missing, and what nobody was told about is there wholly or not at all."""
    for one in owed:
        state = state_of(found.get(one.name))
        assert state in one.possible, f"{one.name} is {state}, and owed was one of {one.possible}"


def settle(found: Mapping[str, Seen], owed: Iterable[Owed]) -> None:
    """Enter into the ledgers what is; to be called when everything is quiet."""
    for one in owed:
        seen = found.get(one.name)
        one.found(state_of(seen))
        if seen is not None and seen.revision > 0:
            one.number = seen.revision


def check_numbers(found: Mapping[str, Seen], owed: Sequence[Owed]) -> None:
    """Revision numbers of a package are used once each and without gaps but for what was deleted."""
    used: dict[tuple[str, str], list[int]] = defaultdict(list)
    for seen in found.values():
        if seen.revision > 0:
            used[seen.place].append(seen.revision)
    deleted: dict[tuple[str, str], set[int]] = defaultdict(set)
    for one in owed:
        if one.number and one.name not in found:
            deleted[one.place].add(one.number)
    for place, numbers in used.items():
        twice = [number for number, count in Counter(numbers).items() if count > 1]
        assert not twice, f"{place} has revision numbers twice: {twice}"
        every = set(numbers) | deleted[place]
        assert every == set(range(1, max(every) + 1)), f"{place} has gaps: {sorted(numbers)}, deleted {deleted[place]}"


def check_latest(found: Mapping[str, Seen]) -> None:
    """In each package exactly the published revision with the highest number has the label."""
    highest: dict[tuple[str, str], int] = defaultdict(int)
    for seen in found.values():
        highest[seen.place] = max(highest[seen.place], seen.revision)
    for name, seen in found.items():
        labelled = (seen.body["metadata"].get("labels") or {}).get(LATEST) == "true"
        latest = seen.revision > 0 and seen.revision == highest[seen.place]
        assert labelled == latest, f"{name}, revision {seen.revision} of {highest[seen.place]}, label: {labelled}"


def check_git(found: Mapping[str, Seen], remotes: Mapping[str, Remote], *, drafts: bool) -> None:
    """Each remote has the refs of what is there and no others, and behind them the files that the API shows."""
    for name, remote in remotes.items():
        here = [seen for seen in found.values() if seen.place[0] == name]
        pushed = [seen for seen in here if drafts or seen.revision]
        wanted = {"refs/heads/main"}.union(*(seen.refs for seen in pushed))
        actual = refs(remote.path).keys()
        assert actual == wanted, f"{name}: only in Git {sorted(actual - wanted)}, missing {sorted(wanted - actual)}"
        _check_commits(remote, pushed)
        _check_files(remote, pushed)


def _check_commits(remote: Remote, pushed: Iterable[Seen]) -> None:
    """Drafts and proposals are at the commits that the API tells: a server that has just started may not have looked yet."""
    actual = refs(remote.path)
    for seen in pushed:
        told = (seen.body["status"].get("selfLock") or {}).get("git", {}).get("commit")
        wrong = [ref for ref in seen.refs if ref.startswith(MOVING) and actual[ref] != told]
        assert not wrong, f"{wrong} is at {[actual[ref] for ref in wrong]}, and the API says {told}"


def _check_files(remote: Remote, revisions: Iterable[Seen]) -> None:
    expected: dict[str, str] = {}
    for seen in revisions:
        package = seen.place[1]
        for ref in seen.refs:
            expected.update({f"{ref}:{package}/{path}": text for path, text in seen.files.items()})
    actual = _blobs(remote, list(expected))
    wrong = [place for place, text in expected.items() if actual[place] != text]
    assert not wrong, f"the API and Git disagree about {wrong[:5]}"


def _blobs(remote: Remote, places: Sequence[str]) -> dict[str, str | None]:
    """Read many files of a repository with one git process."""
    stdin = "".join(f"{place}\n" for place in places).encode()
    done = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=remote.path, input=stdin, capture_output=True, check=True, timeout=60
    )
    data = done.stdout
    found: dict[str, str | None] = {}
    for place in places:
        head, _, data = data.partition(b"\n")
        if head.endswith(b" missing"):
            found[place] = None
            continue
        size = int(head.rsplit(b" ", 1)[1])
        found[place] = data[:size].decode()
        data = data[size + 1 :]
    return found


def check_shared_history(found: Mapping[str, Seen], remotes: Mapping[str, Remote]) -> None:
    """Every tag of the packages that many approve into is part of main's history: no approval was pushed over."""
    for name, remote in remotes.items():
        history = set(git("rev-list", "refs/heads/main", cwd=remote.path).split())
        tags = {ref: oid for ref, oid in refs(remote.path).items() if ref.startswith(f"refs/tags/{SHARED}/")}
        lost = [ref for ref, oid in tags.items() if oid not in history]
        assert not lost, f"{name}: {lost} are not in main's history"


def parcels(data: Path) -> set[str]:
    """Return the revisions that the outbox of a server has parcels for, read from a copy of its database."""
    with tempfile.TemporaryDirectory() as folder:
        for part in data.glob("porch.db*"):
            if not part.name.endswith((".lock", "-shm")):
                shutil.copy(part, folder)
        with closing(sqlite3.connect(Path(folder) / "porch.db")) as database:
            return {revision for (revision,) in database.execute("SELECT DISTINCT revision FROM k_outbox")}


def check_outbox(found: Mapping[str, Seen], data: Path, *, drafts: bool) -> None:
    """Nothing waits for its remote any more, but for drafts that are never pushed."""
    left = parcels(data)
    if not drafts:
        left -= {name for name, seen in found.items() if not seen.revision}
    assert not left, f"the outbox still holds {sorted(left)}"


def fsck_clones(data: Path, seen: Path, wrapper: Sequence[str] = ()) -> None:
    """Check the clones below ``data`` with git, run by ``wrapper`` where that is needed; from here they are at ``seen``."""
    for clone in (seen / "clones").glob("*.git"):
        command = [
            *wrapper,
            "git",
            "-C",
            str(data / "clones" / clone.name),
            "fsck",
            "--full",
            "--strict",
            "--no-dangling",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr

"""Commits of package revisions: their form, their first lines and the task annotations in them.

Source: porch-api.md 6.3 and 6.4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from storage.git.errors import CorruptObject
from storage.git.objects import GitObject, git_object

Task = dict[str, Any]

CREATING_TASKS = frozenset({"init", "clone", "edit", "upgrade"})

FIRST_LINES: Mapping[str, str] = {
    "init": "Creating new empty revision",
    "clone": "Creating new revision by cloning",
    "edit": "Creating new revision by copying previous revision",
    "upgrade": "Upgrading revision",
    "render": "Rendering package",
    "": "Intermediate commit",
}

MAX_MESSAGE = 1 << 20
"""Bytes of a commit message that are looked at for annotations."""

MAX_ANNOTATIONS = 64
"""Annotations read from one message; ours hold one."""

_UNSAFE_NAME = re.compile(r"[<>\x00-\x1f\x7f]")
_COMMIT = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)author (.*?) ?<([^>\n]*)> ([0-9]{1,15})[^\n]*\n"
    rb"committer [^\n]*> ([0-9]{1,15})"
)
_PERSON = re.compile(rb"(.*?) ?<([^>\n]*)> (-?[0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class Identity:
    """A name and an e-mail address, as Git writes them."""

    name: str
    email: str


COMMITTER = Identity("Package Orchestration Service", "porch@kpt.dev")
CONTROLLER = Identity("porch-controller", "porch-controller@kpt.dev")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit says; times are seconds since 1970."""

    tree: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    author_time: int
    committer_time: int
    message: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """The JSON line that ties a commit to a package revision; ``package`` is its full path."""

    package: str
    workspace: str
    revision: str
    task: Task | None = None

    @property
    def task_type(self) -> str:
        """The task's type, or empty."""
        return str(self.task.get("type", "")) if self.task else ""


def parse_commit(data: bytes) -> CommitInfo:
    """Read the raw bytes of a commit.

    Raises:
        CorruptObject: there is no tree or no committer.
    """
    usual = _COMMIT.match(data)
    if usual is not None:
        tree, parents_block, name, email, author_time, committer_time = usual.groups()
        end = data.find(b"\n\n", usual.end())
        return CommitInfo(
            tree=tree.decode(),
            parents=tuple(parents_block.decode().split()[1::2]),
            author_name=name.decode("utf-8", "replace"),
            author_email=email.decode("utf-8", "replace"),
            author_time=int(author_time),
            committer_time=int(committer_time),
            message=data[end + 2 : end + 2 + MAX_MESSAGE].decode("utf-8", "replace") if end >= 0 else "",
        )
    return _unusual(data)


def _unusual(data: bytes) -> CommitInfo:
    """Read a commit whose head is not what Git writes, as far as it makes sense."""
    head, _, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    if not lines[0].startswith(b"tree ") or len(lines[0]) != 45:  # noqa: PLR2004 -- "tree " and 40 digits
        raise CorruptObject("a commit has no tree")
    parents: list[str] = []
    author = committer = b""
    for line in lines[1:]:
        if line.startswith(b"parent "):
            parents.append(line[7:47].decode("ascii", "replace"))
        elif line.startswith(b"author ") and not author:
            author = line[7:]
        elif line.startswith(b"committer ") and not committer:
            committer = line[10:]
    who = _person(author)
    return CommitInfo(
        tree=lines[0][5:].decode("ascii", "replace"),
        parents=tuple(parents),
        author_name=who[0],
        author_email=who[1],
        author_time=who[2],
        committer_time=_person(committer)[2],
        message=message[:MAX_MESSAGE].decode("utf-8", "replace"),
    )


def build_commit(tree: str, parents: tuple[str, ...], author: Identity, message: str, at: int) -> GitObject:
    """Make a commit; the committer is always the service. ``at`` is seconds since 1970, written as UTC."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines += [f"author {_written(author)} {at} +0000", f"committer {_written(COMMITTER)} {at} +0000"]
    return git_object("commit", ("\n".join(lines) + "\n\n" + message).encode("utf-8", "surrogatepass"))


def first_line(task_type: str) -> str:
    """Return the first line of a commit made for a task."""
    return FIRST_LINES.get(task_type) or f"Intermediate commit: {task_type}"


def approval_line(path: str, revision: int) -> str:
    """Return the first line of an approval commit."""
    return f"Approving package revision {path}/{revision}"


def deletion_line(path: str) -> str:
    """Return the whole message of the commit that removes a package from the branch."""
    return f"Delete {path}"


def format_message(line: str, annotation: Annotation | None) -> str:
    """Compose a commit message; the annotation is one line of JSON at its end."""
    if annotation is None:
        return line
    value: Task = {
        "package": annotation.package,
        "workspaceName": annotation.workspace,
        "revision": annotation.revision,
    }
    if annotation.task is not None:
        value["task"] = annotation.task
    return f"{line}\n\nkpt:{orjson.dumps(value).decode()}\n"


def parse_annotations(message: str) -> list[Annotation]:
    """Read every annotation line, in order; lines that are not understood are skipped."""
    if "kpt:" not in message:
        return []
    found: list[Annotation] = []
    for line in message.splitlines():
        text = line.strip()
        if text.startswith("kpt:") and len(found) < MAX_ANNOTATIONS:
            annotation = _annotation(text[4:])
            if annotation is not None:
                found.append(annotation)
    return found


def _annotation(text: str) -> Annotation | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("package"), str):
        return None
    task = value.get("task")
    revision = str(value.get("revision", ""))
    return Annotation(
        package=value["package"],
        # Commits older than workspaces carry the revision only, and it names the workspace.
        workspace=str(value.get("workspaceName") or revision),
        revision=revision,
        task=task if isinstance(task, dict) else None,
    )


def _person(line: bytes) -> tuple[str, str, int]:
    found = _PERSON.match(line)
    if found is None:
        return "", "", 0
    return found[1].decode("utf-8", "replace"), found[2].decode("utf-8", "replace"), int(found[3])


def _written(who: Identity) -> str:
    name = _UNSAFE_NAME.sub("", who.name).strip(" .,:;\"'") or _UNSAFE_NAME.sub("", who.email) or "unknown"
    return f"{name} <{_UNSAFE_NAME.sub('', who.email).strip()}>"

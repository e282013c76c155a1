"""Reading kpt's conformance cases, and comparing packages as kpt's users would."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from krm.package.contents import Contents, File
from krm.package.documents import read_file
from krm.package.yaml_reader import read_document, same

DATA = Path(__file__).parents[3] / "data"
_GROUPS = ("save-on-render-failure", "selectors")
"""Folders of kpt's suite; here they are the first part of a case's name."""
_COMMENT = re.compile(r"(?:^|\s)(#.*)$", re.MULTILINE)


def directory_name(case: Path) -> str:
    """Return what kpt's suite calls the case's own directory: it is in messages."""
    group = next((group for group in _GROUPS if case.name.startswith(f"{group}-")), "")
    # ``selectors-with-exclude`` lies in ``selectors``.
    return case.name.removeprefix(f"{group}-") if group else case.name


def load_package(directory: Path) -> dict[str, File]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    names = ((path.relative_to(directory).as_posix(), path) for path in files)
    return {name: File(path.read_bytes()) for name, path in names if not name.startswith(".expected/")}


def expected_package(case: Path, work: Path) -> dict[str, File]:
    """Apply the case's patch to its input."""
    target = work / case.name
    shutil.copytree(case, target, ignore=shutil.ignore_patterns(".expected"))
    patch = case / ".expected" / "diff.patch"
    if patch.exists():
        environment = {"GIT_CEILING_DIRECTORIES": str(work), "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(work)}
        command = ["git", "apply", "--whitespace=nowarn", str(patch)]
        subprocess.run(command, cwd=target, env=environment, check=True, timeout=100)
    return load_package(target)


def case_config(case: Path) -> dict[str, Any]:
    config = case / ".expected" / "config.yaml"
    return (read_document(config.read_bytes()) or {}) if config.exists() else {}


def differences(actual: Contents, wanted: Contents, *, ignore_status: bool) -> list[str]:
    """Name what differs: files, documents, key order, comments. Layout does not count.

    Nor does the order in Kptfiles, which upstream writes anew from its structures and we do not.
    """
    found = [f"only on one side: {path}" for path in sorted(set(actual) ^ set(wanted))]
    for path in sorted(set(actual) & set(wanted)):
        if actual[path].data == wanted[path].data:
            continue
        ours, theirs = (_documents(side[path].data, ignore_status=ignore_status) for side in (actual, wanted))
        if len(ours) != len(theirs) or not all(map(same, ours, theirs)):
            found.append(f"{path}: documents differ: {ours} != {theirs}")
        elif not path.endswith("Kptfile") and _order(ours) != _order(theirs):
            found.append(f"{path}: the order of keys differs: {_order(ours)} != {_order(theirs)}")
        elif _comments_differ(path, actual[path].data, wanted[path].data):
            found.append(f"{path}: comments differ")
    return found


def _documents(data: bytes, *, ignore_status: bool) -> list[Any]:
    documents = [document.data for document in read_file(data)[1] if document.data is not None]
    if ignore_status:
        documents = [
            {key: value for key, value in data.items() if key != "status"} if data.get("kind") == "Kptfile" else data
            for data in documents
        ]
    return documents


def _order(data: Any) -> Any:
    if isinstance(data, dict):
        return [(key, _order(value)) for key, value in data.items()]
    return [_order(item) for item in data] if isinstance(data, list) else None


def _comments_differ(path: str, ours: bytes, theirs: bytes) -> bool:
    """Upstream loses the comments of Kptfiles that it writes a status into; we do not."""
    if path.endswith("Kptfile"):
        return not set(_comments(theirs)) <= set(_comments(ours))
    return _comments(ours) != _comments(theirs)


def _comments(data: bytes) -> list[str]:
    return sorted(_COMMENT.findall(data.decode()))

"""What the server does with packages' files, by the product's own toolchain: clone, merge, render, edit the Kptfile.

Each is computed once for the same input; a stateful test asks for the same packages thousands of times.
"""

import functools
from collections.abc import Mapping
from typing import Any

from apiserver.engine.draft_contents import (
    check_package,
    edit_root_kptfile,
    failed_contents,
    refuse_render,
    with_metadata,
)
from apiserver.engine.package_work import CloneWork, Made, MergeWork
from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import render
from krm.functions.rendered import Rendered
from krm.package.contents import File
from krm.package.kptfile import KptfileEdit
from krm.package.yaml_reader import read_document

__all__ = [
    "Files",
    "Json",
    "check_package",
    "cloned",
    "decoded",
    "edit_root_kptfile",
    "failed_contents",
    "merged",
    "refuse_render",
    "rendered",
    "with_metadata",
]

Json = dict[str, Any]
Files = dict[str, File]
Frozen = tuple[tuple[str, bytes], ...]


def _frozen(files: Mapping[str, File]) -> Frozen:
    return tuple((path, files[path].data) for path in sorted(files))


def _thawed(frozen: Frozen) -> Files:
    return {path: File(data) for path, data in frozen}


@functools.lru_cache(4096)
def decoded(text: str) -> Any:
    """Return what a YAML file says; not to be changed."""
    return read_document(text)


def rendered(files: Files) -> Rendered:
    """Return what the pipeline makes of a package."""
    return _rendered(_frozen(files))


@functools.lru_cache(4096)
def _rendered(files: Frozen) -> Rendered:
    return render(_thawed(files), BuiltinRunner())


def cloned(upstream: Files, name: str, lock: Json, *, deployment: bool) -> Made:
    """Return the clone of a package; ``lock`` is the ``git`` part of the upstream's own lock."""
    return _cloned(_frozen(upstream), name, _lock_key(lock), deployment)


@functools.lru_cache(4096)
def _cloned(upstream: Frozen, name: str, lock: tuple[str, ...], deployment: bool) -> Made:
    section, whole = _locks(lock)
    return CloneWork(_thawed(upstream), name, section, whole, name if deployment else None).run()


def merged(name: str, old: Files, new: Files, local: Files, lock: Json, *, deployment: bool) -> Made:
    """Return a package with the changes between two upstreams; ``lock`` is that of the new one."""
    return _merged(name, _frozen(old), _frozen(new), _frozen(local), _lock_key(lock), deployment)


@functools.lru_cache(4096)
def _merged(name: str, old: Frozen, new: Frozen, local: Frozen, lock: tuple[str, ...], deployment: bool) -> Made:
    section, whole = _locks(lock)
    sides = (_thawed(old), _thawed(new), _thawed(local))
    return MergeWork(name, "resource-merge", *sides, section, whole, deployment=deployment).run()


def _lock_key(lock: Json) -> tuple[str, ...]:
    return tuple(str(lock.get(part) or "") for part in ("repo", "directory", "ref", "commit"))


def _locks(key: tuple[str, ...]) -> tuple[Json, Json]:
    repo, directory, ref, commit = key
    repo = repo if repo.endswith(".git") else f"{repo}.git"
    git = {"repo": repo, "directory": directory.lstrip("/"), "ref": ref}
    return {"type": "git", "git": git}, {"type": "git", "git": {**git, "commit": commit}}


def edited_kptfile(name: str, files: Files, **fields: Any) -> Files:
    """Return the package with fields of its Kptfile replaced, as :class:`KptfileEdit` names them."""
    return edit_root_kptfile(name, files, KptfileEdit(**fields))

"""Three-way merge of Kptfiles, applied to the local text as the smallest edit.

Kptfiles have rules of their own: only some sections are merged, scalars are text whatever they look
like, and pipelines are matched by function. Source: ``kpt.md`` 3.5.
"""

from dataclasses import dataclass, replace
from typing import Any

from krm.package.contents import File
from krm.package.documents import Document
from krm.package.kptfile_schema import KPTFILE
from krm.package.merge.associative_lists import ListKeys
from krm.package.merge.comment_merge import merge_comments
from krm.package.merge.conflicts import ABSENT, Conflict, ConflictLog, OnConflict
from krm.package.merge.field_merge import FieldMerge, merge_fields
from krm.package.merge.function_names import FUNCTION_LISTS, PREFIX, name_functions, without_names
from krm.package.merge.kptfile_text import Version, only_document, read_version, restored, rewritten
from krm.package.merge.subpackages import Trees, is_kptfile
from krm.package.yaml_edit_text import edit_document

_MERGED_SECTIONS = ("info", "pipeline", "inventory", "status")
_MERGED_METADATA = ("labels", "annotations")
_UPSTREAM_SECTIONS = ("upstream", "upstreamLock")


@dataclass(frozen=True, slots=True)
class MergedKptfile:
    """The local Kptfile after a merge."""

    data: bytes
    conflicts: tuple[Conflict, ...] = ()
    """Upstream won each of them; their ``file`` is the path of the Kptfile."""


def merge_kptfiles(
    origin: bytes | None, updated: bytes | None, local: bytes, *, update_upstream: bool, path: str = "Kptfile"
) -> MergedKptfile:
    """Merge labels, annotations, info, pipeline, inventory and status; name and namespace stay local.

    None stands for a Kptfile that is not there, which is as good as an empty one. ``update_upstream`` says
    whether ``upstream`` and ``upstreamLock`` are taken from updated where it has them. ``path`` is where
    the Kptfile stands in the package, for messages. Comments, order and layout of local stay; the very
    same bytes come back when upstream changed nothing.

    Raises:
        KptfileError: a Kptfile cannot be read; the message says of which tree.

    Source: ``kpt.md`` 3.5.
    """
    if origin == updated and not update_upstream:
        return MergedKptfile(local)
    before = read_version(origin, f"{path} (origin)")
    upstream = read_version(updated, f"{path} (updated)")
    here = read_version(local, f"{path} (local)")
    log = ConflictLog()
    merged = _merged_values(before, upstream, here, log.within(file=path), update_upstream=update_upstream)
    text = rewritten(local, lambda document: _merged_text(origin, updated, document, merged))
    conflicts = (replace(one, path=one.path.replace(f"[name={PREFIX}", "[function=")) for one in log.conflicts)
    return MergedKptfile(text, tuple(conflicts))


def merge_package_kptfile(trees: Trees) -> tuple[File, tuple[Conflict, ...]]:
    """Merge the root Kptfiles of three trees, upstream included; the local mode stays.

    Raises:
        KptfileError: as :func:`merge_kptfiles`.
    """
    before, upstream = (tree.contents.get("Kptfile") for tree in (trees.origin, trees.updated))
    here = trees.local.contents["Kptfile"]
    merged = merge_kptfiles(
        before.data if is_kptfile(before) else None,
        upstream.data if is_kptfile(upstream) else None,
        here.data,
        update_upstream=True,
    )
    return File(merged.data, here.mode), merged.conflicts


def _merged_values(
    origin: Version, updated: Version, local: Version, on_conflict: OnConflict, *, update_upstream: bool
) -> FieldMerge:
    """Return the values that local is to have, and where the elements of its lists came from."""
    (before, upstream, here), lists = name_functions([origin.meaning, updated.meaning, local.meaning])
    merged = merge_fields(
        *map(_merged_part, (before, upstream, here)), lists=ListKeys(infer=True), on_conflict=on_conflict
    )
    for kind in FUNCTION_LISTS:
        _follow_upstream_order(merged, kind, before, here)
    wanted = _wanted(here, {} if merged.value is ABSENT else merged.value)
    if update_upstream:
        wanted |= {name: upstream[name] for name in _UPSTREAM_SECTIONS if name in upstream}
    values = restored(wanted, KPTFILE, replace(local, meaning=here), replace(updated, meaning=upstream))
    return replace(merged, value=without_names(values, lists))


def _merged_text(origin: bytes | None, updated: bytes | None, local: Document, merged: FieldMerge) -> str:
    text = edit_document(local.text, merged.value, local.data)
    if updated is None or not ("#" in local.text or b"#" in updated or b"#" in (origin or b"")):
        return text
    states = (only_document(origin) if origin is not None else None, only_document(updated), local)
    return merge_comments(text, merged, states)


def _merged_part(kptfile: dict[str, Any]) -> dict[str, Any]:
    """Return what is merged, the sections that have a place in the result."""
    part = {name: kptfile[name] for name in _MERGED_SECTIONS if name in kptfile}
    metadata = kptfile.get("metadata", {})
    return part | {"metadata": {name: metadata[name] for name in _MERGED_METADATA if name in metadata}}


def _follow_upstream_order(merged: FieldMerge, kind: str, origin: dict[str, Any], local: dict[str, Any]) -> None:
    """Order the functions of a list that nobody touched here as upstream does: they run one after another."""
    places = merged.elements.get(("pipeline", kind))
    lists = [kptfile.get("pipeline", {}).get(kind) for kptfile in (origin, local)]
    if not places or lists[0] != lists[1]:
        return
    order = sorted(range(len(places)), key=lambda place: places[place].updated or 0)
    functions = merged.value["pipeline"][kind]
    functions[:] = [functions[place] for place in order]
    places[:] = [places[place] for place in order]


def _wanted(local: dict[str, Any], merged: dict[str, Any]) -> dict[str, Any]:
    """Put the merged sections into the local Kptfile; one whose last field went stays as an empty one."""
    wanted = {name: {} if name in _MERGED_SECTIONS else value for name, value in local.items()}
    metadata = {name: value for name, value in local.get("metadata", {}).items() if name not in _MERGED_METADATA}
    wanted |= {**merged, "metadata": metadata | merged.get("metadata", {})}
    return wanted

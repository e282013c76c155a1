"""What an update of a draft makes of its files: the Kptfile edited, and the whole package if it is upgraded in place.

Source: ``porch-api.md`` 4.3; ``variants.md`` 2.11, R2 and R4; ``decisions.md`` 14 and 16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiserver.engine.draft_contents import edit_root_kptfile, read_kptfile, render_checked
from apiserver.engine.off_loop import off_loop
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held
from apiserver.engine.revision_body import revision_name_of
from apiserver.engine.tasks import StartingContents
from apiserver.rules.carried_changes import carried
from apiserver.rules.gate_fields import conditions_in, own_gates
from apiserver.rules.readiness import PV_GATE
from apiserver.rules.revision_changes import ContentChange
from apiserver.rules.task_changes import AppendedUpgrade
from krm.package.contents import File
from krm.package.kptfile import Kptfile, KptfileEdit
from storage.interfaces import Entry

Json = dict[str, Any]

RENDER_TASK: Final[Json] = {"type": "render"}
PENDING: Final[Json] = {
    "type": PV_GATE,
    "status": "False",
    "reason": "PVOperationsPending",
    "message": "upgraded in place; waiting for the package variant to finish its operations",
}
"""What an upgrade in place says of the gate of the PackageVariant that asked for it."""


@dataclass(frozen=True, slots=True)
class EditedDraft:
    """A draft's files after an update, and the task that its commit records."""

    contents: dict[str, File]
    task: Json
    notes: Sequence[str] = ()
    """What its author should know of a merge."""
    creating_task: Json | None = None
    """What the draft's tasks become; None leaves them."""


class DraftEditing:
    """Edits drafts. Nothing is written here."""

    def __init__(self, starting: StartingContents, renderer: Renderer) -> None:
        self._starting = starting
        self._renderer = renderer

    async def edit(self, held: Held, entry: Entry, edits: ContentChange) -> EditedDraft:
        """Edit the Kptfile; render only if package metadata changes (R2).

        Raises:
            StatusError: the draft cannot be read, or its render fails.
        """
        edit = KptfileEdit(
            labels=edits.labels,
            annotations=edits.annotations,
            replace_metadata=True,
            readiness_gates=edits.gates,
            conditions=edits.conditions,
        )
        draft = await self._starting.read(held, entry)
        contents = await off_loop(draft, edit_root_kptfile, entry.name, draft, edit)
        if edits.renders:
            contents = await render_checked(self._renderer, entry.name, contents)
        return EditedDraft(contents, RENDER_TASK)

    async def upgrade(
        self, held: Held, entry: Entry, stored: Json, edits: ContentChange, upgrade: AppendedUpgrade
    ) -> EditedDraft:
        """Merge the upstreams' difference into the draft, carry the other changes of the request over, and render.

        The gate of a PackageVariant is closed until the variant says otherwise; only what it does next may make the
        package renderable, so that with it a failed render is kept, as for a create (``decisions.md`` 14).

        Raises:
            StatusError: the upgrade is refused, or its render fails.
        """
        draft = await self._starting.read(held, entry)
        start = await self._starting.upgrading.in_place(
            held, revision_name_of(stored), upgrade.block, upgrade.place, draft
        )
        merged = await off_loop(start.contents, read_kptfile, entry.name, start.contents["Kptfile"].data)
        edit = _carried_edit(merged, stored, edits)
        waits = PV_GATE in (merged.readiness_gates if edit.readiness_gates is None else edit.readiness_gates)
        contents = await off_loop(start.contents, edit_root_kptfile, entry.name, start.contents, edit)
        contents = await render_checked(self._renderer, entry.name, contents, keeps_failure=waits)
        return EditedDraft(contents, upgrade.task, start.notes, creating_task=upgrade.task)


def _carried_edit(merged: Kptfile, stored: Json, edits: ContentChange) -> KptfileEdit:
    """Return the edit that brings the changes of a request to a Kptfile that its author had not seen."""
    metadata = stored["spec"].get("packageMetadata") or {}
    gates, conditions = edits.gates, list(merged.conditions)
    if gates is not None:
        before = own_gates(stored) or []
        gates = list(carried(_by_itself(merged.readiness_gates), _by_itself(before), _by_itself(gates)))
    if edits.conditions is not None:
        before_edit, after = _by_type(conditions_in(stored) or ()), _by_type(edits.conditions)
        conditions = list(carried(_by_type(conditions), before_edit, after).values())
    conditions = _waiting(conditions, merged.readiness_gates if gates is None else gates)
    return KptfileEdit(
        labels=_carried_map(merged.labels, metadata.get("labels"), edits.labels),
        annotations=_carried_map(merged.annotations, metadata.get("annotations"), edits.annotations),
        replace_metadata=True,
        readiness_gates=gates,
        conditions=conditions,
    )


def _waiting(conditions: Sequence[Json], gates: Sequence[str]) -> list[Json]:
    """Close the gate of a PackageVariant, where there is one; a reason that the request gives for that is kept."""
    present = _by_type(conditions)
    if (PV_GATE in gates or PV_GATE in present) and present.get(PV_GATE, {}).get("status") != "False":
        present[PV_GATE] = dict(PENDING)
    return list(present.values())


def _carried_map(
    present: Mapping[str, str], before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> dict[str, str] | None:
    return None if after is None else carried(present, before or {}, after)


def _by_type(conditions: Sequence[Json]) -> dict[str, Json]:
    return {str(condition.get("type")): condition for condition in conditions}


def _by_itself(names: Sequence[str]) -> dict[str, str]:
    return {name: name for name in names}

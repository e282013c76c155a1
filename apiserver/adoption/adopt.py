"""``porch adopt``: the parts wired for one run. Source: issue 9 part 5; ADR 0034."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver.adoption import report
from apiserver.adoption.folder import FolderSource
from apiserver.adoption.freeze import changed_since
from apiserver.adoption.live import LiveSource
from apiserver.adoption.plan import Plan
from apiserver.adoption.planner import Wishes
from apiserver.adoption.source import BadSource, Source
from apiserver.adoption.target import TargetChanged, apply, make_plan
from apiserver.settings import Settings
from krm.client.client import connect
from krm.client.kubeconfig import BadKubeconfig
from storage.interfaces import StoreUnavailable
from storage.sealing import SealBroken

EXPECTED: Final = (BadSource, BadKubeconfig, StoreUnavailable, SealBroken, TargetChanged, OSError)
"""Why an adoption may fail, each with a message that says what to do."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the old installation is: a folder, or the server of a kubeconfig, or with neither the cluster in which this runs."""

    folder: Path | None = None
    kubeconfig: Path | None = None
    namespaces: frozenset[str] = field(default_factory=frozenset)
    records: bool = False


@dataclass(frozen=True, slots=True)
class How:
    """What is to be done with the plan, and how it is shown."""

    write: bool = False
    partly: bool = False
    """Take over everything that can be, in spite of problems."""
    everything: bool = False
    """Show every line of long lists."""
    json: bool = False
    """Show one document in place of lines."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a run ended. ``written`` tells whether everything that could be taken over now is."""

    problems: int
    written: bool


async def adopt(settings: Settings, origin: Origin, wishes: Wishes, say: Say, how: How) -> Done:
    """Show what would be taken over and, if ``how.write``, take it over; with problems only if ``how.partly``.

    Nothing is changed at the old server or in Git, and without ``how.write`` nowhere. Repeating it writes nothing new.

    Raises:
        BadSource, BadKubeconfig: the old installation cannot be read, or was written to meanwhile.
        StoreUnavailable: the new server's database cannot be used.
        TargetChanged: it was written to meanwhile.
    """
    text: Say = _nothing if how.json else say
    async with _source(origin) as source:
        text(f"From {source.shown}")
        plan = await make_plan(settings, source, wishes)
        for line in report.lines(plan, everything=how.everything):
            text(line)
        text(report.outcome(plan))
        written = how.write and (how.partly or not plan.problems)
        if written:
            await _write(settings, source, plan, text)
    if not how.write:
        text("Nothing was changed. Type it with --apply to take this over.")
    elif not written:
        text("Nothing was changed. Solve the problems, or type --partly to take over everything else.")
    else:
        text("Taken over.")
    if how.json:
        say(report.document(plan, source.shown, written=written))
    return Done(len(plan.problems), written)


async def _write(settings: Settings, source: Source, plan: Plan, say: Say) -> None:
    """Write a plan, unless the old server went on meanwhile."""
    if changed := await changed_since(source, plan.states):
        named = ", ".join(changed[:5]) + (" …" if len(changed) > 5 else "")  # noqa: PLR2004 # enough to find who writes
        raise BadSource(
            f"the old server was written to while the plan was made: package revisions of {named}; nothing was changed. "
            "Stop its controllers and those who write there, then type this again"
        )
    if plan.mutations:
        say(f"Writing {len(plan.mutations)} objects")
        await apply(settings, plan)


def _nothing(_line: str) -> None:
    """Say nothing: the document at the end says everything."""


@asynccontextmanager
async def _source(origin: Origin) -> AsyncIterator[Source]:
    if origin.folder is not None:
        yield FolderSource(origin.folder, origin.namespaces, records=origin.records)
        return
    async with connect(origin.kubeconfig, agent="porch-adopt") as client:
        shown = f"the server of kubeconfig {origin.kubeconfig}" if origin.kubeconfig else "the cluster"
        yield LiveSource(client, shown, origin.namespaces, records=origin.records)

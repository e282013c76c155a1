"""``porch adopt``: the parts wired for one run. Source: issue 9 part 5; ADR 0034."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver.adoption import report
from apiserver.adoption.folder import FolderSource
from apiserver.adoption.live import LiveSource
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
    """Where the old installation is: exactly one of folder and kubeconfig."""

    folder: Path | None = None
    kubeconfig: Path | None = None
    namespaces: frozenset[str] = field(default_factory=frozenset)
    records: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """How a run ended. ``written`` tells whether everything that could be taken over now is."""

    problems: int
    written: bool


async def adopt(
    settings: Settings, origin: Origin, wishes: Wishes, say: Say, *, write: bool, partly: bool, everything: bool
) -> Done:
    """Show what would be taken over and, if ``write``, take it over; with problems only if ``partly``.

    Nothing is changed at the old server or in Git, and without ``write`` nowhere. Repeating it writes nothing new.

    Raises:
        BadSource, BadKubeconfig: the old installation cannot be read.
        StoreUnavailable: the new server's database cannot be used.
        TargetChanged: it was written to meanwhile.
    """
    async with _source(origin) as source:
        say(f"From {source.shown}")
        plan = await make_plan(settings, source, wishes)
    for line in report.lines(plan, everything=everything):
        say(line)
    say(report.outcome(plan))
    problems = len(plan.problems)
    if not write:
        say("Nothing was changed. Type it with --apply to take this over.")
        return Done(problems, written=False)
    if problems and not partly:
        say("Nothing was changed. Solve the problems, or type --partly to take over everything else.")
        return Done(problems, written=False)
    if plan.mutations:
        say(f"Writing {len(plan.mutations)} objects")
        await apply(settings, plan)
    say("Taken over.")
    return Done(problems, written=True)


@asynccontextmanager
async def _source(origin: Origin) -> AsyncIterator[Source]:
    if origin.folder is not None:
        yield FolderSource(origin.folder, origin.namespaces, records=origin.records)
        return
    async with connect(origin.kubeconfig, agent="porch-adopt") as client:
        shown = f"the server of kubeconfig {origin.kubeconfig}" if origin.kubeconfig else "the cluster"
        yield LiveSource(client, shown, origin.namespaces, records=origin.records)

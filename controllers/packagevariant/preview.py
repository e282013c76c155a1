"""What a paused variant would do. Nothing is written. Source: ``variants.md`` 6.7."""

from typing import Any

from controllers.packagevariant.evaluation import evaluate
from controllers.packagevariant.passes import Pass
from controllers.packagevariant.situation import INITIAL, Situation, Trigger
from controllers.packagevariant.views import Findings
from krm.variants.mutation import MutationError
from krm.variants.revisions import Revision
from krm.variants.summary import summarize
from krm.variants.upstream import Resolution

Json = dict[str, Any]


async def preview(current: Pass, upstream: Resolution) -> tuple[Json | None, Findings]:
    """Return the change that waits for the variant to be resumed (None: there is none), and what has drifted.

    Of an upgrade only the reason is known: what comes of it the server merges when it is made.

    Raises:
        StatusError, NoAnswer: The files cannot be read.
        Overtaken: A target went away meanwhile.
    """
    situation = Situation(current, upstream)
    found = situation.look()
    change, drifted = None, set[str]()
    if not found.targets and not found.exists_unowned:
        change = _told(Trigger(INITIAL, upstream.revision.name), "")
    for target in found.targets:
        if situation.is_behind(target):
            change = change or _told(situation.upgrade_trigger(target), target.name)
            continue
        mutated, files = await _mutated(current, target, situation.trigger(target))
        change = change or mutated
        drifted.update(files)
    return change, Findings(
        upstream=upstream.revision,
        upstream_revisions=situation.upstream_revisions(),
        files=sorted(drifted),
        unfulfilled=sorted({type_ for target in found.targets for type_ in target.unfulfilled}),
    )


async def _mutated(current: Pass, target: Revision, trigger: Trigger) -> tuple[Json | None, tuple[str, ...]]:
    """Return the change that the mutations would make, and the files that were changed after they were made."""
    try:
        evaluation = await evaluate(current, target)
    except MutationError:
        return None, ()
    if not evaluation.needs_write:
        return None, evaluation.drifted
    change = summarize(
        evaluation.before,
        evaluation.mutation.resources,
        draft="",
        base=target.name,
        trigger=trigger.name,
        detail=trigger.detail,
    )
    return change, ()


def _told(trigger: Trigger, base: str) -> Json:
    told = {"base": base, "trigger": trigger.name, "triggerDetail": trigger.detail}
    return {key: value for key, value in told.items() if value}

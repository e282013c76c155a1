"""Rendering the targets of a set beside the time that their expressions take by themselves, and what the event loop feels of it.

No server: the processes that render are the controller's own. Both figures are taken in turn in one run. Source: issue 8.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any

from report import Row, at_most

from krm.variants.revisions import Revision
from krm.variants.sets.expressions import compile_template_expression, evaluate
from krm.variants.sets.rendering import object_view, upstream_view
from krm.variants.sets.rendering_pool import RenderingPool
from krm.variants.sets.targets import Context, SelectedObject, unroll
from krm.variants.sets.vocabulary import REPOSITORY

Json = dict[str, Any]

FULL, SHORT = 10_000, 500
"""Targets."""
TURNS = 3
TICK = 0.001
"""Seconds between two looks at the clock by which stalls of the loop are seen."""
EXPRESSIONS = (
    "'app-' + target.name",
    "has(target.labels.zone) ? target.labels.zone : 'none'",
    "repository.labels.region + '/' + repoDefault",
    "repoDefault.split('-')[1] + '.' + packageDefault",
    "repository.labels['region'] + '-endpoints-' + target.name",
)
TEMPLATE = {
    "downstream": {"packageExpr": EXPRESSIONS[0]},
    "labelExprs": [{"key": "zone", "valueExpr": EXPRESSIONS[1]}],
    "annotationExprs": [{"key": "place", "valueExpr": EXPRESSIONS[2]}],
    "packageContext": {"dataExprs": [{"key": "host", "valueExpr": EXPRESSIONS[3]}]},
    "injectors": [{"kind": "ConfigMap", "nameExpr": EXPRESSIONS[4]}],
}
UPSTREAM = {"repo": "blueprints", "package": "app", "revision": 1}


def rows(number: int) -> list[Row]:
    """Measure so many targets."""
    return asyncio.run(_measured(number))


async def _measured(number: int) -> list[Row]:
    repositories = {one.name: one for one in map(_repository, range(number))}
    body = _set()
    contexts = unroll(body["spec"], "default", [*repositories.values()], {}).contexts
    pool = RenderingPool()
    try:
        await pool.render(body, _upstream(), contexts, repositories)  # the processes start
        alone, ours, stalls = [], [], []
        for _ in range(TURNS):
            alone.append(_expressions_alone(contexts))
            stall, seconds = await _with_stalls(pool, body, contexts, repositories)
            ours.append(seconds)
            stalls.append(stall)
    finally:
        await pool.close()
    cel, took = statistics.median(alone), statistics.median(ours)
    print(f"  expressions alone: {_seconds(alone)}; rendering: {_seconds(ours)}", flush=True)
    what = f"rendering {number} targets with {len(EXPRESSIONS)} expressions each"
    return [
        at_most(what, "–", 1.5 * cel, took, "s", asked="≤ 1.5 × the expressions alone"),
        Row(f"{what}: the event loop's longest stall (CPU)", "–", "", f"{max(stalls) * 1000:.0f} ms"),
    ]


def _seconds(times: Sequence[float]) -> str:
    return ", ".join(f"{one:.2f}" for one in times) + " s"


def _set() -> Json:
    target = {"repositorySelector": {"matchLabels": {}}, "template": TEMPLATE}
    return {
        "metadata": {"namespace": "default", "name": "fleet", "uid": "fleet", "generation": 1},
        "spec": {"upstream": UPSTREAM, "targets": [target]},
    }


def _upstream() -> Revision:
    spec = {"repository": "blueprints", "packageName": "app", "workspaceName": "v1", "revision": 1}
    meta = {"namespace": "default", "name": "blueprints.app.v1"}
    return Revision.of({"metadata": meta, "spec": {**spec, "lifecycle": "Published"}})


def _repository(number: int) -> SelectedObject:
    labels = {"region": f"region-{number % 20}"} | ({"zone": f"zone-{number % 3}"} if number % 2 else {})
    return SelectedObject(*REPOSITORY, "default", f"site-{number:05d}", labels, {})


def _expressions_alone(contexts: Sequence[Context]) -> float:
    """Return the seconds that evaluating every expression for every target takes, in this process and nothing else."""
    expressions, view = [compile_template_expression(text) for text in EXPRESSIONS], upstream_view(_upstream())
    began = time.perf_counter()
    for context in contexts:
        assert context.target is not None  # repositories were selected
        seen = object_view(context.target)
        variables = {
            "repoDefault": context.repo_default,
            "packageDefault": context.package_default,
            "upstream": view,
            "target": seen,
            "repository": seen,
        }
        for expression in expressions:
            evaluate(expression, variables)
    return time.perf_counter() - began


async def _with_stalls(
    pool: RenderingPool, body: Json, contexts: Sequence[Context], repositories: dict[str, SelectedObject]
) -> tuple[float, float]:
    """Render; return the longest time that the event loop did nothing else meanwhile, and what it took, in seconds.

    The first is time of the processor: a machine that is busy with other things stalls no loop.
    """
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK)
            longest = max(longest, time.thread_time() - before)

    ticking = asyncio.create_task(tick())
    began = time.perf_counter()
    rendered = await pool.render(body, _upstream(), contexts, repositories)
    took = time.perf_counter() - began
    ticking.cancel()
    wrong = [one.error for one in rendered if one.spec is None]
    assert len(rendered) == len(contexts), len(rendered)
    assert not wrong, wrong[0]
    return longest, took

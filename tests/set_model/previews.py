"""What the server's preview says of a set in the model, and what the controller then does.

The preview is the product's, from a set to the answer; what there is comes from the model in place of the server's caches.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from variant_model.client import CONTROLLER
from variant_model.live import REST, come_to_rest, in_virtual_time, perform
from variant_model.people import Step
from variant_model.porch import CONFIG_MAPS, REPOSITORIES, VARIANTS, PorchModel

from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.previewing import preview
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.targets import Kind, SelectedObject
from set_model.live import LiveSets, RenderedAtOnce, others_work
from set_model.wanted import NAMESPACE, set_of, variants_of

Json = dict[str, Any]
Done = set[tuple[str, str, str]]
"""Verb, name of the variant, and digest of its new spec (none of one that is deleted)."""
CONFIG_MAP: Final[Kind] = ("v1", "ConfigMap")


class ModelSurroundings:
    """What there is in the model. Implements ``krm.variants.sets.previewing.Surroundings``."""

    def __init__(self, porch: PorchModel) -> None:
        self._porch = porch

    def repositories(self) -> Iterable[Json]:
        return self._porch.all(REPOSITORIES)

    def revisions(self, repository: str, package: str) -> Iterable[Json]:
        return self._porch.revisions_of(repository, package)

    def variants_of(self, set_uid: str) -> Iterable[Json]:
        return variants_of(self._porch, set_uid)

    def variant(self, name: str) -> Json | None:
        return self._porch.find(VARIANTS, name, NAMESPACE)

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        return {CONFIG_MAP: [SelectedObject.of(one, CONFIG_MAP) for one in self._porch.all(CONFIG_MAPS)]}


async def said(porch: PorchModel, one: Json) -> Done:
    """Return the writes that a preview of the stored set tells of."""
    around, rendering = ModelSurroundings(porch), RenderedAtOnce()
    answer = await preview(one, around, rendering, defaults=GuardDefaults(), now=datetime.now(UTC))
    admitted = [each for each in answer.get("targets") or () if each.get("admitted")]
    return {(each["action"], each["name"], _digest(each.get("spec"))) for each in admitted}


def done(porch: PorchModel, since: int) -> Iterator[tuple[str, str, str]]:
    """Yield the writes of variants that the controller has made since a number of writes."""
    for write in porch.writes[since:]:
        if write.by == CONTROLLER and write.plural == VARIANTS:
            body = porch.find(VARIANTS, write.name, NAMESPACE)
            yield write.verb, write.name, _digest(body["spec"] if body and write.verb != "delete" else None)


def _digest(spec: Json | None) -> str:
    return spec_digest(spec) if spec else ""


def play_previewed(script: Sequence[tuple[float, Step | None]], changes: Sequence[Step], seed: int) -> Done:
    """Play a script, change something while nobody works, and compare a preview with what the controller does.

    Returns what was previewed.
    """
    live, found = LiveSets(seed), Done()
    in_virtual_time(lambda: _play(live, script, changes, found))
    return found


async def _play(
    live: LiveSets, script: Sequence[tuple[float, Step | None]], changes: Sequence[Step], found: Done
) -> None:
    others = asyncio.create_task(others_work(live))
    live.start()
    await perform(live, script)
    await come_to_rest(live)
    await live.stop()
    live.surroundings.frozen = True
    for step in changes:
        live.does(step)
    if (one := set_of(live.porch)) is not None:
        found |= await said(live.porch, one)
        before = len(live.porch.writes)
        live.start()
        await asyncio.sleep(REST)
        await live.stop()
        assert {*done(live.porch, before)} == found
    others.cancel()

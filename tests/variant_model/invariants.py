"""What must hold at every moment, and what the end must look like. Source: ``variants.md`` 2.15.

Everything here is computed from the server's state and from what users asked for, not by the product's rules.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from krm.meta.conditions import find_condition
from krm.variants.vocabulary import INJECTED_NAME, OPERATIONS_GATE, PAUSED, TAG_LABEL_PREFIX
from variant_model.packages import decoded
from variant_model.people import DOWNSTREAM, POINT, TAG, People
from variant_model.porch import BRANCH, CONFIG_MAPS, REVISIONS, VARIANTS, PorchModel, is_controllers

Json = dict[str, Any]


class World(Protocol):
    """What is looked at."""

    porch: PorchModel
    people: People
    inherited: set[tuple[str, str]]
    """Revisions, by name and creation, of which it is known what their users' edits are."""
    left: set[tuple[str, str]]
    """Revisions, by name and creation, that had no owner once."""


UNPUBLISHED = ("Draft", "Proposed")


# --- at every moment ---------------------------------------------------------------------------------------


def check_always(world: World) -> None:
    """Check what holds at every moment (I2, I3, I5, I6, I7)."""
    one_draft_each(world)
    published_stays(world.porch)
    proposals_are_whole(world)
    user_edits_stay(world)


def one_draft_each(world: World) -> None:
    """I2 and I3: never two unpublished drafts that the controller made of one package for one variant.

    One that was left to itself once may be adopted beside another.
    """
    drafts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for body in world.porch.all(REVISIONS):
        if is_controllers(body) and body["spec"]["lifecycle"] in UNPUBLISHED:
            meta = body["metadata"]
            if not meta.get("ownerReferences"):
                world.left.add((meta["name"], meta["creationTimestamp"]))
            for owner in meta.get("ownerReferences") or ():
                if (meta["name"], meta["creationTimestamp"]) not in world.left:
                    drafts[owner["uid"], body["spec"]["packageName"]].append(meta["name"])
    assert all(len(names) <= 1 for names in drafts.values()), drafts


def published_stays(porch: PorchModel) -> None:
    """I5: a published revision has the content that was approved."""
    for body in porch.all(REVISIONS):
        spec = body["spec"]
        if spec.get("revision", 0) > 0:
            assert porch._files(body) == porch.published[body["metadata"]["name"], spec["revision"]]


def proposals_are_whole(world: World) -> None:
    """I6: no draft of the controller passes its gate half done.

    Every one that could be proposed now carries context and pipeline of one and the same generation of its variant.
    """
    for body in world.porch.all(REVISIONS):
        condition = find_condition(body["status"].get("conditions"), OPERATIONS_GATE)
        if not is_controllers(body) or body["spec"]["lifecycle"] not in UNPUBLISHED:
            continue
        assert condition is not None, f"{body['metadata']['name']} has no {OPERATIONS_GATE}"
        if condition["status"] == "True":
            applied = generations(world.porch, body)
            assert len(set(applied)) == 1, f"{body['metadata']['name']} is complete with {applied}"
            assert applied[0].startswith("g"), applied


def generations(porch: PorchModel, revision: Json) -> list[str]:
    """Return which generation of its variant's mutations a package's context, pipeline and rendered file are of."""
    commit = revision["status"]["selfLock"]["git"]["commit"]
    if commit not in porch.memo:
        variant = revision["spec"]["packageName"].partition("-")[0]
        porch.memo[commit] = _generations(variant, porch.contents(revision))
    return porch.memo[commit]


def _generations(variant: str, files: dict[str, str]) -> list[str]:
    key = f"wanted-{variant}"
    context = decoded(files["package-context.yaml"])["data"]
    kptfile, settings = decoded(files["Kptfile"]), decoded(files["settings.yaml"])
    functions = (kptfile.get("pipeline") or {}).get("mutators") or []
    own = [each["configMap"].get(key) for each in functions if each.get("name") == f"PackageVariant.{variant}.stamp.0"]
    labels = settings["metadata"].get("labels") or {}
    return [str(context.get(key)), *map(str, own or [None]), str(labels.get(key))]


def user_edits_stay(world: World) -> None:
    """I7: what users added to a draft is in it, and in every revision that was made of it."""
    porch, edits = world.porch, world.people.edits
    there = {body["metadata"]["name"]: body for body in porch.all(REVISIONS)}
    for name in [name for name in edits if name not in there]:
        del edits[name]  # a draft of this name may come again, without them
    for name, body in there.items():
        _inherit(name, body, world)
        for edit in edits.get(name, ()):
            assert edit.is_in(porch.contents(body)), f"{name} lost {edit}"


def _inherit(name: str, body: Json, world: World) -> None:
    """Note what a new revision has of the one that it was made of."""
    edits, seen = world.people.edits, world.inherited
    made = (name, body["metadata"]["creationTimestamp"])
    if made in seen:
        return
    seen.add(made)
    (task,) = body["spec"].get("tasks") or [{}]
    block = task.get(task.get("type", ""), {})
    source = (block.get("sourceRef") or block.get("localPackageRevisionRef") or {}).get("name")
    if source and source != name:
        edits.setdefault(name, []).extend(edits.get(source, ()))


# --- in the end --------------------------------------------------------------------------------------------


def check_end(world: World) -> None:
    """Check that every variant has come to where its users want it (I8), or says why not."""
    for variant in world.porch.all(VARIANTS):
        check_variant(world, variant)
    check_gone(world)


def check_gone(world: World) -> None:
    """Check that nothing belongs to a variant that was deleted: the garbage collector would take it.

    One that was restored only takes back what is in the place of its target.
    """
    porch, restored = world.porch, world.people.restored
    alive = {variant["metadata"]["uid"] for variant in porch.all(VARIANTS)}.union(*restored.values())
    for body in porch.all(REVISIONS):
        owners = {owner["uid"] for owner in body["metadata"].get("ownerReferences") or ()}
        assert owners <= alive, f"{body['metadata']['name']} belongs to a variant that is gone"


def check_variant(world: World, variant: Json) -> None:
    """Check one variant: what it says, and whether it is true."""
    porch, name = world.porch, variant["metadata"]["name"]
    status = variant.get("status") or {}
    stalled = find_condition(status.get("conditions"), "Stalled") or {}
    ready = find_condition(status.get("conditions"), "Ready") or {}
    assert not variant["metadata"].get("deletionTimestamp"), f"{name} is not gone: {ready}"
    is_paused = variant["spec"].get("suspend") or (variant["metadata"].get("annotations") or {}).get(PAUSED) == "true"
    paused = find_condition(status.get("conditions"), "Paused") or {}
    assert (paused.get("status") == "True") == bool(is_paused), (name, status)
    if is_paused:
        return
    assert status.get("observedGeneration") == variant["metadata"]["generation"], (name, status)
    upstream = wanted_upstream(porch, variant)
    if upstream is None:
        assert (stalled.get("status"), stalled.get("reason")) == ("True", "UpstreamNotFound"), (name, stalled)
        assert (ready.get("status"), ready.get("reason")) == ("False", "Error"), (name, ready)
        return
    assert stalled.get("status") == "False", (name, stalled)
    targets = wanted_targets(porch, variant, world.people.restored.get(name, ()))
    said = [target["name"] for target in status.get("downstreamTargets") or ()]
    reason = reason_to_wait(porch, variant, upstream, targets)
    if not reason and ready.get("reason") == "DownstreamProposed" and _lost_its_source(porch, variant, targets):
        return
    if reason:
        assert (ready.get("status"), ready.get("reason")) == ("False", reason), (name, reason, ready)
        return
    assert (ready.get("status"), ready.get("reason")) == ("True", "NoErrors"), (name, ready)
    assert said == [target["metadata"]["name"] for target in targets], (name, said)
    for target in targets:
        assert not problems(porch, variant, upstream, target), (name, target["metadata"]["name"])


def wanted_upstream(porch: PorchModel, variant: Json) -> Json | None:
    """Return the revision that the variant's upstream stands for."""
    spec = variant["spec"]["upstream"]
    published = [
        body
        for body in porch.revisions_of(spec["repo"], spec["package"])
        if body["spec"]["lifecycle"] in ("Published", "DeletionProposed") and body["spec"].get("revision", 0) > 0
    ]
    if "tag" in spec:
        published = [b for b in published if TAG_LABEL_PREFIX + TAG in (b["metadata"].get("labels") or {})]
    elif "workspaceName" in spec:
        published = [b for b in published if b["spec"]["workspaceName"] == spec["workspaceName"]]
    elif (revision := spec.get("revision", "latest")) != "latest":
        published = [b for b in published if b["spec"]["revision"] == int(str(revision).removeprefix("v"))]
    else:
        published = [b for b in published if b["spec"]["lifecycle"] == "Published"]
    newest = max(published, key=lambda body: int(body["spec"]["revision"]), default=None)
    if newest is None and not {"tag", "workspaceName", "revision"} & set(spec):
        return porch.find(REVISIONS, f"{spec['repo']}.{spec['package']}.{BRANCH}")
    return newest


def wanted_targets(porch: PorchModel, variant: Json, restored: Iterable[str]) -> list[Json]:
    """Return the drafts of the variant, or else its newest published revision; it had the uids ``restored`` once."""
    uids, package = {variant["metadata"]["uid"], *restored}, variant["spec"]["downstream"]["package"]
    owned = [
        body
        for body in porch.revisions_of(DOWNSTREAM, package)
        if any(owner["uid"] in uids for owner in body["metadata"].get("ownerReferences") or ())
    ]
    drafts = [body for body in owned if body["spec"]["lifecycle"] in UNPUBLISHED]
    newest = max(owned, key=lambda body: int(body["spec"].get("revision", 0)), default=None)
    return drafts or ([newest] if newest else [])


def reason_to_wait(porch: PorchModel, variant: Json, upstream: Json, targets: list[Json]) -> str:
    """Return the reason why the variant cannot be where its users want it; empty where nothing holds it."""
    package = [
        b
        for b in porch.revisions_of(DOWNSTREAM, variant["spec"]["downstream"]["package"])
        if b["spec"].get("revision") != -1
    ]
    if not targets:
        return "DownstreamExists" if package else "Error"
    if targets[0]["spec"]["lifecycle"] == "DeletionProposed":
        return "DownstreamDeletionProposed"
    for target in targets:
        if problems(porch, variant, upstream, target):
            if target["spec"]["lifecycle"] == "Proposed":
                return "DownstreamProposed"
            newest = max(package, key=lambda body: int(body["spec"].get("revision", 0)))
            if target["spec"]["lifecycle"] == "Published" and newest is not target:
                return "DownstreamDiverged"
    return ""


def problems(porch: PorchModel, variant: Json, upstream: Json, target: Json) -> list[str]:
    """Return what of a target is not as the variant wants it."""
    files = porch.contents(target)
    uids = [owner["uid"] for owner in target["metadata"].get("ownerReferences") or ()]
    found = [] if uids == [variant["metadata"]["uid"]] else [f"belongs to {uids}"]
    lock, wanted = target["status"]["upstreamLock"]["git"]["commit"], upstream["status"]["selfLock"]["git"]["commit"]
    if lock != wanted and not _is_newer(porch, variant["spec"]["upstream"], lock, upstream):
        found.append(f"made of {lock}, not of {wanted}")
    generation = variant["spec"]["packageContext"]["data"][f"wanted-{variant['metadata']['name']}"]
    if set(generations(porch, target)) != {generation}:
        found.append(f"mutated as {generations(porch, target)}, not {generation}")
    point = decoded(files.get("point.yaml") or "null")
    selector = (variant["spec"].get("injectors") or [{"name": ""}])[0]["name"]
    source = porch.find(CONFIG_MAPS, selector)
    if (
        point is not None
        and source is not None
        and (point["data"] != source["data"] or point["metadata"]["annotations"].get(INJECTED_NAME) != selector)
    ):
        found.append(f"{POINT} has {point['data']}, not {source['data']}")
    gate = find_condition(target["status"]["conditions"], OPERATIONS_GATE) or {}
    if target["spec"]["lifecycle"] == "Draft" and gate.get("status") != "True":
        found.append(f"{OPERATIONS_GATE} is {gate}")
    return found


def _is_newer(porch: PorchModel, spec: Json, lock: str, upstream: Json) -> bool:
    """Tell whether what a target is made of is newer than the latest there is, which is kept then (2.4)."""
    if "tag" in spec or "workspaceName" in spec or spec.get("revision", "latest") != "latest":
        return False
    made_of = [b for b in porch.revisions_of(spec["repo"], spec["package"]) if _commit(b) == lock]
    return any(body["spec"].get("revision", 0) > upstream["spec"]["revision"] for body in made_of)


def _commit(revision: Json) -> str:
    return str(revision["status"]["selfLock"]["git"]["commit"])


def _lost_its_source(porch: PorchModel, variant: Json, targets: list[Json]) -> bool:
    """Tell whether a proposal has an injection point and nothing to inject: its condition would have to be changed (C-09)."""
    selector = (variant["spec"].get("injectors") or [{"name": ""}])[0]["name"]
    proposals = [target for target in targets if target["spec"]["lifecycle"] == "Proposed"]
    points = any("point.yaml" in porch.contents(target) for target in proposals)
    return points and porch.find(CONFIG_MAPS, selector) is None

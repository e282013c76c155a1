"""What the objects on a server tell that is wrong: Repositories, package revisions, variants, sets and Leases.

Everything here is pure: an object as it is on the wire and the time go in, findings come out. Objects are as others wrote
them, so nothing but JSON is taken for granted. Source: ``users.md`` 2; ``porch-api.md`` 1.9; ``variants.md`` 1.3, 1.6, 6.3.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, Final

from krm.cli.doctor.finding import Finding, Severity, age, reference, span
from krm.meta.conditions import find_condition
from krm.variants.revisions import DELETION_PROPOSED
from krm.variants.sets.vocabulary import ALLOW_DELETIONS, APPROVE_WAVE
from krm.variants.vocabulary import KIND as VARIANT
from krm.variants.vocabulary import OPERATIONS_GATE, PAUSED

Json = dict[str, Any]

PIPELINE_GATE: Final = "PackagePipelinePassed"
SOON: Final = dt.timedelta(minutes=5)
"""What takes longer than this is stuck, where a server or a controller has to do it."""
ONGOING: Final = ("Reconciling", "RolloutInProgress", "WaitingForDeletion")
"""Reasons of Ready False that pass by themselves."""


# --- Repositories -----------------------------------------------------------------------------------


def of_repository(body: Json, now: dt.datetime) -> Iterator[Finding]:
    """Find what keeps a Repository from being read, or from being written."""
    yield from _terminating(body, now)
    name, meta = reference(body), body.get("metadata") or {}
    ready = _condition(body, "Ready")
    if ready is None:
        if age(meta.get("creationTimestamp", ""), now) > SOON:
            fix = "see that a Porch server runs that watches this namespace, and what its log says"
            yield Finding(
                Severity.ERROR, name, "no server has looked at it yet", fix, meta.get("creationTimestamp", "")
            )
    elif ready.get("status") != "True" and (ready.get("reason") != "Reconciling" or age(_since(ready), now) > SOON):
        fix = f"check address, branch and Secret (kubectl describe repository {meta.get('name')}); it is read again by itself"
        yield _told(Severity.ERROR, name, "not Ready", ready, now, fix)
    writable = _condition(body, "Writable")
    if writable is not None and writable.get("status") == "False":
        fix = "let the user of its Secret push at the Git host (rights, protected branches, hooks), then approve again"
        yield _told(Severity.ERROR, name, "takes no pushes", writable, now, fix)


def secret_of(body: Json) -> str:
    """Return the name of the Secret that a Repository names, empty where it names none."""
    spec = body.get("spec") or {}
    for source in ("git", "oci"):
        secret = (spec.get(source) or {}).get("secretRef") or {}
        if secret.get("name"):
            return str(secret["name"])
    return ""


# --- package revisions ------------------------------------------------------------------------------


def of_revision(body: Json, now: dt.datetime, patience: dt.timedelta) -> Iterator[Finding]:
    """Find what keeps a package revision, published or not, from going on; gates have ``patience`` to be met."""
    yield from _terminating(body, now)
    spec, meta = body.get("spec") or {}, body.get("metadata") or {}
    if spec.get("lifecycle") in ("Published", DELETION_PROPOSED) or meta.get("deletionTimestamp"):
        return
    for gate in spec.get("readinessGates") or ():
        type_ = str(gate.get("conditionType"))
        condition = _condition(body, type_)
        if condition is not None and condition.get("status") == "True":
            continue
        since = _since(condition or {}) or meta.get("creationTimestamp", "")
        if type_ == PIPELINE_GATE and condition is not None and condition.get("status") == "False":
            fix = "correct the package or its pipeline: any change of its files renders it again"
            yield _told(Severity.WARNING, reference(body), "its pipeline fails", condition, now, fix)
        elif age(since, now) > (SOON if type_ == OPERATIONS_GATE else patience):
            yield _waiting(body, type_, condition, since, now)


def _waiting(body: Json, gate: str, condition: Json | None, since: str, now: dt.datetime) -> Finding:
    owners = (body.get("metadata") or {}).get("ownerReferences") or ()
    variant = next((str(one.get("name")) for one in owners if one.get("kind") == VARIANT), "")
    if gate == OPERATIONS_GATE:
        fix = (
            f"kubectl describe packagevariant {variant} says what it waits for"
            if variant
            else "no variant owns it any more: delete the draft, or set the condition"
        )
    else:
        fix = f"whoever is to fulfil {gate} has to set that condition to True"
    problem = f"waits for its readiness gate {gate}"
    if condition is not None:
        return _told(Severity.WARNING, reference(body), problem, condition, now, fix)
    return Finding(Severity.WARNING, reference(body), f"{problem} for {span(age(since, now))}", fix, since)


# --- variants and sets ------------------------------------------------------------------------------


def of_variant(body: Json, now: dt.datetime) -> Iterator[Finding]:
    """Find what keeps a variant or a set from what it asks for."""
    yield from _terminating(body, now)
    meta, status, name = body.get("metadata") or {}, body.get("status") or {}, reference(body)
    if meta.get("deletionTimestamp"):
        return
    if _is_paused(body):
        fix = f"take spec.suspend and the annotation {PAUSED} off to have it worked on again"
        yield Finding(Severity.NOTE, name, "paused by a user: nothing is written", fix)
        return
    stalled, ready = _condition(body, "Stalled"), _condition(body, "Ready")
    if stalled is not None and stalled.get("status") == "True":
        yield _told(Severity.ERROR, name, "Stalled", stalled, now, _unstall(str(stalled.get("reason") or "")))
    elif ready is not None and ready.get("status") == "False" and ready.get("reason") not in ONGOING:
        fix = "do what the message says; it is tried again by itself"
        severity = Severity.WARNING if ready.get("reason") == "RolloutPaused" else Severity.ERROR
        if severity is Severity.WARNING:
            fix = (
                f"look at status.rollout; correct what failed, or let the wave go on with the annotation {APPROVE_WAVE}"
            )
        yield _told(severity, name, "not Ready", ready, now, fix)
    elif (status.get("observedGeneration") or 0) < (meta.get("generation") or 0) and _old(body, now):
        fix = "see that the controllers run: porch controllers, or porch serve --controllers"
        yield Finding(Severity.ERROR, name, "no controller has looked at its newest version", fix)
    drifted = _condition(body, "Drifted")
    if drifted is not None and drifted.get("status") == "True":
        fix = "kubectl get -o yaml shows status.drift; change it there, or take it over into the variant"
        yield _told(Severity.NOTE, name, "its package has drifted", drifted, now, fix)


def _unstall(reason: str) -> str:
    if reason == "DeletionGuard":
        return f"if so many variants are to go, annotate the set {ALLOW_DELETIONS}; otherwise correct its targets"
    if reason.startswith("Upstream"):
        return "publish the upstream that it names, or name another one in spec.upstream"
    return "correct its spec as the message says"


def _is_paused(body: Json) -> bool:
    spec, annotations = body.get("spec") or {}, (body.get("metadata") or {}).get("annotations") or {}
    return spec.get("suspend") is True or annotations.get(PAUSED) == "true"


# --- controllers ------------------------------------------------------------------------------------


def of_leases(bodies: Sequence[Json], now: dt.datetime, *, is_wanted: bool = False) -> Iterator[Finding]:
    """Find what is wrong with the Leases of one name, in whatever namespaces they are: where one is held, controllers work."""
    held = [one for one in bodies if _is_held(one, now)]
    for body in held or bodies:
        yield from of_lease(body, now, is_wanted=is_wanted)
    for body in (one for one in bodies if held and one not in held):
        problem = "nobody renews it, and another one of its name is held: it was left by an installation that is gone"
        yield Finding(Severity.NOTE, reference(body), problem, "delete it")


def of_lease(body: Json, now: dt.datetime, *, is_wanted: bool = False) -> Iterator[Finding]:
    """Find that nobody holds a controllers' Lease, or that its holder has stopped without letting go of it.

    ``is_wanted``: there is work for whoever should hold it.
    """
    spec, name = body.get("spec") or {}, reference(body)
    holder, renewed = spec.get("holderIdentity"), str(spec.get("renewTime") or "")
    if ((body.get("metadata") or {}).get("annotations") or {}).get(PAUSED) == "true":
        fix = f"take the annotation {PAUSED} off the Lease to go on"
        yield Finding(Severity.WARNING, name, "its controller is stopped by an annotation", fix)
    if not holder:
        fix = "start it if it is wanted: porch controllers, or porch serve --controllers"
        severity = Severity.ERROR if is_wanted else Severity.NOTE
        yield Finding(severity, name, "nobody holds it: this controller does not run", fix)
        return
    if not _is_held(body, now):
        problem = f"{holder} has not renewed it for {span(age(renewed, now))}: no controller works"
        fix = "start the controllers again and look at their log: porch controllers, or porch serve --controllers"
        yield Finding(Severity.ERROR, name, problem, fix, renewed)


def _is_held(body: Json, now: dt.datetime) -> bool:
    spec = body.get("spec") or {}
    allowed = dt.timedelta(seconds=float(spec.get("leaseDurationSeconds") or 0) * 2)
    return bool(spec.get("holderIdentity")) and age(str(spec.get("renewTime") or ""), now) <= allowed


# --- what all of them have ----------------------------------------------------------------------------


def _terminating(body: Json, now: dt.datetime) -> Iterator[Finding]:
    meta = body.get("metadata") or {}
    begun, finalizers = str(meta.get("deletionTimestamp") or ""), meta.get("finalizers") or ()
    if begun and age(begun, now) > SOON:
        held = f" by {', '.join(map(str, finalizers))}" if finalizers else ""
        fix = (
            "see that whoever set the finalizer runs; remove it by hand only if nobody is left to do what it stands for"
        )
        problem = f"is to be deleted, and held{held} for {span(age(begun, now))}"
        yield Finding(Severity.WARNING, reference(body), problem, fix, begun)


def _condition(body: Json, type_: str) -> Json | None:
    return find_condition((body.get("status") or {}).get("conditions"), type_)


def _since(condition: Json) -> str:
    return str(condition.get("lastTransitionTime") or "")


def _old(body: Json, now: dt.datetime) -> bool:
    """Tell whether an object was written long enough ago for a controller to have seen it."""
    meta = body.get("metadata") or {}
    times = [str(one.get("time") or "") for one in meta.get("managedFields") or () if not one.get("subresource")]
    return age(max([*times, str(meta.get("creationTimestamp") or "")]), now) > SOON


def _told(severity: Severity, name: str, problem: str, condition: Json, now: dt.datetime, fix: str) -> Finding:
    since = _since(condition)
    lasted = f" for {span(age(since, now))}" if since else ""
    why = ": ".join(str(condition[key]) for key in ("reason", "message") if condition.get(key))
    return Finding(severity, name, f"{problem}{lasted}: {why}" if why else f"{problem}{lasted}", fix, since)

"""Whether a PackageVariant can be worked on: every rule, and the sentence for each breach.

Most fields are typed by the definition of the kind, but injectors take several shapes there, and older definitions type less:
any JSON in any field gives sentences, never an error. Source: ``variants.md`` 1.2, 6.3 and 6.4; S0, "Basic specification fields".
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from krm.meta.names import dns_label_problem, label_value_problem, qualified_name_problem
from krm.variants import approval, shapes
from krm.variants.revision_choice import By, InvalidRevision, revision_choice
from krm.variants.vocabulary import LATEST_LABEL, RESERVED_CONTEXT_KEYS

Json = dict[str, Any]
Rule = Callable[[Json], Iterator[str]]

MOST_PROBLEMS: Final = 50
"""Sentences; a variant with more is not better described by more."""
ADOPTION_POLICIES: Final = ("adoptNone", "adoptExisting")
DELETION_POLICIES: Final = ("orphan", "delete")
DRIFT_POLICIES: Final = ("Report",)


def problems(body: Json) -> list[str]:
    """Return what is wrong with a PackageVariant as it is on the wire, in the order of 1.2; empty when nothing is.

    Joined with ``"; "`` they are the message of ``Stalled``.
    """
    spec = body.get("spec")
    if spec is not None and not isinstance(spec, dict):
        return ["spec must be an object"]
    found: list[str] = []
    for rule in RULES:
        for problem in rule(spec or {}):
            if len(found) == MOST_PROBLEMS:
                return [*found, "and more"]
            found.append(problem)
    return found


# --- upstream and downstream (1 to 7) -----------------------------------------------------------


def _upstream(spec: Json) -> Iterator[str]:
    upstream = spec.get("upstream")
    if upstream is None:
        yield "missing required field spec.upstream"
    elif not isinstance(upstream, dict):
        yield "spec.upstream must be an object"
    else:
        yield from _package(upstream, "spec.upstream")
        yield from _choice(upstream)


def _choice(upstream: Json) -> Iterator[str]:
    written, workspace, tag = upstream.get("revision"), upstream.get("workspaceName"), upstream.get("tag")
    try:
        revision_is_set = revision_choice(written).by is not By.UNSET
        invalid = False
    except InvalidRevision:
        revision_is_set = invalid = True
    yield from shapes.text(workspace, "spec.upstream.workspaceName")
    yield from shapes.text(tag, "spec.upstream.tag")
    if tag and (revision_is_set or workspace):
        yield "spec.upstream.tag must not be combined with revision or workspaceName"
    if isinstance(tag, str) and tag and (problem := dns_label_problem(tag)):
        yield f"spec.upstream.tag: invalid value {shapes.shown(tag)}: {problem}"
    if invalid:
        yield f"spec.upstream.revision: invalid value {shapes.shown(written)}"
    if not isinstance(upstream.get("allowDowngrade"), bool | None):
        yield "spec.upstream.allowDowngrade must be true or false"


def _downstream(spec: Json) -> Iterator[str]:
    downstream = spec.get("downstream")
    if downstream is None:
        yield "missing required field spec.downstream"
    elif not isinstance(downstream, dict):
        yield "spec.downstream must be an object"
    else:
        yield from _package(downstream, "spec.downstream")


def _package(value: Json, path: str) -> Iterator[str]:
    for name in ("repo", "package"):
        if value.get(name) in (None, ""):
            yield f"missing required field {path}.{name}"
        else:
            yield from shapes.text(value.get(name), f"{path}.{name}")


# --- policies (8 and 9) --------------------------------------------------------------------------


def _policies(spec: Json) -> Iterator[str]:
    if not _is_one_of(spec.get("adoptionPolicy"), ADOPTION_POLICIES):
        yield 'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"'
    if not _is_one_of(spec.get("deletionPolicy"), DELETION_POLICIES):
        yield 'spec.deletionPolicy can only be "orphan" or "delete"'


def _is_one_of(value: object, allowed: tuple[str, ...]) -> bool:
    return value is None or value == "" or (isinstance(value, str) and value in allowed)


# --- package context (10 and 11) -------------------------------------------------------------------


def _context(spec: Json) -> Iterator[str]:
    context = spec.get("packageContext")
    if context is None:
        return
    if not isinstance(context, dict):
        yield "spec.packageContext must be an object"
        return
    data, remove = context.get("data"), context.get("removeKeys")
    yield from shapes.string_map(data, "spec.packageContext.data")
    yield from shapes.string_list(remove, "spec.packageContext.removeKeys")
    for key in RESERVED_CONTEXT_KEYS:
        refusal = f'must not contain the key "{key}"'
        if isinstance(data, dict) and key in data:
            yield f"spec.packageContext.data: Invalid value: {shapes.shown(data)}: {refusal}"
        if isinstance(remove, list):
            for _ in range(remove.count(key)):
                yield f"spec.packageContext.removeKeys: Invalid value: {shapes.shown(remove)}: {refusal}"


# --- injectors (12) ----------------------------------------------------------------------------------


def _injectors(spec: Json) -> Iterator[str]:
    written = spec.get("injectors")
    listed = [written] if isinstance(written, dict) else written  # one alone stands for a list of one (C-27)
    if listed is None:
        return
    if not isinstance(listed, list):
        yield f"spec.injectors: must be a list of selectors, not {shapes.shown(written)}"
        return
    for place, selector in enumerate(listed):
        yield from _injector(selector, f"spec.injectors[{place}]")


def _injector(selector: object, path: str) -> Iterator[str]:
    if not isinstance(selector, dict):
        yield f"{path}: must be a selector with a name, not {shapes.shown(selector)}"
        return
    if selector.get("name") in (None, ""):
        yield f"{path}.name must not be empty"
    for part in ("name", "group", "version", "kind"):
        yield from shapes.text(selector.get(part), f"{path}.{part}")


# --- pipeline (13 and 14) ----------------------------------------------------------------------------


def _pipeline(spec: Json) -> Iterator[str]:
    pipeline = spec.get("pipeline")
    if pipeline is None:
        return
    if not isinstance(pipeline, dict):
        yield "spec.pipeline must be an object"
        return
    functions: list[tuple[str, Json]] = []
    for kind in ("mutators", "validators"):
        listed = pipeline.get(kind)
        if not isinstance(listed, list | None):
            yield f"spec.pipeline.{kind} must be a list"
            continue
        for place, function in enumerate(listed or ()):
            path = f"spec.pipeline.{kind}[{place}]"
            if isinstance(function, dict):
                functions.append((path, function))
            else:
                yield f"{path} must be an object"
    yield from _functions(functions)


def _functions(functions: list[tuple[str, Json]]) -> Iterator[str]:
    for path, function in functions:
        for part in ("name", "image", "tag", "exec", "configPath"):
            yield from shapes.text(function.get(part), f"{path}.{part}")
        yield from shapes.string_map(function.get("configMap"), f"{path}.configMap")
    for path, function in functions:
        if "." in str(function.get("name") or ""):
            yield f"{path}.name must not contain '.'"
    for path, function in functions:
        if not function.get("image") and not function.get("exec"):
            yield f"{path}.image must not be empty"


# --- labels and annotations (15) ------------------------------------------------------------------------


def _metadata(spec: Json) -> Iterator[str]:
    labels, annotations = spec.get("labels"), spec.get("annotations")
    yield from shapes.string_map(labels, "spec.labels")
    if isinstance(labels, dict):
        if LATEST_LABEL in labels:
            yield f'spec.labels must not contain the key "{LATEST_LABEL}"'
        for key, value in sorted(labels.items()):
            yield from _named("spec.labels", key, qualified_name_problem(key))
            if isinstance(value, str):
                yield from _named("spec.labels", key, label_value_problem(value))
    yield from shapes.string_map(annotations, "spec.annotations")
    if isinstance(annotations, dict):
        for key in sorted(annotations):
            yield from _named("spec.annotations", key, qualified_name_problem(key.lower()))


def _named(path: str, key: str, problem: str) -> Iterator[str]:
    if problem:
        yield f"{path}: {shapes.shown(key)}: {problem}"


# --- between fields, and what is beyond upstream ------------------------------------------------------------


def _itself(spec: Json) -> Iterator[str]:
    upstream, downstream = spec.get("upstream"), spec.get("downstream")
    if not isinstance(upstream, dict) or not isinstance(downstream, dict):
        return
    pairs = [(end.get("repo"), end.get("package")) for end in (upstream, downstream)]
    if all(pairs[0]) and pairs[0] == pairs[1]:
        yield "spec.downstream must differ from spec.upstream"


def _beyond(spec: Json) -> Iterator[str]:
    if not isinstance(spec.get("suspend"), bool | None):
        yield "spec.suspend must be true or false"
    if not _is_one_of(spec.get("driftPolicy"), DRIFT_POLICIES):
        yield 'spec.driftPolicy can only be "Report"'
    yield from approval.problems(spec.get("approval"), "spec.approval")


RULES: Final[tuple[Rule, ...]] = (
    _upstream,
    _downstream,
    _policies,
    _context,
    _injectors,
    _pipeline,
    _metadata,
    _itself,
    _beyond,
)

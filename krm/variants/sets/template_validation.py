"""What is wrong with the template of a target. Source: ``variants.md`` 1.5 (12 to 20b), 3.4, 6.3 and 6.12; C-03, C-04, C-37."""

from collections.abc import Iterator
from typing import Any, Final

from krm.expressions.cel import CelSyntaxError
from krm.variants import approval, shapes
from krm.variants.durations import InvalidDuration, read_duration
from krm.variants.sets.expressions import (
    BEFORE_REPOSITORY,
    VARIABLES,
    compile_template_expression,
    syntax_message,
)
from krm.variants.sets.template import FUNCTION_LISTS, MAP_EXPRESSIONS, listed
from krm.variants.validation import ADOPTION_POLICIES, DELETION_POLICIES

Json = dict[str, Any]
Written = tuple[str, str, tuple[str, ...]]
"""Where an expression stands, its text, and the variables that it has."""

_FUNCTION_TEXTS: Final = ("name", "image", "tag", "exec", "configPath")


def template_problems(template: object, path: str) -> Iterator[str]:
    """Yield what is wrong with a template, its expressions last; ``path`` is where it stands in the set."""
    if template is None:
        return
    if not isinstance(template, dict):
        yield f"{path} must be an object"
        return
    yield from shapes.choice(template.get("adoptionPolicy"), f"{path}.adoptionPolicy", ADOPTION_POLICIES)
    yield from shapes.choice(template.get("deletionPolicy"), f"{path}.deletionPolicy", DELETION_POLICIES)
    yield from _downstream(template.get("downstream"), path)
    yield from _metadata_and_context(template, path)
    for field in ("injectors", "injectorExprs"):
        yield from _injectors(template.get(field), f"{path}.{field}")
    yield from _pipeline(template.get("pipeline"), f"{path}.pipeline")
    yield from approval.problems(template.get("approval"), f"{path}.approval")


def duration_problems(written: object, path: str) -> Iterator[str]:
    """Yield what is wrong with a duration."""
    if written in (None, ""):
        return
    try:
        read_duration(written)
    except InvalidDuration as error:
        yield f"{path} {error}"


# --- downstream (14 and 15) ---------------------------------------------------------------------------


def _downstream(downstream: object, path: str) -> Iterator[str]:
    if downstream is None:
        return
    if not isinstance(downstream, dict):
        yield f"{path}.downstream must be an object"
        return
    for name in ("repo", "package"):
        if downstream.get(name) is not None and downstream.get(f"{name}Expr") is not None:
            yield f"{path} may specify only one of `downstream.{name}` and `downstream.{name}Expr`"
        yield from shapes.text(downstream.get(name), f"{path}.downstream.{name}")
        yield from shapes.text(downstream.get(f"{name}Expr"), f"{path}.downstream.{name}Expr")


# --- maps (16 and 16b) ----------------------------------------------------------------------------------


def _metadata_and_context(template: Json, path: str) -> Iterator[str]:
    context = template.get("packageContext")
    yield from _map_expressions(template.get("labelExprs"), f"{path}.labelExprs")
    yield from _map_expressions(template.get("annotationExprs"), f"{path}.annotationExprs")
    yield from shapes.string_map(template.get("labels"), f"{path}.labels")
    yield from shapes.string_map(template.get("annotations"), f"{path}.annotations")
    if isinstance(context, dict):
        yield from _map_expressions(context.get("dataExprs"), f"{path}.packageContext.dataExprs")
        yield from shapes.string_map(context.get("data"), f"{path}.packageContext.data")
        for name in ("removeKeys", "removeKeyExprs"):
            yield from shapes.string_list(context.get(name), f"{path}.packageContext.{name}")
    elif context is not None:
        yield f"{path}.packageContext must be an object"


def _map_expressions(written: object, path: str) -> Iterator[str]:
    for one in shapes.objects(listed(written), path):
        if isinstance(one, str):
            yield one
            continue
        where, entry = one
        for plain, expression in MAP_EXPRESSIONS:
            if entry.get(plain) is not None and entry.get(expression) is not None:
                yield f"{where} may specify only one of `{plain}` and `{expression}`"
            yield from shapes.text(entry.get(plain), f"{where}.{plain}")
            yield from shapes.text(entry.get(expression), f"{where}.{expression}")
        if entry.get("key") is None and entry.get("keyExpr") is None:
            yield f"{where} must specify either `key` or `keyExpr`"


# --- injectors (17 and 18) ------------------------------------------------------------------------------


def _injectors(written: object, path: str) -> Iterator[str]:
    for one in shapes.objects(listed(written), path):
        if isinstance(one, str):
            yield one
            continue
        where, injector = one
        if injector.get("name") is not None and injector.get("nameExpr") is not None:
            yield f"{where} may specify only one of `name` and `nameExpr`"
        elif not injector.get("name") and not injector.get("nameExpr"):
            yield f"{where} must specify either `name` or `nameExpr`"
        for part in ("group", "version", "kind", "name", "nameExpr"):
            yield from shapes.text(injector.get(part), f"{where}.{part}")


# --- pipeline (19 to 20b) -------------------------------------------------------------------------------


def _pipeline(pipeline: object, path: str) -> Iterator[str]:
    if pipeline is None:
        return
    if not isinstance(pipeline, dict):
        yield f"{path} must be an object"
        return
    for kind in FUNCTION_LISTS:
        for one in shapes.objects(pipeline.get(kind), f"{path}.{kind}"):
            if isinstance(one, str):
                yield one
            else:
                yield from _function(*one)


def _function(path: str, function: Json) -> Iterator[str]:
    if not function.get("image") and not function.get("exec"):
        yield f"{path}.image must not be empty"
    if "." in str(function.get("name") or ""):
        yield f"{path}.name must not contain '.'"
    yield from _map_expressions(function.get("configMapExprs"), f"{path}.configMapExprs")
    for part in _FUNCTION_TEXTS:
        yield from shapes.text(function.get(part), f"{path}.{part}")
    yield from shapes.string_map(function.get("configMap"), f"{path}.configMap")


# --- expressions ----------------------------------------------------------------------------------------


def expression_problem(expression: Written) -> str:
    """Return what is wrong with the text of an expression, with its place before it; empty if nothing is."""
    path, text, variables = expression
    try:
        compile_template_expression(text, variables)
    except CelSyntaxError as error:
        return f"{path}: {syntax_message(error)}"
    return ""


def template_expressions(template: object, path: str) -> Iterator[Written]:
    """Go through the expressions of a template of any shape, in the order in which they are evaluated."""
    template = _object(template)
    downstream, context = _object(template.get("downstream")), _object(template.get("packageContext"))
    for name, variables in (("repoExpr", BEFORE_REPOSITORY), ("packageExpr", VARIABLES)):
        if downstream.get(name):
            yield from _expression(downstream, name, f"{path}.downstream", variables)
    for field in ("labelExprs", "annotationExprs"):
        yield from _map_entries(template.get(field), f"{path}.{field}")
    yield from _map_entries(context.get("dataExprs"), f"{path}.packageContext.dataExprs")
    for place, one in enumerate(_list(context.get("removeKeyExprs"))):
        if isinstance(one, str):
            yield f"{path}.packageContext.removeKeyExprs[{place}]", one, VARIABLES
    for field in ("injectors", "injectorExprs"):
        for where, one in _items(template.get(field), f"{path}.{field}"):
            yield from _expression(one, "nameExpr", where)
    for kind in FUNCTION_LISTS:
        for where, one in _items(_object(template.get("pipeline")).get(kind), f"{path}.pipeline.{kind}"):
            yield from _map_entries(one.get("configMapExprs"), f"{where}.configMapExprs")


def _map_entries(written: object, path: str) -> Iterator[Written]:
    for where, entry in _items(written, path):
        for _, expression in MAP_EXPRESSIONS:
            yield from _expression(entry, expression, where)


def _expression(owner: Json, name: str, path: str, variables: tuple[str, ...] = VARIABLES) -> Iterator[Written]:
    if isinstance(owner.get(name), str):
        yield f"{path}.{name}", owner[name], variables


def _items(written: object, path: str) -> Iterator[tuple[str, Json]]:
    for one in shapes.objects(listed(written), path):
        if not isinstance(one, str):
            yield one


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

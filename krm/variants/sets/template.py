"""A template made ready for thousands of targets: what is written in it stays, what is an expression is evaluated.

For valid templates; one whose expressions do not compile fails when it is filled in. Source: ``variants.md`` 3.3 and 3.4;
C-03, C-04, C-37.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from krm.expressions.cel import CelSyntaxError
from krm.variants.sets.expressions import (
    BEFORE_REPOSITORY,
    VARIABLES,
    ExpressionError,
    TextOf,
    Variables,
    compile_template_expression,
    syntax_message,
    text_of,
)

Json = dict[str, Any]
Section = Callable[[Variables], Any]
"""Gives a part of the spec, or None where there is none."""
Names = tuple[str, ...]

COPIED: Final = ("adoptionPolicy", "deletionPolicy", "approval")
"""Fields that are copied as they are."""
MAP_EXPRESSIONS: Final = (("key", "keyExpr"), ("value", "valueExpr"))
FUNCTION_LISTS: Final = ("validators", "mutators")
"""In the order in which they are evaluated."""


class TemplateError(Exception):
    """An expression of a template has no value for a target; the text says where it stands, and why."""


class Template:
    """A template, its expressions compiled."""

    def __init__(self, template: Json) -> None:
        downstream = template.get("downstream") or {}
        self.repo = _downstream(downstream, "repo", BEFORE_REPOSITORY)
        """None where the default holds."""
        self.package = _downstream(downstream, "package", VARIABLES)
        self.needs_repository = not downstream.get("package") and bool(downstream.get("packageExpr"))
        """Whether the package is known only after the repository."""
        self.constants = {name: template[name] for name in COPIED if template.get(name) not in (None, "")}
        """Parts of the spec that are the same for all targets."""
        self.sections: list[tuple[str, Section]] = []
        """Parts of the spec that may differ from target to target, in the order in which they are evaluated."""
        for name, section in _sections(template):
            if _has_expressions(template, name):
                self.sections.append((name, section))
            else:
                self.constants[name] = section({})


def listed(value: Any) -> list[Any]:
    """Return a list; what is written alone stands for a list of one (C-03)."""
    return [] if value is None else [value] if isinstance(value, dict) else value


def _has_expressions(template: Json, name: str) -> bool:
    """Tell whether a part of the spec comes from expressions, at least in part."""
    written = template.get(name) or {}
    if name in ("labels", "annotations"):
        return bool(template.get(f"{name[:-1]}Exprs"))
    if name == "packageContext":
        return bool(written.get("dataExprs") or written.get("removeKeyExprs"))
    if name == "injectors":
        every = [*listed(written), *listed(template.get("injectorExprs"))]
        return any("nameExpr" in one for one in every)
    return any("configMapExprs" in one for kind in FUNCTION_LISTS for one in written.get(kind) or ())


def _downstream(downstream: Json, name: str, variables: Names) -> TextOf | None:
    written, expression = downstream.get(name), downstream.get(f"{name}Expr")
    if not written and not expression:
        return None
    return _text(written, None if written else expression, f"template.downstream.{name}Expr", variables)


def _text(written: str | None, expression: str | None, path: str, variables: Names = VARIABLES) -> TextOf:
    """Return the text of two fields of which at most one is there, as a function that raises TemplateError."""
    if expression is None:
        constant = written or ""
        return lambda _variables: constant
    try:
        evaluated = text_of(compile_template_expression(expression, variables))
    except CelSyntaxError as error:
        return partial(_broken, f"{path}: {syntax_message(error)}")

    def text(variables: Variables) -> str:
        try:
            return evaluated(variables)
        except ExpressionError as error:
            raise TemplateError(f"{path}: {error}") from error

    return text


def _broken(message: str, _variables: Variables) -> str:
    raise TemplateError(message)


def _sections(template: Json) -> Iterator[tuple[str, Section]]:
    for name, expressions in (("labels", "labelExprs"), ("annotations", "annotationExprs")):
        if overlay := _overlay(template.get(name), template.get(expressions), f"template.{expressions}"):
            yield name, overlay
    if (context := template.get("packageContext")) is not None:
        yield "packageContext", _context(context)
    injectors = [*_injectors(template, "injectors"), *_injectors(template, "injectorExprs")]
    if injectors:
        yield "injectors", _in_order(injectors)
    if (pipeline := template.get("pipeline")) is not None and any(pipeline.get(one) for one in FUNCTION_LISTS):
        yield "pipeline", _pipeline(pipeline)


# --- maps ---------------------------------------------------------------------------------------------


def _overlay(written: Json | None, expressions: Any, path: str) -> Section | None:
    """Return the map with what expressions put over it; an empty one is none."""
    constant = dict(written or {})
    entries = [_entry(one, f"{path}[{place}]") for place, one in enumerate(listed(expressions))]
    if not entries:
        return (lambda _variables: constant) if constant else None

    def overlaid(variables: Variables) -> Json:
        result = constant.copy()
        for key, value in entries:
            name = key(variables)
            result[name] = value(variables)
        return result

    return overlaid


def _entry(written: Json, path: str) -> tuple[TextOf, TextOf]:
    key, value = (
        _text(written.get(plain), written.get(expression), f"{path}.{expression}")
        for plain, expression in MAP_EXPRESSIONS
    )
    return key, value


def _context(written: Json) -> Section:
    data = _overlay(written.get("data"), written.get("dataExprs"), "template.packageContext.dataExprs")
    constant = sorted(set(written.get("removeKeys") or ()))
    more = [
        _text(None, expression, f"template.packageContext.removeKeyExprs[{place}]")
        for place, expression in enumerate(written.get("removeKeyExprs") or ())
    ]

    def context(variables: Variables) -> Json:
        result: Json = {}
        if data is not None:
            result["data"] = data(variables)
        keys = sorted({*constant, *(one(variables) for one in more)}) if more else constant
        if keys:
            result["removeKeys"] = keys
        return result

    return context


# --- lists --------------------------------------------------------------------------------------------


def _in_order(parts: list[Section]) -> Section:
    return lambda variables: [part(variables) for part in parts]


def _injectors(template: Json, field: str) -> list[Section]:
    return [
        _injector(one, f"template.{field}[{place}].nameExpr") for place, one in enumerate(listed(template.get(field)))
    ]


def _injector(written: Json, path: str) -> Section:
    kind = {part: written[part] for part in ("group", "version", "kind") if written.get(part) is not None}
    name = _text(written.get("name"), written.get("nameExpr"), path)
    return lambda variables: {**kind, "name": name(variables)}


def _pipeline(written: Json) -> Section:
    lists = [
        (kind, [_function(one, f"template.pipeline.{kind}[{place}]") for place, one in enumerate(written[kind])])
        for kind in FUNCTION_LISTS
        if written.get(kind)
    ]
    return lambda variables: {kind: [function(variables) for function in functions] for kind, functions in lists}


def _function(written: Json, path: str) -> Section:
    constant = {key: value for key, value in written.items() if key not in ("configMap", "configMapExprs")}
    config = _overlay(written.get("configMap"), written.get("configMapExprs"), f"{path}.configMapExprs")
    if config is None:
        return lambda _variables: constant
    return lambda variables: {**constant, "configMap": config(variables)}

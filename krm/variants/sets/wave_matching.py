"""Which wave of a rollout a target is in. Source: ``variants.md`` 6.2."""

from collections.abc import Mapping
from typing import Any, Final

from krm.expressions.cel import CelSyntaxError, Expression
from krm.variants.sets.expressions import (
    ExpressionError,
    compile_template_expression,
    evaluate,
    syntax_message,
    wrong_kind,
)
from krm.variants.sets.template import TemplateError

Json = dict[str, Any]

WAVES: Final = "Waves"
"""The strategy that has waves."""


class WaveMatching:
    """The expressions of a rollout's waves, compiled."""

    def __init__(self, rollout: Json) -> None:
        written = rollout.get("waves") or [] if rollout.get("strategy") == WAVES else []
        self._waves = [_compiled(one.get("match"), place) for place, one in enumerate(written)]

    def place(self, variables: Mapping[str, Any]) -> int:
        """Return the place of the first wave that a target is in; -1 if it is in none.

        Raises:
            TemplateError: an expression has no value, or is no condition.
        """
        for place, match in enumerate(self._waves):
            if match is None or _holds(match, place, variables):
                return place
        return -1


def _compiled(match: str | None, place: int) -> Expression | str | None:
    """Return the expression, or what is wrong with it; None where everything is in the wave."""
    if not match:
        return None
    try:
        return compile_template_expression(match)
    except CelSyntaxError as error:
        return f"rollout.waves[{place}].match: {syntax_message(error)}"


def _holds(match: Expression | str, place: int, variables: Mapping[str, Any]) -> bool:
    if isinstance(match, str):
        raise TemplateError(match)
    try:
        value = evaluate(match, variables)
        if not isinstance(value, bool):
            raise wrong_kind(value, "boolean")
    except ExpressionError as error:
        raise TemplateError(f"rollout.waves[{place}].match: {error}") from error
    return value

"""The expressions of templates: which variables and functions they have, what they may cost, what they must give.

Source: ``variants.md`` 3.4, 6.12 and 7.2; C-25, C-26, C-39.
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from krm.expressions import texts
from krm.expressions.cel import (
    Budget,
    CelBudgetError,
    CelError,
    CelEvaluationError,
    CelSyntaxError,
    Expression,
    Function,
    compile_expression,
)
from krm.expressions.paths import Path
from krm.expressions.types import STRING
from krm.meta.names import LABEL_LENGTH

MAX_LENGTH: Final = 4096
"""Characters of an expression."""
MAX_NESTED_LOOPS: Final = 2
MAX_STEPS: Final = 50_000
"""Of one evaluation, about a microsecond each."""
MAX_SECONDS: Final = 0.1
"""Of the processor, for one evaluation: a machine that is busy with other things fails no expression."""
MAX_RESULT: Final = 65_536
"""Characters of a text that an expression gives."""
MAX_REMEMBERED: Final = 4096
"""Results of one expression that are kept while a set is rendered."""
_STEPS_BETWEEN: Final = 256
"""Steps between two looks at the clock."""
_SHOWN: Final = 200
"""Characters of a wrong value that a message repeats."""

BEFORE_REPOSITORY: Final = ("packageDefault", "repoDefault", "target", "upstream")
"""Variables of ``repoExpr``: the repository is not known yet."""
VARIABLES: Final = (*BEFORE_REPOSITORY, "repository")
_TYPES: Final = {"repoDefault": STRING, "packageDefault": STRING}
_NO_LABEL: Final = re.compile(r"[^-a-z0-9]")
_STUB: Final = 54
"""Characters before the hyphen and the hash of a long label."""


Variables = Mapping[str, Any]
TextOf = Callable[[Variables], str]


class ExpressionError(Exception):
    """An expression does not compile, has no value, costs too much, or gives what is not wanted; the text says what."""


def dns_label(text: Any) -> str:
    """Make a DNS label of any text: what no label may contain becomes a hyphen, and a hash ends what is too long.

    Raises:
        CelEvaluationError: nothing of the text is left, or it is no text.
    """
    if not isinstance(text, str):
        raise CelEvaluationError("no such overload")
    label = _NO_LABEL.sub("-", text.lower()).strip("-")
    if not label:
        raise CelEvaluationError(f"no DNS label can be made of {texts.shown([text])[1:-1]}")
    if len(label) <= LABEL_LENGTH:
        return label
    hashed = hashlib.sha1(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()
    return f"{label[:_STUB]}-{hashed[: LABEL_LENGTH - _STUB - 1]}"


FUNCTIONS: Final = {"dnsLabel": Function(((("string",), "string"),), dns_label)}
"""What templates have besides the functions of Kubernetes' validation rules."""


@lru_cache(maxsize=4096)
def compile_template_expression(text: str, variables: tuple[str, ...] = VARIABLES) -> Expression:
    """Compile an expression of a template that may refer to ``variables``; the same is compiled once.

    Raises:
        CelSyntaxError: it does not compile, or is longer or more deeply nested than expressions may be.
    """
    if len(text) > MAX_LENGTH:
        raise CelSyntaxError(f"expression is limited to {MAX_LENGTH} characters")
    types = {name: kind for name, kind in _TYPES.items() if name in variables}
    expression = compile_expression(text, variables, types, FUNCTIONS)
    if expression.nested_loops() > MAX_NESTED_LOOPS:
        raise CelSyntaxError(f"expression is limited to {MAX_NESTED_LOOPS} loops inside one another")
    return expression


def syntax_message(error: CelSyntaxError) -> str:
    """Return what is wrong with an expression's text, and where, in one line."""
    return f"line {error.line} column {error.column}: {error.message}"


def evaluate(expression: Expression, variables: Variables) -> Any:
    """Return the value of an expression within the limits of templates.

    Raises:
        ExpressionError: it has none, or costs too much.
    """
    try:
        return expression.evaluate(variables, _Limits())
    except CelBudgetError as error:
        raise ExpressionError(f"expression costs too much: {error}") from error
    except CelError as error:
        raise ExpressionError(str(error)) from error


def wrong_kind(value: Any, wanted: str) -> ExpressionError:
    """Return the error of an expression whose value is not of the kind that is ``wanted``: string, boolean."""
    shown = texts.shown(value)
    return ExpressionError(
        f"expression returned non-{wanted} value: {shown if len(shown) <= _SHOWN else f'{shown[:_SHOWN]}…'}"
    )


def text_of(expression: Expression) -> TextOf:
    """Return an expression that gives a text as a function of its variables, equal inputs being evaluated once.

    The function raises ExpressionError when there is no value, one that is no text or a very long one, or when it costs
    too much. It remembers ``MAX_REMEMBERED`` results: make another one for another rendering.
    """
    paths = expression.paths()
    if paths is None:
        return partial(_text, expression)
    return _followed(expression, paths[0]) if expression.is_path else _remembered(expression, paths)


def _text(expression: Expression, variables: Variables) -> str:
    value = evaluate(expression, variables)
    if not isinstance(value, str):
        raise wrong_kind(value, "string")
    if len(value) > MAX_RESULT:
        raise ExpressionError(f"expression returned more than {MAX_RESULT} characters")
    return value


def _followed(expression: Expression, path: Path) -> TextOf:
    """Look at the end of a path; the evaluator says what is wrong with it."""

    def text(variables: Variables) -> str:
        value: Any = variables
        try:
            for key in path:
                value = value[key]
        except (KeyError, TypeError):
            return _text(expression, variables)
        return value if type(value) is str and len(value) <= MAX_RESULT else _text(expression, variables)

    return text


def _remembered(expression: Expression, paths: tuple[Path, ...]) -> TextOf:
    results: dict[tuple[Any, ...], str] = {}

    def text(variables: Variables) -> str:
        inputs: list[Any] = []
        for path in paths:
            value: Any = variables
            try:
                for key in path:
                    value = value[key]
            except (KeyError, TypeError):  # a key is missing, or a text is no map
                value = _end(variables, path)
            if type(value) is dict:  # more than a text decides
                return _text(expression, variables)
            inputs.append(value)
        decisive = tuple(inputs)
        found = results.get(decisive)
        if found is None:
            found = _text(expression, variables)
            if len(results) < MAX_REMEMBERED:
                results[decisive] = found
        return found

    return text


def _end(variables: Variables, path: Path) -> tuple[int, bool]:
    """Return how far a path leads, and whether it ends at a text rather than at a missing key."""
    value: Any = variables
    for depth, key in enumerate(path):
        if not isinstance(value, Mapping) or key not in value:
            return depth, isinstance(value, str)
        value = value[key]
    return len(path), False


class _Limits(Budget):
    """Steps, and time of the processor."""

    __slots__ = ("_ends", "_look")

    def __init__(self) -> None:
        super().__init__(MAX_STEPS)
        self._look = MAX_STEPS - _STEPS_BETWEEN
        self._ends = 0.0

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < self._look:
            self._checked()

    def _checked(self) -> None:
        if self.left < 0:
            super().spend(0)
        self._look = self.left - _STEPS_BETWEEN
        now = time.thread_time()
        if not self._ends:
            self._ends = now + MAX_SECONDS
        elif now > self._ends:
            raise CelBudgetError(f"operation cancelled: it takes more than {MAX_SECONDS:g} s")

"""The page about expressions in templates: each of its examples gives what stands beside it, and its limits are those of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from krm.expressions.cel import CelSyntaxError
from krm.expressions.functions import FUNCTIONS, METHODS
from krm.variants.sets import expressions
from krm.variants.sets.expressions import (
    ExpressionError,
    compile_template_expression,
    syntax_message,
    text_of,
)

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "template-expressions.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\| `([^|]*)` \| `(.*)` \|$", PAGE, re.MULTILINE)


def variables() -> dict[str, Any]:
    (written,) = re.findall(r"^```yaml variables\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    found: dict[str, Any] = yaml.safe_load(written)
    return found


@pytest.mark.parametrize(("expression", "gives"), EXAMPLES)
def test_an_example_gives_what_the_page_says(expression: str, gives: str) -> None:
    try:
        found = text_of(compile_template_expression(expression))(variables())
    except CelSyntaxError as error:
        found = syntax_message(error)
    except ExpressionError as error:
        found = str(error)

    assert found == gives


def test_the_page_has_examples_of_each_table() -> None:
    assert len(EXAMPLES) == 25
    assert set(variables()) == set(expressions.VARIABLES)


def test_functions_that_the_page_names_exist() -> None:
    rows = re.findall(r"^\| (?:texts|lists|conversions|networks[^|]*) \| (.*) \|$", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row) if "." not in name}

    assert len(named) > 30
    assert named - FUNCTIONS.keys() - METHODS.keys() == set()


@pytest.mark.parametrize(
    "limit",
    [
        f"| {expressions.MAX_LENGTH:,} characters | an expression |",
        f"| {expressions.MAX_NESTED_LOOPS} | loops",
        f"| {expressions.MAX_SECONDS:g} s of the processor, {expressions.MAX_STEPS:,} steps | one evaluation |",
        f"| {expressions.MAX_RESULT:,} characters | a result |",
    ],
)
def test_limits_are_those_of_the_code(limit: str) -> None:
    assert limit in PAGE

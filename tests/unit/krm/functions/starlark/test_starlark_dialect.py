import pytest
from starlark_runs import error_of, printed

from krm.functions.catalog.starlark.dialect import translate


@pytest.mark.parametrize(
    "loop",
    [
        "while x < 3:\n  x += 1",
        "while x < 3: x += 1",
        "while True:\n  if x == 3: break\n  x += 1",
        "while x < 3: # while true:\n\n  # comment\n  x += 1",
        "while (x <\n  3):\n  x += 1",
        "while (lambda: x < 3)():\n  x += 1",
        "while x < len({'a:': 1, \"while\": 2, '''b''': 3}): x += 1",
        "y = 0\nwhile x < 3:\n  while y < 5:\n    y += 1\n  x += 1\n  continue",
        "if x == 0:\n\twhile x < 3:\n\t\tx += 1",
    ],
)
def test_while_loops_run_until_their_condition_is_false(loop: str) -> None:
    assert printed(f"x = 0\n{loop}\nprint(x)") == "3"


def test_while_loops_in_functions_return_and_see_local_names() -> None:
    assert printed("def f(n):\n  while True:\n    n += 1\n    if n > 5:\n      return n\nprint(f(0))") == "6"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("while True:\n  undefined()", 2),
        ("while True: undefined()", 1),
        ("while undefined():\n  pass", 1),
        ("while (True and\n  True):\n  undefined()", 3),
        ("x = 0\nwhile x < 1:\n  x += 1\nwhile x < 2:\n  x += 1\nundefined()", 6),
    ],
)
def test_errors_are_reported_at_the_line_the_author_wrote(source: str, line: int) -> None:
    assert error_of(source).startswith(f"script:{line}:")


@pytest.mark.parametrize(
    "source",
    [
        "x = 'while True:'",
        "# while True:\nx = 1",
        "meanwhile = 1",
        "x = {'while': 1}",
        "while",
        "while x",
        "'''\nwhile y: z\n'''",
    ],
)
def test_other_uses_of_the_word_stay(source: str) -> None:
    assert translate(source).text == source


@pytest.mark.parametrize(
    "source",
    [
        "if True:\n\tprint(3)",
        "x =\t1\nprint(\n\tx + 2)",
        "if True:\n        if True:\n\t\tprint(3)",
        "def f():\n\twhile True:\n\t\treturn 3\nprint(f())",
        'print(len("""\t\n\t"""))',
    ],
)
def test_tabs_are_white_space_and_stay_in_strings(source: str) -> None:
    assert printed(source) == "3"


def test_rewriting_is_linear() -> None:
    source = "while True: pass\n" * 20_000 + "while " * 20_000

    assert translate(source).original_line(60_001) > 20_000

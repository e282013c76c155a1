"""Runs one script on one list of resources. Source: ``kpt.md`` 4.9, ``libraries.md`` 5.

Knows nothing of processes and limits: the worker around it is killed when a script takes too much of anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import starlark

from krm.functions.catalog.starlark.dialect import translate
from krm.functions.catalog.starlark.libraries import load_library
from krm.functions.catalog.starlark.library import DIALECT, OWN_GLOBALS
from krm.functions.catalog.starlark.messages import SCRIPT, Report
from krm.functions.catalog.starlark.prelude import AFTER, BEFORE

_PRINTED = 64 << 10
"""Characters of output that are kept."""
_CALLS = 2000
"""Depth of calls; each takes about a kilobyte of the process' stack."""

Numbers = list[tuple[list[Any], str]]
"""Integers and floats that JSON cannot hold: the path to each, and its text."""


@dataclass(slots=True)
class Script:
    """What to run, and on what."""

    program: str
    """The script's name in messages."""
    source: str
    document: str
    """The resource list as JSON."""
    numbers: Numbers = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What came of it: the items afterwards, or why there are none."""

    items: str = "[]"
    """As JSON."""
    numbers: Numbers = field(default_factory=list)
    error: str = ""
    printed: str = ""


def evaluate(script: Script) -> Outcome:
    """Run ``script``; its own failures are told in the outcome, never raised."""
    return _Evaluation(script).run()


def _open_api() -> str:
    from krm.functions.catalog.schemas.openapi import kubernetes_text  # few scripts ask for it

    return kubernetes_text()


class _Evaluation:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._printed: list[str] = []
        self._room = _PRINTED
        self._failure: str | None = None
        self._module = starlark.Module()
        self._module["_document"] = script.document
        self._module["_numbers"] = script.numbers
        self._module["_open_api"] = _open_api() if "open_api" in script.source else "{}"
        self._module.add_callable("_print", self._print)
        self._module.add_callable("_fail", self._fail)

    def run(self) -> Outcome:
        script = translate(self._script.source)
        try:
            self._evaluate("prelude", BEFORE, OWN_GLOBALS)
            self._evaluate(SCRIPT, script.text, starlark.Globals.standard())
            result = self._evaluate("result", AFTER, OWN_GLOBALS)
        except starlark.StarlarkError as error:
            return Outcome(error=self._message(str(error), script.original_line), printed="\n".join(self._printed))
        match result:
            case [str(items), list(numbers)]:
                return Outcome(items, numbers, printed="\n".join(self._printed))
        return Outcome(error=f"{self._script.program}: names that begin with an underscore belong to the interpreter")

    def _evaluate(self, name: str, text: str, available: starlark.Globals) -> Any:
        options = starlark.EvalOptions(max_callstack_size=_CALLS)
        loader = starlark.FileLoader(load_library)
        parsed = starlark.parse(name, text, DIALECT)
        return starlark.eval_with(options, self._module, parsed, available, loader).value

    def _print(self, text: str) -> None:
        if self._room <= 0:
            return
        self._printed.append(text[: self._room])
        self._room -= len(text) + 1
        if self._room <= 0:
            self._printed.append(f"(output is cut off after {_PRINTED} characters)")

    def _fail(self, text: str) -> None:
        self._failure = text
        raise RuntimeError(text)

    def _message(self, report: str, original_line: Callable[[int], int]) -> str:
        if self._failure is not None:
            return self._failure
        parts = Report(report)
        return parts.message(self._script.program, original_line(parts.line) if parts.line else 0)

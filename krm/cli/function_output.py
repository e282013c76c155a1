"""What the commands print of functions on standard error while they run. Source: ``kpt.md`` 2.10."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from krm.functions.go_text import quoted
from krm.functions.step_record import StepRecord

_SHOWN_LINES = 4
"""Lines of one function's results, and of its standard error, unless all are asked for."""
_TENTHS = 10
"""Durations are shown in tenths of a second."""
_SECONDS_PER_MINUTE = 60
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What could drive the terminal: function output is not to be trusted with it."""


@dataclass(slots=True)
class FunctionOutput:
    """Prints the packages, functions and results of one run; an observer of renders."""

    stream: TextIO
    root: str = ""
    """The display name of the root package; empty where functions run on no package in particular."""
    truncate: bool = True
    packages: int = field(default=0, init=False)
    succeeded: int = field(default=0, init=False)
    _is_blank: bool = field(default=True, init=False)
    """Whether the last line was."""

    def enters(self, package: str) -> None:
        """Print the package's title."""
        if not self._is_blank:
            self._print("")
        self.packages += 1
        self._print(f'Package "{self._display(package)}":')

    def starts(self, record: StepRecord) -> None:
        """Print that the function runs, and on what."""
        on = "" if record.selected is None else f" on {record.selected} resource(s)"
        on += f' on package "{self._display(record.package)}"' if self.root else ""
        self._print(f"[RUNNING] {_name(record)}{on}")

    def ends(self, record: StepRecord) -> None:
        """Print how the function went, and what it reported."""
        self.succeeded += not record.exit_code
        verdict = "FAIL" if record.exit_code else "PASS"
        self._print(f"[{verdict}] {_name(record)} in {_duration(record.seconds)}")
        if record.results:
            self._block("[Results]", [result_line(result) for result in record.results])
        if record.stderr.strip():
            self._block("Stderr", record.stderr.strip("\n").split("\n"))
        if record.exit_code:
            self._print(f"  Exit code: {record.exit_code}")
            self._print("")

    def summary(self, *, failed: bool) -> None:
        """Print how many functions ran in how many packages."""
        if not self._is_blank:
            self._print("")
        if not failed:
            self._print(f"Successfully executed {self.succeeded} function(s) in {self.packages} package(s).")
        elif self.succeeded:
            self._print(f"Partially executed {self.succeeded} function(s) in {self.packages} package(s).")
        else:
            self._print(f"Failed to execute any functions in {self.packages} package(s).")

    def _display(self, package: str) -> str:
        return f"{self.root}/{package}" if package else self.root

    def _block(self, title: str, lines: Sequence[str]) -> None:
        self._print(f"  {title}:")
        shown = lines[:_SHOWN_LINES] if self.truncate else lines
        for line in shown:
            self._print(f"    {line.strip()}")
        if left := len(lines) - len(shown):
            self._print(f"    ...({left} line(s) truncated, use '--truncate-output=false' to disable)")

    def _print(self, line: str) -> None:
        self._is_blank = not line
        print(_CONTROL.sub("", line), file=self.stream, flush=True)


def result_line(result: Mapping[str, Any]) -> str:
    """Return one result in a line: severity, resource, field, message."""
    line = f"[{result.get('severity') or 'info'}]"
    if reference := result.get("resourceRef"):
        line += " " + "/".join(_reference_parts(reference))
    if place := (result.get("field") or {}).get("path"):
        line += f" {place}"
    return " ".join(f"{line}: {result.get('message', '')}".split("\n"))


def _reference_parts(reference: Mapping[str, Any]) -> Iterator[str]:
    for name in ("apiVersion", "kind", "namespace", "name"):
        if reference.get(name):
            yield str(reference[name])


def _name(record: StepRecord) -> str:
    return quoted(record.image or record.function.exec)


def _duration(seconds: float) -> str:
    """Write a duration as Go does, to a tenth of a second, so that short runs print the same every time."""
    minutes, rest = divmod(int(seconds * _TENTHS) / _TENTHS, _SECONDS_PER_MINUTE)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"

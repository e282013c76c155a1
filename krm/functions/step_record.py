"""What one executed step of a pipeline reports. Source: ``kpt.md`` 2.9 and 2.10."""

from dataclasses import dataclass, field
from typing import Any

from krm.package.kptfile import Function


@dataclass(slots=True)
class StepRecord:
    """One step: what ran, on what, and how it went; filled in while it runs."""

    function: Function
    image: str = ""
    """The full reference; empty for a command."""
    exit_code: int = 0
    execution_error: str = ""
    """Why it could not run, or what was wrong with its output; empty when the function itself failed."""
    stderr: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)
    package: str = ""
    """The path of the package whose pipeline it belongs to, relative to the root package."""
    selected: int | None = None
    """How many resources its selectors chose; None without selectors and exclusions."""
    seconds: float = 0.0
    """How long it took."""
    is_validator: bool = False
    has_run: bool = False
    """Whether the function itself was started."""

    @property
    def title(self) -> str:
        """What the step is called in summaries."""
        return self.function.name or self.image or self.function.exec

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The results of severity error."""
        return [result for result in self.results if result.get("severity") == "error"]

    def fail(self, problem: str) -> None:
        """Note that the step failed for a reason that is not the function's own."""
        self.execution_error, self.exit_code = problem, 1

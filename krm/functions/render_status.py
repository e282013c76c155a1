"""What a render reports: for the API as a FunctionResultList, for the Kptfile as ``status.renderStatus``.

Source: ``kpt.md`` 2.9 and 2.12, ``porch-api.md`` 1.5.
"""

from collections.abc import Sequence
from typing import Any

from krm.functions.step_record import StepRecord

Json = dict[str, Any]


def result_list(steps: Sequence[StepRecord]) -> Json:
    """Return the FunctionResultList of the steps that ran; empty when none did."""
    if not steps:
        return {}
    return {
        "apiVersion": "kpt.dev/v1",
        "kind": "FunctionResultList",
        "metadata": {"name": "fnresults"},
        "exitCode": max(step.exit_code for step in steps),
        "items": [_item(step) for step in steps],
    }


def render_status(steps: Sequence[StepRecord]) -> Json | None:
    """Return ``status.renderStatus`` of a Kptfile; None when no function ran."""
    status: Json = {}
    for key, members in (
        ("mutationSteps", [step for step in steps if not step.is_validator]),
        ("validationSteps", [step for step in steps if step.is_validator]),
    ):
        if members:
            status[key] = [_step(step) for step in members]
    if failed := [step for step in steps if step.exit_code]:
        status["errorSummary"] = "\n".join(map(summary, failed))
    return status or None


def summary(step: StepRecord) -> str:
    """Say in a line how a step failed."""
    return f"{step.title}: {step.execution_error or f'exit code {step.exit_code}'}"


def failure_report(chain: str, steps: Sequence[StepRecord]) -> str:
    """Return the chain of causes, and what the functions that failed said: the chain itself leaves that out."""
    details = [line for step in steps if step.exit_code for line in _details(step)]
    return "\n".join([chain.rstrip("\n"), *(line for line in details if line not in chain)])


def _details(step: StepRecord) -> list[str]:
    errors = [str(result.get("message")) for result in step.errors]
    return [summary(step)] + [f"  [error] {message}" for message in errors] + ([step.stderr] if step.stderr else [])


def _item(step: StepRecord) -> Json:
    item: Json = {"image": step.image} if step.image else {"exec": step.function.exec}
    if stderr := step.stderr or step.execution_error:
        item["stderr"] = stderr
    item["exitCode"] = step.exit_code
    if step.results:
        item["results"] = step.results
    return item


def _step(step: StepRecord) -> Json:
    fields: Json = {
        "name": step.function.name,
        "image": step.image,
        "exec": step.function.exec,
        "executionError": step.execution_error,
        "stderr": step.stderr,
        "exitCode": step.exit_code,
        "results": step.results,
        "errorResults": step.errors,
    }
    return {key: value for key, value in fields.items() if value or key == "exitCode"}

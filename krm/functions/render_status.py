"""What a render reports: for the API as a FunctionResultList, for the Kptfile as ``status.renderStatus``.

Source: ``kpt.md`` 2.9 and 2.12, ``porch-api.md`` 1.5.
"""

from collections.abc import Sequence
from typing import Any

from krm.functions.steps import StepRecord

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


def render_status(mutations: Sequence[StepRecord], validations: Sequence[StepRecord]) -> Json | None:
    """Return ``status.renderStatus`` of a Kptfile; None when no function ran."""
    status: Json = {}
    if mutations:
        status["mutationSteps"] = [_step(step) for step in mutations]
    if validations:
        status["validationSteps"] = [_step(step) for step in validations]
    failed = [step for step in (*mutations, *validations) if step.exit_code]
    if failed:
        status["errorSummary"] = "\n".join(map(summary, failed))
    return status or None


def summary(step: StepRecord) -> str:
    """Say in a line how a step failed."""
    return f"{step.title}: {step.execution_error or f'exit code {step.exit_code}'}"


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

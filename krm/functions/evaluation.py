"""Running one function on the resources of a folder or a stream, outside any pipeline. Source: ``kpt.md`` 2.16."""

from typing import Any

from krm.functions.images import DEFAULT_PREFIX
from krm.functions.pipeline_check import Step
from krm.functions.progress import Observer, Silence
from krm.functions.resource import Resource
from krm.functions.runner import CommandRunner, FunctionConfig, FunctionRunner
from krm.functions.step_record import StepRecord
from krm.functions.steps import StepFailed, StepRunner, krm_problem_of
from krm.package.documents import read_file
from krm.package.kptfile import Function
from krm.package.resource_identity import krm_problem
from krm.package.yaml_reader import YamlError, read_documents


class InvalidConfig(ValueError):
    """A function's configuration cannot be one."""


class InputRefused(StepFailed):
    """Something among the items is no KRM resource; the function did not run."""


def evaluate(
    items: list[Resource],
    function: Function,
    config: FunctionConfig,
    *,
    runner: FunctionRunner,
    commands: CommandRunner | None = None,
    observer: Observer | None = None,
    image_prefix: str = DEFAULT_PREFIX,
) -> tuple[list[Resource], StepRecord]:
    """Run ``function`` on those of ``items`` that it selects; return all of them afterwards, and the record.

    Raises:
        InputRefused: see there.
        StepFailed: the function cannot be run, failed, or returned what it must not.
    """
    step = Step(function, is_validator=False, place=0)
    steps = StepRunner(runner, commands, None, observer or Silence(), image_prefix=image_prefix)
    if problem := krm_problem_of(items, "input"):
        raise InputRefused(problem, steps.refuse(step, "", problem))
    return steps.run(steps.prepare(step, ""), items, config)


def inline_config(values: dict[str, str], kind: str = "ConfigMap") -> FunctionConfig:
    """Return a configuration made of names and values; without any it is there too, but empty."""
    data: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "function-input"}}
    if values:
        data["data"] = dict(values)
    return FunctionConfig(data, typed=data)


def file_config(text: bytes, path: str) -> FunctionConfig:
    """Return the configuration that a file holds; ``path`` is the file's, for messages and for the function.

    Raises:
        InvalidConfig: the file is not one KRM resource.
    """
    try:
        documents = [document for document in read_file(text)[1] if document.data is not None]
        as_text = read_documents(text, as_text=True)
    except YamlError as error:
        raise InvalidConfig(f'functionConfig "{path}": {error}') from None
    if len(documents) != 1:
        raise InvalidConfig(f'functionConfig "{path}" must contain one config, got {len(documents)}')
    typed = documents[0].data
    if problem := krm_problem(typed, path):
        raise InvalidConfig(f'functionConfig "{path}": {problem}')
    return FunctionConfig(as_text[0], path, typed=typed, text=documents[0].text)

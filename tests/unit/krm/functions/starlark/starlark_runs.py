"""Running one script on documents, for the tests beside this module."""

from typing import Any

from krm.functions.builtins import BuiltinRunner
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.yaml_reader import read_document

IMAGE = "ghcr.io/kptdev/krm-functions-catalog/starlark:v0.5.5"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: value\n"


def resources(*texts: str) -> list[Resource]:
    return [
        Resource.of_document(read_document(text), text, path=f"{number}.yaml", index=0)
        for number, text in enumerate(texts)
    ]


def starlark_run(source: str, **more: Any) -> FunctionConfig:
    data = {
        "apiVersion": "fn.kpt.dev/v1alpha1",
        "kind": "StarlarkRun",
        "metadata": {"name": "script"},
        "source": source,
    }
    return FunctionConfig(data | more, typed=data | more)


def run(source: str, *texts: str, image: str = IMAGE, **more: Any) -> FunctionResult:
    return BuiltinRunner().run(image, ResourceList(resources(*texts), starlark_run(source, **more)))


def error_of(source: str, *texts: str) -> str:
    """The message of the one error that the script must end with."""
    result = run(source, *texts)
    assert result.exit_code == 1
    assert len(result.results) == 1
    assert result.results[0]["severity"] == "error"
    return str(result.results[0]["message"])


def printed(source: str) -> str:
    """What a script that must succeed prints."""
    result = run(source)
    assert result.results == []
    return result.stderr

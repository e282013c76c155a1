"""Running a built-in function on a text of documents."""

from collections.abc import Mapping
from typing import Any

from krm.functions.builtins import BuiltinRunner
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.documents import read_file
from krm.package.yaml_reader import read_document

CATALOG = "ghcr.io/kptdev/krm-functions-catalog/"


def resources_of(text: str, path: str = "resources.yaml") -> list[Resource]:
    documents = [document for document in read_file(text.encode())[1] if document.data is not None]
    return [
        Resource.of_document(document.data, document.text, path=path, index=index)
        for index, document in enumerate(documents)
    ]


def inline_config(data: Mapping[str, str]) -> FunctionConfig:
    """A configuration as a Kptfile's ``configMap`` gives it."""
    metadata = {"name": "function-input"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}
    return FunctionConfig(config, typed=config)


def config_of(text: str, path: str = "fn-config.yaml") -> FunctionConfig:
    """A configuration as it is read from a file."""
    return FunctionConfig(read_document(text, as_text=True), path, typed=read_document(text), text=text)


def run_function(image: str, items: list[Resource], config: FunctionConfig | None = None) -> FunctionResult:
    name = image if "/" in image else CATALOG + image
    return BuiltinRunner().run(name, ResourceList(list(items), config))


def text_after(image: str, text: str, config: FunctionConfig | None = None) -> str:
    """Run a function that succeeds and return the documents it leaves."""
    result = run_function(image, resources_of(text), config)
    assert result.exit_code == 0, result.results
    return "---\n".join(item.text() for item in result.items)


def messages(result: FunctionResult) -> list[str]:
    return [item["message"] for item in result.results]


def failure(image: str, text: str, config: FunctionConfig | None = None) -> tuple[list[dict[str, Any]], str]:
    """Run a function that fails and return its results and what it prints."""
    result = run_function(image, resources_of(text), config)
    assert result.exit_code == 1
    return result.results, result.stderr

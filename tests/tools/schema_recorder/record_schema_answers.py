"""Records the answers of ``tests/data/kube_schema`` again: the questions stay, the answers are Kubernetes'.

Run as ``python tests/tools/schema_recorder/record_schema_answers.py``; needs Go, and the modules that ``go.sum`` names.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "data" / "kube_schema"
BASE: Json = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "thing"}}


def main() -> None:
    """Ask for every case of every file, and write what was answered beside it."""
    for name in ("custom_resources", "generated_resources", "validation_rules"):
        cases = read(name)
        questions: list[Json] = [
            {key: case[key] for key in ("schema", "object", "old") if key in case} for case in cases
        ]
        write(name, [question | found for question, found in zip(questions, answers(questions), strict=True)])
    record_definitions(read("definitions"))
    record_formats(read("formats"))


def record_definitions(cases: list[Json]) -> None:
    """Ask for definitions that have the schemas of the cases."""
    found = answers([{"definition": definition(case["schema"])} for case in cases])
    kept = [{"name": case["name"], "schema": case["schema"]} for case in cases]
    write("definitions", [case | answer for case, answer in zip(kept, found, strict=True)])


def record_formats(cases: list[Json]) -> None:
    """Ask for each text of each format whether it passes."""
    for case in cases:
        properties = {"text": {"type": "string", "format": case["format"]}}
        schema = {"type": "object", "properties": properties}
        found = answers([{"schema": schema, "object": BASE | {"text": text}} for text in case["texts"]])
        case["texts"] = {text: "causes" not in answer for text, answer in zip(case["texts"], found, strict=True)}
    write("formats", cases)


def definition(schema: Json) -> Json:
    """Return a CustomResourceDefinition with one version."""
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"storedVersions": ["v1"]},
    }


def answers(questions: list[Json]) -> list[Json]:
    """Ask Kubernetes' validators; an answer with an error ends the recording."""
    asked = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(["go", "run", "."], cwd=HERE, input=asked, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for question, answer in zip(questions, found, strict=True):
        if "error" in answer:
            sys.exit(f"{answer['error']}\n{json.dumps(question)}")
        answer.get("unknown", []).sort()
    return found


def read(name: str) -> list[Json]:
    """Return the cases of a file."""
    found: list[Json] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def write(name: str, cases: list[Json]) -> None:
    """Write a file, a case to a line."""
    lines = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases]
    (DATA / f"{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()

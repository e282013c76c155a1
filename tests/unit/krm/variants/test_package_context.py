"""Keys of a variant in the package context: ``variants.md`` 5.4."""

from typing import Any

import pytest
import yaml
from mutation_cases import HEAD, NAMED, cases, golden_ids, numbered, table, variant

from krm.package.contents import File
from krm.package.package_context import with_package_context
from krm.package.yaml_reader import read_document
from krm.variants.mutation import MutationError, mutate

Json = dict[str, Any]

CONTEXTS = table("package_context")
FAILING = [row for row in CONTEXTS if "error" in row]
PASSING = [row for row in CONTEXTS if "error" not in row]


def files_of(case: Json) -> dict[str, str]:
    """Return the package of a case, and first what the server makes of it when it clones."""
    context = (
        "# made for functions\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n  annotations:\n"
    )
    context += '    config.kubernetes.io/local-config: "true"\ndata:\n  name: example # the package\n'
    context += "".join(f"  {key}: {value}\n" for key, value in case.get("initial", {}).items())
    files = {"Kptfile": HEAD, **case.get("files", {"package-context.yaml": context})}
    if "cloned" in case:
        contents = {path: File(text.encode()) for path, text in files.items()}
        contents = with_package_context(contents, case["cloned"], f"deployments/{case['cloned']}")
        files = {path: file.data.decode() for path, file in contents.items()}
    return files


def test_every_golden_case_has_a_row() -> None:
    assert golden_ids(CONTEXTS) == numbered("C", 12)


@pytest.mark.parametrize("case", cases(PASSING))
def test_keys_are_set_and_removed(case: Json) -> None:
    files = files_of(case)
    pv = variant(packageContext=case["context"])

    once = mutate(pv, NAMED, files, {}).resources
    twice = mutate(pv, NAMED, once, {}).resources

    assert twice == once
    if "changed" in case:
        assert once == files | case["changed"]
    elif "data" in case:
        edited = once.pop("package-context.yaml")
        data = read_document(edited)["data"]
        assert (data, list(data)) == (case["data"], list(case["data"]))
        assert edited.startswith("# made for functions\n")
        assert ("# the package" in edited) is ("cloned" not in case or "# the package" in files["package-context.yaml"])
        assert yaml.safe_load(edited)["data"] == case["data"], "a reader of YAML 1.1 mistakes a text"
        assert once == {path: text for path, text in files.items() if path != "package-context.yaml"}
    else:
        assert once == files


@pytest.mark.parametrize("case", cases(FAILING))
def test_a_context_that_cannot_be_changed_is_told(case: Json) -> None:
    with pytest.raises(MutationError) as caught:
        mutate(variant(packageContext=case["context"]), NAMED, files_of(case), {})

    assert str(caught.value) == case["error"]

"""The CustomResourceDefinitions of our own kinds: valid, described to the last field, the same everywhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver import crd_files
from apiserver.crd_files import files
from apiserver.machinery.schema import structural_schema
from apiserver.resources.config import repository_definition
from apiserver.resources.custom.definitions import crd_definition
from apiserver.resources.custom.kinds import served_definitions
from apiserver.resources.custom.own import own_definitions
from apiserver.resources.custom.validation import definition_causes
from krm.api.config import Repository
from krm.api.variant_sets import PackageVariantSet
from krm.api.variants import PackageVariant

Json = dict[str, Any]
ROOT = Path(__file__).parents[4]
NAMES = ("repositories", "packagevariants", "packagevariantsets")


def crd(plural: str) -> Json:
    return own_definitions()[f"{plural}.config.porch.kpt.dev"]


def undescribed(schema: Json, path: str = "") -> Iterator[str]:
    if path.count(".") and "description" not in schema:
        yield path
    for name, child in schema.get("properties", {}).items():
        if path or name not in ("apiVersion", "kind", "metadata"):
            yield from undescribed({"description": child.get("description")} | child, f"{path}.{name}")
            if not child.get("description"):
                yield f"{path}.{name}"


def schema_of(definition: Json, version: int = 0) -> Json:
    schema: Json = definition["spec"]["versions"][version]["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("plural", NAMES)
def test_the_files_for_clusters_are_what_the_models_say(plural: str) -> None:
    for path, text in files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, "run python -m apiserver.crd_files"

    written = yaml.safe_load((ROOT / f"charts/porch/files/crds/config.porch.kpt.dev_{plural}.yaml").read_text("utf-8"))
    assert written == crd(plural)


@pytest.mark.parametrize("plural", NAMES)
def test_a_cluster_would_take_them(plural: str) -> None:
    definition = crd(plural)
    prepare = crd_definition().prepare
    assert prepare is not None
    prepare(definition, None)

    assert definition_causes(definition, None) == []
    assert crd_definition().compiled.prune(definition) == []


@pytest.mark.parametrize("plural", NAMES)
def test_every_field_is_described(plural: str) -> None:
    for index in range(len(crd(plural)["spec"]["versions"])):
        assert list(undescribed(schema_of(crd(plural), index))) == []


@pytest.mark.parametrize(
    ("plural", "version", "model"),
    [
        ("repositories", 0, Repository),
        ("packagevariants", 0, PackageVariant),
        ("packagevariantsets", 1, PackageVariantSet),
    ],
)
def test_schemas_are_those_of_the_models_but_for_rules(plural: str, version: int, model: Any) -> None:
    def without_rules(schema: Any) -> Any:
        if isinstance(schema, dict):
            return {key: without_rules(value) for key, value in schema.items() if key != "x-kubernetes-validations"}
        return schema

    published, modelled = schema_of(crd(plural), version), structural_schema(model)

    for part in ("spec", "status"):
        assert without_rules(published["properties"][part]) == modelled["properties"][part]


def test_repository_is_served_as_its_definition_says() -> None:
    (published,) = served_definitions(crd("repositories"))
    built_in = repository_definition()

    assert built_in.schema == published.schema
    assert [column.name for column in built_in.columns] == [column.name for column in published.columns]
    assert built_in.resource == published.resource


def test_the_address_of_a_repository_is_shown_whatever_its_type() -> None:
    (address,) = [column for column in repository_definition().columns if column.name == "Address"]

    assert address.value({"spec": {"git": {"repo": "https://git.example/r.git"}}}) == "https://git.example/r.git"
    assert address.value({"spec": {"oci": {"registry": "registry.example"}}}) == "registry.example"
    assert address.value({"spec": {}}) is None


def test_the_old_version_of_sets_is_known_and_neither_served_nor_stored() -> None:
    old, current = crd("packagevariantsets")["spec"]["versions"]

    assert (old["name"], old["served"], old["storage"]) == ("v1alpha1", False, False)
    assert (current["name"], current["served"], current["storage"]) == ("v1alpha2", True, True)


@pytest.mark.parametrize(
    ("plural", "spec"),
    [
        ("packagevariants", {"injectors": {"name": "one"}}),
        ("packagevariants", {"injectors": [{"name": "one", "group": ""}], "upstream": {"revision": "v1"}}),
        ("packagevariants", {"upstream": {"revision": -1}}),
        ("packagevariantsets", {"targets": [{"template": {"labelExprs": {"key": "org", "valueExpr": "x"}}}]}),
        ("packagevariantsets", {"targets": [{"template": {"injectorExprs": [{"nameExpr": "x"}]}}]}),
        ("packagevariantsets", {"targets": [{"repositorySelector": {"matchLabels": {}, "packageNames": ["a"]}}]}),
    ],
)
def test_every_shape_that_the_design_documents_write_is_kept(plural: str, spec: Json) -> None:
    (definition,) = served_definitions(crd(plural))
    obj = {"metadata": {"name": "x"}, "spec": spec}

    assert definition.compiled.type_errors(obj) == []
    assert definition.compiled.validate(obj) == []
    assert definition.compiled.prune(obj) == []


def test_the_check_names_the_file_that_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert crd_files.main([]) == 0
    assert crd_files.main(["--check"]) == 0
    path = crd_files.FOLDER / "config.porch.kpt.dev_repositories.yaml"
    path.write_text("old", encoding="utf-8")

    assert crd_files.main(["--check"]) == 1
    assert f"{path} is stale" in capsys.readouterr().err

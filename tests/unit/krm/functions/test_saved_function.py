"""Functions put into a Kptfile's pipeline: the entry is there, and nothing else has changed."""

import pytest

from krm.functions.saved_function import save_function
from krm.package.kptfile import Function, KptfileError, Selector, parse_kptfile

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app # its name\n"
IMAGE = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0"
FUNCTION = Function(image=IMAGE, config_map={"a": "b"})


def test_kptfile_without_a_pipeline_gets_one_where_it_belongs() -> None:
    status = "status:\n  conditions: [] # kept\n"

    data, is_update = save_function((HEAD + status).encode(), FUNCTION, "mutators")

    assert not is_update
    text = data.decode()
    assert text.startswith(HEAD + "pipeline:\n")
    assert text.endswith(status)
    assert parse_kptfile(data).mutators == (FUNCTION,)


@pytest.mark.parametrize("old", ["set-labels", "set-labels:v0.1", f"{IMAGE}@sha256:{'0' * 64}", IMAGE])
def test_entry_of_the_same_image_is_replaced_whatever_its_tag(old: str) -> None:
    pipeline = (
        "pipeline:\n  mutators:\n    # first\n    - image: set-namespace\n"
        f"    # second\n    - name: labels\n      image: {old}\n      configPath: x.yaml\n"
    )

    data, is_update = save_function((HEAD + pipeline).encode(), FUNCTION, "mutators")

    assert is_update
    kptfile = parse_kptfile(data)
    assert [function.image for function in kptfile.mutators] == ["set-namespace", IMAGE]
    assert kptfile.mutators[1] == Function(image=IMAGE, config_map={"a": "b"}, name="labels")
    assert b"    # first\n" in data
    assert b"    # second\n" in data


def test_saving_again_changes_no_byte() -> None:
    data, _ = save_function(HEAD.encode(), FUNCTION, "validators")

    assert save_function(data, FUNCTION, "validators") == (data, True)


def test_selectors_and_exclusions_are_saved() -> None:
    selected = Function(
        exec="./fn",
        config_path="cfg.yaml",
        selectors=(Selector(kind="Deployment", labels={"a": "b"}),),
        exclude=(Selector(api_version="v1", name="x", namespace="ns", annotations={"c": "d"}),),
    )

    data, _ = save_function(HEAD.encode(), selected, "mutators")

    assert parse_kptfile(data).mutators == (selected,)


def test_commands_are_told_apart_by_their_words() -> None:
    data, _ = save_function(HEAD.encode(), Function(exec="./one"), "mutators")
    data, is_update = save_function(data, Function(exec="./two"), "mutators")

    assert not is_update
    assert [function.exec for function in parse_kptfile(data).mutators] == ["./one", "./two"]


@pytest.mark.parametrize("text", ["", "- a\n", "a: b\n---\nc: d\n", "pipeline: x\n", "pipeline:\n  mutators: x\n", "{"])
def test_what_is_no_kptfile_is_refused(text: str) -> None:
    with pytest.raises(KptfileError):
        save_function(text.encode(), FUNCTION, "mutators")

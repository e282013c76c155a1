from pathlib import Path

import pytest

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.builtins import BUILTINS
from krm.functions.reference import PAGE, main, render
from krm.functions.runner import FunctionResult


def test_page_says_what_a_function_declares() -> None:
    function = Builtin(
        name="do",
        run=lambda resources, *_: FunctionResult(resources.items),
        summary="Does a|b.",
        source="kpt.md 4.99",
        tags=("v0.1.0", "v0.2.0"),
        config_kinds=("ConfigMap", "Do.fn.kpt.dev"),
        options=(Option("data.x", "the x", required=True), Option("y", "the y")),
        behaviours=(Behaviour("v0.1.x", "does a"), Behaviour("v0.2.0 and later, latest", "does b")),
    )

    page = render({"do": function})

    assert "| [do](#do) | Does a\\|b. |\n" in page
    section = page[page.index("## do") :]
    for line in (
        "- Tags: `v0.1.0`, `v0.2.0`.",
        "- Configuration: `ConfigMap` or `Do.fn.kpt.dev`.",
        "- Specified in kpt.md 4.99.",
        "| `data.x` | yes | the x |",
        "| `y` | no | the y |",
        "| v0.1.x | does a |",
    ):
        assert f"{line}\n" in section


def test_every_function_is_described_well_enough_to_be_used() -> None:
    for name, function in BUILTINS.items():
        assert function.name == name
        assert function.summary.endswith(".")
        assert function.source.startswith("kpt.md ")
        assert not function.options or function.config_kinds, name


def test_stale_page_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0
    PAGE.write_text("other")
    assert main(["--check"]) == 1

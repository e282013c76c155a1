"""The settings page is generated, complete and fresh."""

from pathlib import Path

import pytest

from apiserver import settings_reference
from apiserver.settings import Settings

ROOT = Path(__file__).parents[2]


def test_the_settings_page_is_fresh() -> None:
    """If this fails, run ``python -m apiserver.settings_reference`` and commit the page."""
    assert (ROOT / settings_reference.PAGE).read_text() == settings_reference.render()


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_says_what_it_is(name: str) -> None:
    description = Settings.model_fields[name].description or ""

    assert description.endswith(".")
    assert f"`PORCH_{name.upper()}`" in settings_reference.render()


def test_the_check_tells_a_stale_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert settings_reference.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err

    settings_reference.main([])
    assert settings_reference.main(["--check"]) == 0

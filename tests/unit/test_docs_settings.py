"""The settings page is generated, complete and fresh."""

from pathlib import Path

import pytest

from apiserver import settings_reference
from apiserver.settings import Settings
from controllers import settings_reference as controllers_reference
from controllers.settings import PREFIX as CONTROLLERS
from controllers.settings import Settings as ControllersSettings

ROOT = Path(__file__).parents[2]


def test_the_settings_page_is_fresh() -> None:
    """If this fails, run ``python -m apiserver.settings_reference`` and commit the page."""
    assert (ROOT / settings_reference.PAGE).read_text() == settings_reference.render()


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_says_what_it_is(name: str) -> None:
    field = Settings.model_fields[name]
    description = field.description or ""

    assert description.endswith(".")
    assert f"`{field.validation_alias or f'PORCH_{name.upper()}'}`" in settings_reference.render()


def test_the_page_of_the_controllers_is_fresh() -> None:
    """If this fails, run ``python -m controllers.settings_reference`` and commit the page."""
    assert (ROOT / controllers_reference.PAGE).read_text() == controllers_reference.render()


@pytest.mark.parametrize("name", list(ControllersSettings.model_fields))
def test_every_setting_of_the_controllers_says_what_it_is(name: str) -> None:
    assert (ControllersSettings.model_fields[name].description or "").endswith(".")
    assert f"`{CONTROLLERS}{name.upper()}`" in controllers_reference.render()


def test_the_check_tells_a_stale_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert settings_reference.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err

    settings_reference.main([])
    assert settings_reference.main(["--check"]) == 0

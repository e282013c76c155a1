"""Settings: defaults, where values come from, what is refused."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from apiserver.settings import PushDrafts, Settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_everything_lies_under_the_users_data_home(tmp_path: Path) -> None:
    settings = Settings()

    assert settings.data == tmp_path / "porch"
    assert settings.database == f"sqlite:///{tmp_path}/porch/porch.db"
    assert settings.secret_key == tmp_path / "porch" / "secret.key"


@pytest.mark.parametrize("home", [None, "", "relative/folder"])
def test_without_a_usable_data_home_the_standard_one_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME")
    if home is not None:
        monkeypatch.setenv("XDG_DATA_HOME", home)

    assert Settings().data == tmp_path / ".local" / "share" / "porch"


def test_an_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORCH_PORT", "7001")
    monkeypatch.setenv("PORCH_PUSH_DRAFTS", "never")

    assert Settings().port == 7001
    assert Settings(port=7002).port == 7002
    assert Settings(port=7002).push_drafts is PushDrafts.NEVER


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORCH_SECRET_KEY_FILE", "")

    assert Settings().secret_key_file is None


def test_a_relative_directory_does_not_move_with_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert Settings(data=Path("here")).data == tmp_path / "here"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("port", 65_536),
        ("port", -1),
        ("sync_interval", 0),
        ("git_threads", 1),
        ("body_limit", 10),
        ("keep_alive", 5),
        ("push_drafts", "sometimes"),
        ("database_url", "sqlite:///elsewhere.db"),
        ("database_url", "postgresql://"),
        ("log_level", "loud"),
    ],
)
def test_a_value_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError, match=field):
        Settings.model_validate({field: value})


def test_settings_cannot_change_while_the_server_runs() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1  # type: ignore[misc] # that is the case

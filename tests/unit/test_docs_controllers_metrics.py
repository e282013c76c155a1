"""The page of the controllers' metrics is generated, complete and fresh."""

from pathlib import Path

import pytest

from controllers import metrics_reference
from controllers.packagevariant.controller_metrics import DESCRIPTIONS

ROOT = Path(__file__).parents[2]


def test_the_page_is_fresh() -> None:
    """If this fails, run ``python -m controllers.metrics_reference`` and commit the page."""
    assert (ROOT / metrics_reference.PAGE).read_text() == metrics_reference.render()


def test_every_metric_is_there_and_says_what_it_is() -> None:
    rows = [line for line in metrics_reference.render().splitlines() if line.startswith("| `")]

    for row in rows:
        assert row.removesuffix(" |").endswith("."), row
    shown = {row.split("`")[1].removesuffix("_total") for row in rows}
    assert set(DESCRIPTIONS) <= shown
    assert {"workqueue_depth", "workqueue_queue_duration_seconds", "controller_runtime_reconcile"} <= shown


def test_the_check_tells_a_stale_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert metrics_reference.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err

    metrics_reference.main([])
    assert metrics_reference.main(["--check"]) == 0

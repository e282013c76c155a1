"""The metrics page is generated, complete and fresh."""

from pathlib import Path

import pytest

from apiserver import metrics_reference

ROOT = Path(__file__).parents[2]


def test_the_metrics_page_is_fresh() -> None:
    """If this fails, run ``python -m apiserver.metrics_reference`` and commit the page."""
    assert (ROOT / metrics_reference.PAGE).read_text() == metrics_reference.render()


def test_every_metric_says_what_it_is() -> None:
    for line in metrics_reference.render().splitlines():
        if line.startswith("| `"):
            assert line.removesuffix(" |").endswith("."), line


def test_the_check_tells_a_stale_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert metrics_reference.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err

    metrics_reference.main([])
    assert metrics_reference.main(["--check"]) == 0

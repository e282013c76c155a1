"""Alerts and dashboards of the chart name only metrics and labels that there are, and say what to do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "porch"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((CHART / "alerts" / "porch.yaml").read_text())["groups"] for rule in group["rules"]
]
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
PAGES = ("metrics.md", "controllers-metrics.md")
OTHERS = {"aggregator_unavailable_apiservice": {"name"}}
"""Metrics of kube-apiserver."""
SCRAPED = {"job", "instance", "pod", "le"}
"""Labels that Prometheus adds, and that of the buckets of histograms."""
WORDS = {
    "sum",
    "max",
    "min",
    "by",
    "rate",
    "increase",
    "max_over_time",
    "count",
    "histogram_quantile",
    "label_values",
    "and",
    "or",
    "unless",
}


def documented() -> dict[str, set[str]]:
    """Every series by name, with its labels: of a histogram the three that it has."""
    found = dict(OTHERS)
    for page in PAGES:
        text = (ROOT / "docs" / "reference" / page).read_text()
        for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", text, re.MULTILINE):
            known = set(re.findall(r"`(\w+)`", labels))
            series = [f"{name}_{part}" for part in ("bucket", "sum", "count")] if kind == "histogram" else [name]
            for one in series:
                found[one] = found.get(one, set()) | known
    return found


def queries() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            yield from ((f"{path.name}: {panel['title']}", target["expr"]) for target in panel.get("targets", ()))
        yield from ((path.name, one["query"]) for one in board["templating"]["list"] if one["type"] == "query")


SERIES = documented()
QUERIES = list(queries())


def names(query: str) -> set[str]:
    """Return the names of series: words that are neither labels, durations nor PromQL's own."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", "", query)
    found = set(re.findall(r"[a-zA-Z_]\w*", bare)) - WORDS
    return found - {"job"} if query.startswith("label_values(") else found


def labels(query: str) -> set[str]:
    in_selectors = {
        label for part in re.findall(r"\{([^}]*)\}", query) for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", part)
    }
    in_groupings = {label.strip() for part in re.findall(r"\bby \(([^)]*)\)", query) for label in part.split(",")}
    return in_selectors | in_groupings


@pytest.mark.parametrize(("place", "query"), QUERIES, ids=[place for place, _ in QUERIES])
def test_every_metric_and_label_that_is_asked_for_exists(place: str, query: str) -> None:
    asked = names(query)

    assert asked
    assert asked <= SERIES.keys()
    assert labels(query) <= set.union(SCRAPED, *(SERIES[name] for name in asked))


def test_an_unknown_metric_or_label_would_be_found() -> None:
    query = 'sum by (le, colour) (rate(porch_nothing_total{job="x", shape!="round"}[5m])) / max(porch_outbox_drafts)'

    assert names(query) == {"porch_nothing_total", "porch_outbox_drafts"}
    assert labels(query) == {"le", "colour", "job", "shape"}


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_every_alert_says_how_bad_it_is_and_the_guide_what_to_do(rule: dict[str, Any]) -> None:
    guide = (ROOT / "docs" / "how-to" / "observe.md").read_text()

    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/how-to/observe.md#{rule['alert'].lower()}"
    assert f'| <a id="{rule["alert"].lower()}"></a>`{rule["alert"]}` | ' in guide


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_panels_have_places_of_their_own_and_follow_the_chosen_source(path: Path) -> None:
    panels = json.loads(path.read_text())["panels"]
    taken: set[tuple[int, int]] = set()

    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (column, line)
            for column in range(place["x"], place["x"] + place["w"])
            for line in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(column for column, _ in cells) < 24
        taken |= cells
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel.get("targets", ()))

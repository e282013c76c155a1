"""Every alert fires when it should and not before, as Prometheus itself evaluates it: promtool, on series of a quiet and of a bad time.

``tests/unit/test_monitoring.py`` sees that the metrics exist. Source: issue 9 part 6; ``users.md`` 6.5.
"""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_rendering import ROOT, built

RULES = ROOT / "charts" / "porch" / "alerts" / "porch.yaml"
PROMTOOL = ROOT / ".build" / "promtool"
QUIET_MINUTES = 60
"""The bad time begins then; counters have been there all along."""
SERVER, CONTROLLERS, APPROVAL = 'job="porch-server"', 'job="porch-controllers"', 'job="porch-approval"'


@dataclass(frozen=True)
class Situation:
    """How series go in a bad time. Steps are of one minute; a counter rises by ``good`` a minute before, by ``bad`` then.

    A gauge is ``good`` before and ``bad`` then.
    """

    alert: str
    series: dict[str, tuple[float, float]]
    after: int
    """Minutes of the bad time after which it must fire."""
    severity: str
    gauge: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    """What the alert has besides."""


def bucket(bound: str) -> str:
    name = "apiserver_request_duration_seconds_bucket"
    return f'{name}{{{SERVER},resource="packagerevisions",subresource="approval",le="{bound}"}}'


SITUATIONS = [
    Situation(
        "PorchUnavailable",
        {'aggregator_unavailable_apiservice{name="v1alpha1.porch.kpt.dev"}': (0, 1)},
        4,
        "critical",
        gauge=True,
    ),
    Situation(
        "PorchErrors",
        {
            f'apiserver_request_total{{{SERVER},code="200"}}': (600, 600),
            f'apiserver_request_total{{{SERVER},code="500"}}': (1, 60),
        },
        25,
        "warning",
    ),
    Situation("PorchUnavailableAnswers", {f'apiserver_request_total{{{SERVER},code="503"}}': (0, 30)}, 25, "warning"),
    Situation("PorchOverloaded", {f"porch_requests_refused_total{{{SERVER}}}": (0, 30)}, 30, "warning"),
    Situation(
        "PorchSlowApprovals", {bucket("1"): (10, 0), bucket("10"): (10, 10), bucket("+Inf"): (10, 10)}, 70, "warning"
    ),
    Situation("PorchWatchersTerminated", {f"apiserver_terminated_watchers_total{{{SERVER}}}": (0, 2)}, 20, "info"),
    Situation(
        "PorchFileDescriptors",
        {
            f'process_open_fds{{{SERVER},pod="one"}}': (100, 900),
            f'process_max_fds{{{SERVER},pod="one"}}': (1000, 1000),
        },
        15,
        "warning",
        gauge=True,
        labels={"job": "porch-server", "pod": "one"},
    ),
    Situation(
        "PorchReplicaBehind",
        {
            f'porch_log_revision{{{SERVER},pod="one"}}': (5000, 9000),
            f'porch_log_revision{{{SERVER},pod="two"}}': (5000, 5000),
        },
        10,
        "warning",
        gauge=True,
    ),
    Situation(
        "PorchLogWentBack",
        {f'porch_log_revision{{{SERVER},pod="one"}}': (5000, 4990)},
        5,
        "critical",
        gauge=True,
    ),
    Situation(
        "PorchRepositoriesFailing",
        {f'porch_repositories{{{SERVER},state="failing"}}': (0, 2)},
        20,
        "warning",
        gauge=True,
    ),
    Situation(
        "PorchDraftsNotPushed", {f"porch_outbox_oldest_seconds{{{SERVER}}}": (2, 400)}, 10, "warning", gauge=True
    ),
    Situation(
        "PorchPushesRefused",
        {f'porch_git_push_duration_seconds_count{{{SERVER},result="refused"}}': (0, 1)},
        20,
        "warning",
    ),
    Situation(
        "PorchPushesFail", {f'porch_git_push_duration_seconds_count{{{SERVER},result="failed"}}': (0, 1)}, 5, "critical"
    ),
    Situation(
        "PorchSyncsLate",
        {f"porch_repository_oldest_sync_seconds{{{SERVER}}}": (60, 4000)},
        10,
        "warning",
        gauge=True,
    ),
    Situation(
        "PorchSyncsFail",
        {
            f'porch_repository_sync_duration_seconds_count{{{SERVER},result="unchanged"}}': (60, 60),
            f'porch_repository_sync_duration_seconds_count{{{SERVER},result="failed"}}': (1, 30),
        },
        70,
        "warning",
    ),
    Situation(
        "PorchRendersRefused",
        {f'porch_render_duration_seconds_count{{{SERVER},result="refused"}}': (0, 1)},
        5,
        "warning",
    ),
    Situation(
        "PorchControllersWithoutLeader",
        {
            f'leader_election_master_status{{{CONTROLLERS},name="porch-controllers",pod="{pod}"}}': (good, 0)
            for pod, good in (("one", 1), ("two", 0))
        },
        4,
        "critical",
        gauge=True,
        labels={"job": "porch-controllers", "name": "porch-controllers"},
    ),
    Situation(
        "PorchControllersErrors",
        {
            f'controller_runtime_reconcile_total{{{CONTROLLERS},controller="packagevariant",result="success"}}': (
                60,
                60,
            ),
            f'controller_runtime_reconcile_total{{{CONTROLLERS},controller="packagevariant",result="error"}}': (1, 30),
        },
        40,
        "warning",
        labels={"job": "porch-controllers", "controller": "packagevariant"},
    ),
    Situation(
        "PorchControllersStuck",
        {f'workqueue_longest_running_processor_seconds{{{CONTROLLERS},name="packagevariant"}}': (1, 700)},
        2,
        "warning",
        gauge=True,
        labels={"job": "porch-controllers", "name": "packagevariant"},
    ),
    Situation(
        "PorchVariantsStalled",
        {f'porch_variants{{{CONTROLLERS},condition="Stalled",status="True"}}': (0, 3)},
        20,
        "warning",
        gauge=True,
    ),
    Situation(
        "PorchVariantSetsStalled",
        {f'porch_variant_sets{{{CONTROLLERS},condition="Stalled",status="True"}}': (0, 1)},
        20,
        "warning",
        gauge=True,
    ),
    Situation(
        "PorchRolloutPaused", {f'porch_rollouts{{{CONTROLLERS},phase="Paused"}}': (0, 1)}, 20, "warning", gauge=True
    ),
    Situation(
        "PorchApprovalsRefused",
        {f'porch_approvals_refused_total{{{APPROVAL},step="publish"}}': (0, 1)},
        30,
        "warning",
        labels={"step": "publish"},
    ),
    Situation("PorchApprovalsStopped", {f"porch_approvals_stopped{{{APPROVAL}}}": (0, 1)}, 70, "info", gauge=True),
    Situation(
        "PorchMissedWakeups",
        {
            f"porch_variant_missed_wakeups_total{{{CONTROLLERS}}}": (0, 1),
            f"porch_variant_set_missed_wakeups_total{{{CONTROLLERS}}}": (0, 0),
        },
        5,
        "warning",
    ),
]


def values(good: float, bad: float, *, gauge: bool, minutes: int) -> str:
    """Return a series in promtool's notation: a beginning, a step, how often."""
    if gauge:
        return f"{good}+0x{QUIET_MINUTES - 1} {bad}+0x{minutes}"
    return f"0+{good}x{QUIET_MINUTES - 1} {good * (QUIET_MINUTES - 1) + bad}+{bad}x{minutes}"


def notation(situation: Situation) -> dict[str, Any]:
    """Return a test of promtool: silence at the end of the quiet time, the alert in the bad time."""
    labels = {"alertname": situation.alert, "alertstate": "firing", "severity": situation.severity, **situation.labels}
    shown = ",".join(f'{name}="{value}"' for name, value in labels.items())
    firing = 'ALERTS{alertstate="firing"}'
    return {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values(*how, gauge=situation.gauge, minutes=situation.after)}
            for name, how in situation.series.items()
        ],
        "promql_expr_test": [
            {"expr": firing, "eval_time": f"{QUIET_MINUTES - 1}m", "exp_samples": []},
            {
                "expr": firing,
                "eval_time": f"{QUIET_MINUTES + situation.after - 1}m",
                "exp_samples": [{"labels": f"ALERTS{{{shown}}}", "value": 1}],
            },
        ],
    }


def promtool(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([built(PROMTOOL), *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_prometheus_reads_the_rules() -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.alert)
def test_an_alert_is_silent_before_and_fires_in_the_bad_time(situation: Situation, tmp_path: Path) -> None:
    path = tmp_path / "test.yaml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [notation(situation)]})
    )

    done = promtool("test", "rules", path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_situation() -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    alerts = [rule["alert"] for group in groups for rule in group["rules"]]

    assert sorted(alerts) == sorted(one.alert for one in SITUATIONS)

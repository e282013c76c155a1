"""Values that cannot work are refused before anything is installed, with the place and what it may be."""

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml
from chart_rendering import CHART, HELM, OFFLINE, RELEASE, ROOT, Helm, built, settings

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"server__replica": 3}, "/server", "replica"),
    ({"server__replicas": "many"}, "/server/replicas", "integer"),
    ({"server__replicas": -1}, "/server/replicas", "minimum"),
    ({"certificates__source": "magic"}, "/certificates/source", "cert-manager"),
    ({"certificates__days": 99999}, "/certificates/days", "maximum"),
    ({"image__pullPolicy": "Sometimes"}, "/image/pullPolicy", "IfNotPresent"),
    ({"image__digest": "sha256:abc"}, "/image/digest", "sha256"),
    ({"service__port": 70000}, "/service/port", "maximum"),
    ({"server__settings": {"PORCH_SYNC_INTERVALL": 30}}, "/server/settings", "PORCH_SYNC_INTERVALL"),
    ({"server__settings": {"PORCH_DATABASE_URL": "postgresql://u:p@h/d"}}, "/server/settings", "PORCH_DATABASE_URL"),
    ({"server__settings": {"PORCH_SYNC_INTERVAL": ["30"]}}, "/server/settings/PORCH_SYNC_INTERVAL", "array"),
    ({"controllers__settings": {"PORCH_WORKERS": 3}}, "/controllers/settings", "PORCH_WORKERS"),
    ({"networkPolicy__apiServerCIDRs": ["10.0.0.1"]}, "/networkPolicy/apiServerCIDRs/0", "pattern"),
    ({"rbac__secretNamespaces": ["Edge"]}, "/rbac/secretNamespaces/0", "pattern"),
    ({"server__data__size": "big"}, "/server/data/size", "pattern"),
    ({"approval__enabled": "yes"}, "/approval/enabled", "boolean"),
    ({"nonsense": {}}, "nonsense", "not allowed"),
    ({"server__replicas": 2}, "database.existingSecret.name", "or run one replica"),
    ({"server__autoscaling__enabled": True}, "database.existingSecret.name", "PostgreSQL"),
    ({"server__shutdownDelaySeconds": 60}, "server.terminationGracePeriodSeconds", "125 s"),
    ({"server__settings": {"PORCH_REQUEST_TIMEOUT": 300}}, "server.terminationGracePeriodSeconds", "315 s"),
    ({"certificates__source": "existing"}, "certificates.existing.secretName", "kubernetes.io/tls"),
    (
        {"server__autoscaling__minReplicas": 9, "database__existingSecret__name": "db"},
        "server.autoscaling.maxReplicas",
        "raise",
    ),
]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return Helm without a cluster."""
    return Helm(built(HELM), tmp_path_factory.mktemp("helm"))


@pytest.mark.parametrize(
    ("values", "place", "told"),
    REFUSED,
    ids=[" ".join(f"{k}={v}" for k, v in values.items())[:60] for values, *_ in REFUSED],
)
def test_a_bad_value_is_refused_and_the_message_says_where(
    helm: Helm, values: dict[str, Any], place: str, told: str
) -> None:
    done = helm("template", RELEASE, str(CHART), *OFFLINE, *settings(values))

    assert done.returncode == 1
    assert done.stdout == ""
    assert place.replace("/", ".").strip(".") in done.stderr.replace("/", ".")
    assert told in done.stderr


def test_a_password_given_by_mistake_is_not_repeated_in_the_refusal(helm: Helm) -> None:
    url = "postgresql://porch:s3cret@db/porch"

    done = helm("template", RELEASE, str(CHART), *OFFLINE, *settings({"server__settings": {"PORCH_DATABASE_URL": url}}))

    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr


def test_the_schema_knows_exactly_the_values_that_there_are() -> None:
    schema = json.loads((CHART / "values.schema.json").read_bytes())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(value: Any, known: dict[str, Any], path: str) -> None:
        known = schema["$defs"][known["$ref"].rpartition("/")[2]] if "$ref" in known else known
        if isinstance(value, dict) and "properties" in known and known.get("additionalProperties") is False:
            if path.endswith(("Settings", ".settings", ".issuerRef")):
                return
            assert value.keys() == known["properties"].keys() - {"global"}, path
            for name, inner in value.items():
                compare(inner, known["properties"][name], f"{path}.{name}")

    compare(values, schema, "values")


def test_the_readme_of_the_chart_describes_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, run ``python charts/values_reference.py`` and commit the README."""
    monkeypatch.chdir(ROOT)
    command = [sys.executable, "charts/values_reference.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    rows = [line for line in (CHART / "README.md").read_text().splitlines() if line.startswith("| `")]

    assert done.returncode == 0, done.stderr
    assert not [row for row in rows if row.endswith("|  |")], "without a word on what it is"

"""The guide about running behind a kube-apiserver, typed as it stands there."""

import os
import re
import subprocess

from aggregated_process import ROOT, AggregatedProcess, rights

GUIDE = ROOT / "docs" / "how-to" / "run-behind-a-kube-apiserver.md"


def test_the_commands_of_the_guide_work(porch_server: AggregatedProcess) -> None:
    blocks = re.findall(r"```sh cluster\n(.*?)```", GUIDE.read_text(), re.DOTALL)

    typed = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(porch_server.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert typed.returncode == 0, typed.stdout + typed.stderr
    assert "apiservice.apiregistration.k8s.io/v1alpha1.porch.kpt.dev condition met" in typed.stdout
    assert re.search(r"^packagerevisions +porch\.kpt\.dev/v1alpha1 +true +PackageRevision$", typed.stdout, re.MULTILINE)


def test_the_guide_names_the_rights_that_the_tested_server_has() -> None:
    text = " ".join(GUIDE.read_text().split())
    (role,) = (one for one in rights() if one["kind"] == "ClusterRole")

    for rule in role["rules"]:
        verbs = ", ".join(f"`{verb}`" for verb in rule["verbs"])
        assert f"{verbs} on `{rule['resources'][0]}`" in text, rule

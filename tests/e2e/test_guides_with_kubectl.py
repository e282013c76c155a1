"""The guides about a running server, typed as they stand there: every ``sh guide`` block, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from porch_process import PorchProcess

DOCS = Path(__file__).parents[2] / "docs"
LOOKED_AT = {
    "give-people-access.md",
    "label-and-own-revisions.md",
    "package-variants.md",
    "preview-a-fan-out.md",
    "roll-out-to-a-fleet.md",
    "use-custom-resources.md",
}
"""Guides whose output is looked at below; of the others, that every command succeeds is enough."""
GUIDES = sorted(
    page.name
    for page in (DOCS / "how-to").glob("*.md")
    if "```sh guide" in page.read_text() and page.name not in LOOKED_AT
)


def follow(guide: str, server: PorchProcess, folder: Path, seconds: float = 240) -> str:
    blocks = re.findall(r"```sh guide\n(.*?)```", (DOCS / guide).read_text(), re.DOTALL)
    assert blocks, f"{guide} has nothing to type"
    own = {
        "KUBECONFIG": str(server.kubeconfig),
        "PORCH_DATA": str(server.data),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder),
    }
    typed = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout + typed.stderr
    return typed.stdout


def shown(guide: str) -> list[str]:
    """Return the lines of a guide's ``text output`` blocks, in order, as patterns: ages and widths of columns are as they come."""
    blocks = re.findall(r"```text output\n(.*?)```", (DOCS / guide).read_text(), re.DOTALL)
    cells = [[re.escape(cell) for cell in line.split()] for block in blocks for line in block.splitlines()]
    return [r"\s+".join(r"\w+" if re.fullmatch(r"\d+s", cell) else cell for cell in line) + r"\s*" for line in cells]


def test_people_and_programs_get_access_as_the_guide_says(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("how-to/give-people-access.md", porch_server, tmp_path)

    assert re.search(r"^Username +ann$", said, re.MULTILINE)
    assert re.search(r"^yes$", said, re.MULTILINE), "an author may create package revisions"
    assert "as it should be" in said, "and may not approve them"
    assert (tmp_path / "pipeline.token").read_text().count(".") == 2


def test_custom_resources_live_without_a_cluster_as_the_guide_says(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("how-to/use-custom-resources.md", porch_server, tmp_path)

    assert re.search(r"^NAME +CODE$", said, re.MULTILINE) or re.search(r"^NAME +CODE +AGE$", said, re.MULTILINE)
    assert "Who pays." in said
    assert 'customresourcedefinition.apiextensions.k8s.io "teams.hr.example.com" deleted' in said


def test_the_tutorial_rolls_a_blueprint_out_and_upgrades_it(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("tutorial.md", porch_server, tmp_path)

    assert re.search(r"^site-south.web.second +web +second +2 +true +Published +site-south$", said, re.MULTILINE)
    assert "-        image: registry.example/web:1.0\n+        image: registry.example/web:2.0" in said


def test_revisions_are_labelled_owned_and_held_as_the_guide_says(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("how-to/label-and-own-revisions.md", porch_server, tmp_path)

    assert '{"stage":"lab","team":"edge"}' in said
    assert "waits for its finalizer" in said
    assert "gone with its owner" in said


def test_variants_are_made_followed_and_let_go_as_the_guide_says(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    server = PorchProcess(tmp_path_factory.mktemp("controllers") / "data", arguments=["--controllers"])
    server.start()
    try:
        said = follow("how-to/package-variants.md", server, tmp_path)
    finally:
        server.stop()

    assert re.search(r"^web-east +web .*variant-site.web.packagevariant-1", said, re.MULTILINE)
    assert re.search(r"^Ready True NoErrors: successfully ensured downstream package variant$", said, re.MULTILINE)
    assert 'packagevariant.config.porch.kpt.dev "web-east" deleted' in said
    assert re.search(r"^variant-site.web.packagevariant-2 .* Draft ", said, re.MULTILINE)


@pytest.mark.timeout(600)
def test_a_blueprint_goes_to_a_fleet_as_the_guide_says(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    guide = "how-to/roll-out-to-a-fleet.md"
    server = PorchProcess(tmp_path_factory.mktemp("fleet") / "data", arguments=["--controllers"])
    server.start()
    try:
        said = follow(guide, server, tmp_path, seconds=540)
    finally:
        server.stop()

    assert_shown(said, guide)
    assert re.search(r"^canary: wave canary waits for the annotation \S+/approve-wave: canary@\w+$", said, re.MULTILINE)
    assert "3 of 3 package variants would be deleted, more than spec.guards.maxDeletions allows (1)" in said


@pytest.mark.timeout(600)
def test_a_fan_out_is_previewed_as_the_guide_says(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    guide = "how-to/preview-a-fan-out.md"
    server = PorchProcess(tmp_path_factory.mktemp("preview") / "data", arguments=["--controllers"])
    server.start()
    try:
        said = follow(guide, server, tmp_path, seconds=540)
    finally:
        server.stop()

    assert_shown(said, guide)
    assert '"unchanged":3' in said, "nothing was written by all these previews"
    assert 'packagevariantset.config.porch.kpt.dev "till" deleted' in said


def assert_shown(said: str, guide: str) -> None:
    """Check that a guide's commands said all that it shows, in that order."""
    lines = iter(said.splitlines())
    for line in shown(guide):
        assert any(re.fullmatch(line, one) for one in lines), (
            f"{guide}: {line!r} is not in, or not in this order:\n{said}"
        )


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_of_the_other_guides_succeeds(guide: str, porch_server: PorchProcess, tmp_path: Path) -> None:
    follow(f"how-to/{guide}", porch_server, tmp_path)

"""The example of docs/reference/starlark.md, run as it stands there."""

import re
from pathlib import Path

from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import render
from krm.package.contents import File

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "starlark.md"
KPTFILE = b"""apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: pkg
pipeline:
  mutators:
    - image: starlark:v0.5.0
      configPath: script.yaml
"""
DEPLOYMENT = b"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1 # few\n"


def test_the_example_of_the_page_sets_the_replicas() -> None:
    [example] = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    files = {"Kptfile": KPTFILE, "script.yaml": example.encode(), "web.yaml": DEPLOYMENT}

    rendered = render({path: File(data) for path, data in files.items()}, BuiltinRunner())

    assert rendered.error == ""
    assert rendered.contents["web.yaml"].data == DEPLOYMENT.replace(b"1 # few", b"3 # few")
    assert rendered.contents["script.yaml"].data == example.encode()

"""What a new package starts with. Source: ``porch-api.md`` 3.2, ``kpt.md`` 1.9."""

from collections.abc import Sequence

from krm.package.contents import File
from krm.package.package_context import new_package_context
from krm.package.yaml_edit_text import new_document

_PLACEHOLDER = "example"
"""The name in a new package's context: init never writes a real one, not even for deployment repositories."""

_README = """\
# {name}

## Description

{description}

## Usage

### Get a copy

`kpt pkg get REPOSITORY/{name}@VERSION {leaf}`

See https://kpt.dev/reference/cli/pkg/get/

### Look inside

`kpt pkg tree {leaf}`

See https://kpt.dev/reference/cli/pkg/tree/

### Apply it to a cluster

```
kpt live init {leaf}
kpt live apply {leaf} --reconcile-timeout=2m
```

See https://kpt.dev/reference/cli/live/
"""


def init_package(name: str, description: str, keywords: Sequence[str], site: str) -> dict[str, File]:
    """Return the files of a new package; ``name`` is the full package name, empty arguments are left out."""
    given = {"site": site, "description": description, "keywords": list(keywords)}
    kptfile = {
        "apiVersion": "kpt.dev/v1",
        "kind": "Kptfile",
        "metadata": {"name": name, "annotations": {"config.kubernetes.io/local-config": "true"}},
    }
    if info := {key: value for key, value in given.items() if value}:
        kptfile["info"] = info
    readme = _README.format(name=name, leaf=name.rpartition("/")[2], description=description or name)
    return {
        "Kptfile": File(new_document(kptfile).encode()),
        "README.md": File(readme.encode()),
        "package-context.yaml": File(new_package_context({"name": _PLACEHOLDER}).encode()),
    }

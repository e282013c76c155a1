"""Small packages, and runners whose functions are the test's own."""

from collections.abc import Callable, Mapping

from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.contents import File

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: one\n"

Change = Callable[[list[Resource]], list[Resource] | None]


def package(pipeline: str = "", **files: str) -> dict[str, File]:
    """Return a package; in the names of files ``__`` is a slash and ``_`` a dot."""
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n" + pipeline
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    return {path: File(text.encode()) for path, text in {"Kptfile": kptfile, **named}.items()}


def mutate(*images: str) -> str:
    """Return a pipeline of mutators without configuration."""
    return "pipeline:\n  mutators:\n" + "".join(f"  - image: {image}\n" for image in images)


def annotated(contents: dict[str, File], *names: str) -> dict[str, File]:
    """Return the package with these annotations of the root Kptfile set."""
    pairs = ", ".join(f"kpt.dev/{name}: 'true'" for name in names)
    text = contents["Kptfile"].data.replace(b"  name: app\n", f"  name: app\n  annotations: {{{pairs}}}\n".encode())
    return {**contents, "Kptfile": File(text)}


class OwnFunctions:
    """Runs Python functions by the last part of the image's name; the pipeline cannot tell it from any runner."""

    def __init__(self, functions: Mapping[str, Change] | Change, *, deterministic: bool = True) -> None:
        """One function alone stands in for every image."""
        self._functions = functions
        self._deterministic = deterministic
        self.calls: list[str] = []

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        name = image.rpartition("/")[2].partition(":")[0]
        self.calls.append(name)
        change = self._functions if callable(self._functions) else self._functions[name]
        items = change(resources.items)
        return FunctionResult(resources.items if items is None else items)

    def require(self, image: str) -> None:
        return

    def resolve(self, image: str, constraint: str) -> str:
        return f"{image.rpartition(':')[0]}:v1.2.3"

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:
        return self._deterministic

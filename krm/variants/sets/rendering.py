"""From what targets select to the specs of variants: templates filled in, expressions evaluated.

Pure, and bound by the processor: ``rendering_worker`` does it in a process of its own.
Source: ``variants.md`` 3.3, 3.4, 6.9 and 6.12; decisions 16; C-03, C-04, C-21, C-25, C-26, C-36, C-39.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from krm.variants.revisions import Revision
from krm.variants.sets.spec_checks import SpecChecks, repository_problem
from krm.variants.sets.targets import Context, SelectedObject, visible_annotations
from krm.variants.sets.template import Template, TemplateError
from krm.variants.sets.wave_matching import WaveMatching

Json = dict[str, Any]
MOST_SAID: Final = 2048
"""Characters of what is wrong with one target."""
Row = tuple[int, str, str, Json | None, str, str, int, bool]
"""The fields of ``Rendered``, in order."""

VIEW: Final = ("name", "namespace", "labels", "annotations")
"""What expressions see of an object; nothing of its spec, which may be confidential (seeds 000 and 001)."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What one target comes to."""

    target_index: int
    """Place in ``spec.targets``."""
    repo: str
    package: str
    """Of the variant; where the target failed before they were known, the defaults."""
    spec: Json | None
    """Of the PackageVariant; None where the target failed."""
    error: str = ""
    """What is wrong, with the target before it."""
    digest: str = ""
    """``specs.spec_digest`` of the spec."""
    wave: int = -1
    """Place in ``spec.rollout.waves`` of the first wave that matches; -1 where none does."""
    located: bool = True
    """Whether ``repo`` and ``package`` are those of the variant, also where it failed."""


def render(
    set_body: Json,
    upstream: Revision,
    contexts: Sequence[Context],
    repositories: Mapping[str, SelectedObject],
    *,
    upstream_identity: bool = False,
) -> list[Rendered]:
    """Render each context of a valid set; what fails does not keep others from being rendered.

    Args:
        set_body: The set as it is on the wire.
        upstream: What its upstream stands for.
        contexts: What its targets select.
        repositories: Those of the namespace, by name.
        upstream_identity: Whether an administrator lets expressions see which package and revision the upstream is.
    """
    renderer = Renderer(set_body, upstream_view(upstream, identity=upstream_identity))
    renderer.add_repositories(repositories)
    return [renderer.render(context) for context in contexts]


def prefix(target_index: int, repo: str, package: str) -> str:
    """Return what every message about a target begins with."""
    return f"spec.targets[{target_index}] ({repo}/{package}): "


def upstream_view(upstream: Revision, *, identity: bool = False) -> Json:
    """Return what expressions see of the upstream package revision; with ``identity`` also ``repo``, ``package``, ``revision``."""
    view: Json = {
        "name": upstream.name,
        "namespace": upstream.namespace,
        "labels": dict(upstream.labels),
        "annotations": dict(visible_annotations(upstream.annotations)),
    }
    if identity:
        view |= {"repo": upstream.repository, "package": upstream.package, "revision": upstream.revision}
    return view


class Renderer:
    """Renders the targets of one set; what they share is made ready once."""

    def __init__(self, set_body: Json, upstream: Json) -> None:
        spec = set_body["spec"]
        self._upstream = upstream
        self._source: Json = spec["upstream"]
        self._templates = [
            None if (one := target.get("template")) is None else Template(one) for target in spec["targets"]
        ]
        self._checks = [SpecChecks(self._source, template) for template in self._templates]
        self._waves = WaveMatching(spec.get("rollout") or {})
        self._repositories: dict[str, Json] = {}

    def add_repositories(self, repositories: Mapping[str, SelectedObject]) -> None:
        """Make Repositories of the namespace known."""
        self._repositories.update((name, object_view(one)) for name, one in repositories.items())

    def render(self, context: Context) -> Rendered:
        """Render one target; an error is part of what is returned."""
        target = context.target
        view = None if target is None else self.known(target) or object_view(target)
        return Rendered(*self.row(context.target_index, context.repo_default, context.package_default, view))

    def known(self, target: SelectedObject) -> Json | None:
        """Return what expressions see of a selected Repository, if it is one of those that are known."""
        view = self._repositories.get(target.name)
        return view if view is not None and view["labels"] is target.labels else None

    def repository(self, name: str) -> Json:
        """Return what expressions see of a Repository that is known."""
        return self._repositories[name]

    def row(self, index: int, repo: str, package: str, target: Json | None) -> Row:
        """Return the fields of ``Rendered``: of a place in ``spec.targets``, the defaults and what was selected."""
        template = self._templates[index]
        variables = {
            "repoDefault": repo,
            "packageDefault": package,
            "upstream": self._upstream,
            "target": {"repo": repo, "package": package} if target is None else target,
        }
        located = False
        try:
            if template is not None:
                repo = repo if template.repo is None else template.repo(variables)
                package = (
                    package if template.package is None or template.needs_repository else template.package(variables)
                )
            located = template is None or not template.needs_repository
            variables["repository"] = self._found(repo)
            if template is not None and template.package is not None and template.needs_repository:
                package = template.package(variables)
            located = True
            spec = self._spec(template, repo, package, variables)
            checks = self._checks[index]
            checks.check(spec)
            return index, repo, package, spec, "", checks.digest(spec), self._waves.place(variables), True
        except TemplateError as error:
            message = f"{prefix(index, repo, package)}{error}"
            if len(message) > MOST_SAID:
                message = f"{message[:MOST_SAID]}…"
            return index, repo, package, None, message, "", -1, located

    def _found(self, repo: str) -> Json:
        """Return the Repository of a target, without which nothing is written for it (decisions 16)."""
        found = self._repositories.get(repo)
        if found is None:
            raise TemplateError(repository_problem(repo) or f'repository "{repo}" could not be loaded')
        return found

    def _spec(self, template: Template | None, repo: str, package: str, variables: Json) -> Json:
        spec: Json = {"upstream": self._source, "downstream": {"repo": repo, "package": package}}
        if template is not None:
            spec.update(template.constants)
            for name, section in template.sections:
                spec[name] = section(variables)
        return spec


def object_view(one: SelectedObject) -> Json:
    """Return what expressions see of an object."""
    labels, annotations = one.labels, one.annotations
    return {
        "name": one.name,
        "namespace": one.namespace,
        "labels": labels if type(labels) is dict else dict(labels),
        "annotations": annotations if type(annotations) is dict else dict(annotations),
    }

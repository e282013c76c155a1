"""Rendering a package: the pipelines of it and its subpackages, in order, all or nothing.

Source: ``kpt.md`` 2, ``porch-api.md`` 5.4 and 5.5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from krm.functions.images import DEFAULT_PREFIX
from krm.functions.package_tree import RenderError, load_tree
from krm.functions.placement import PlacementError
from krm.functions.progress import Observer, Silence
from krm.functions.render_cache import RenderCache
from krm.functions.render_status import failure_report, render_status, result_list
from krm.functions.rendered import Rendered, Repeat
from krm.functions.resource import Resource
from krm.functions.runner import CommandRunner, FunctionRunner
from krm.functions.step_cache import StepCache
from krm.functions.step_config import StepConfigs
from krm.functions.steps import StepRunner
from krm.functions.traversal import Traversal
from krm.functions.write_back import group_by_file, write_back
from krm.package.contents import Contents, File
from krm.package.kptfile import KptfileEdit, KptfileError, RenderedStatus, edit_kptfile
from krm.package.yaml_reader import MAX_DEPTH

__all__ = ["Rendered", "RenderedStatus", "render"]

_KPTFILE = "Kptfile"
_SAVE_ON_FAILURE = "kpt.dev/save-on-render-failure"
_MOST_REPEATS = 2
"""The first repeat's status usually differs from the first render's (nothing is left to change), the second's not."""
_CHEAP = 0.25
"""Seconds that the functions of a render may have taken for looking ahead to be worth it."""
_CHEAP_SHARE = 0.5
"""Or the share of the whole render's time."""

ByFile = Mapping[str, Sequence[Resource]]


def render(
    contents: Contents,
    runner: FunctionRunner,
    *,
    commands: CommandRunner | None = None,
    shown: str = ".",
    observer: Observer | None = None,
    cache: RenderCache | None = None,
    step_cache: StepCache | None = None,
    look_ahead: bool = False,
    image_prefix: str = DEFAULT_PREFIX,
    records_status: bool = True,
) -> Rendered:
    """Render the package whose Kptfile is at the root of ``contents``; blocking, for a worker thread or process.

    ``commands`` runs ``exec`` functions, which are refused without. ``shown`` is what messages call the root.
    ``cache`` belongs to one ``runner`` and returns what is remembered, without telling ``observer`` of it.
    ``look_ahead`` (always with a ``cache``) finds out what rendering the outcome again gives, see
    :mod:`krm.functions.render_cache`. ``image_prefix`` goes before image names without a slash; with a ``cache``
    it is always the same one. Without ``records_status`` the root Kptfile's status stays as it is (``kpt.md``
    2.16); with a ``cache`` it is always recorded.

    On success the root Kptfile has the condition ``Rendered``. Without a Kptfile nothing is done. A failure of
    any kind is told in the answer, never raised.
    """
    if _KPTFILE not in contents:
        return Rendered(dict(contents), {})
    if cache is not None and (remembered := cache.find(contents)) is not None:
        return remembered
    looks_ahead = (look_ahead or cache is not None) and records_status
    steps = StepRunner(runner, commands, step_cache, observer or Silence(), image_prefix, asks_determinism=looks_ahead)
    work = _Render(contents, steps, shown, records_status)
    began = perf_counter()
    rendered, by_file = work.run()
    if looks_ahead and steps.is_deterministic and not rendered.failed:
        repeats = _look_ahead(work, rendered, by_file) if _is_cheap(rendered, perf_counter() - began) else ()
        rendered = replace(rendered, is_deterministic=True, repeats=tuple(repeats))
    if cache is not None:
        cache.add(contents, rendered)
    return rendered


@dataclass(slots=True)
class _Render:
    """One render."""

    contents: Contents
    steps: StepRunner
    shown: str
    records_status: bool = True

    def run(self, known: ByFile | None = None) -> tuple[Rendered, ByFile]:
        """Render; return the resources by file too, as they are afterwards. ``known`` is such an answer."""
        traversal: Traversal | None = None
        saves = False
        try:
            tree = load_tree(self.contents, shown=self.shown, known=known)
            saves = tree.root.kptfile.annotations.get(_SAVE_ON_FAILURE) == "true"
            self.steps.keeps_failed_input = saves
            traversal = Traversal(self.contents, tree, self.steps, StepConfigs(tree), self.shown)
            traversal.run()
            if traversal.records:
                new, by_file = write_back(self.contents, tree, traversal.resources)
            else:
                new, by_file = dict(self.contents), group_by_file(traversal.resources)
            status = RenderedStatus(render_status=render_status(traversal.records))
            new = _with_status(new, status) if self.records_status else new
        except RenderError as error:
            return self._failure(error, traversal, saves=saves), {}
        except (PlacementError, KptfileError, UnicodeError) as error:
            # The functions made something that no file, or no status, can hold.
            chain = f"pkg.render: pkg .:\n\tpkg.Write: {error}"
            return self._failure(RenderError(chain, cause=str(error)), traversal, saves=False), {}
        except RecursionError:
            cause = f"a function nested a resource deeper than the {MAX_DEPTH} levels that can be read"
            too_deep = RenderError(f"pkg.render: pkg .:\n\tpkg.Write: {cause}", cause=cause)
            return self._failure(too_deep, traversal, saves=False), {}
        return _rendered(new, traversal, status), by_file

    def _failure(self, error: RenderError, traversal: Traversal | None, *, saves: bool) -> Rendered:
        """Return the outcome of a failure; with ``saves`` its contents are what was reached (``kpt.md`` 2.13)."""
        records = traversal.records if traversal else []
        chain = str(error)
        contents = dict(self.contents)
        status = RenderedStatus(succeeded=False, message=chain, render_status=render_status(records))
        try:
            if saves and traversal is not None:
                contents, _ = write_back(self.contents, traversal.tree, traversal.resources, prune=False)
            if error.is_recorded and self.records_status:
                contents = _with_status(contents, status)
        except (PlacementError, KptfileError, UnicodeError, RecursionError):
            contents = dict(self.contents)
        return replace(
            _rendered(contents, traversal, status if error.is_recorded else None),
            error=failure_report(chain, records),
            failed=True,
            cause=error.cause.rstrip("\n"),
        )


def _rendered(contents: dict[str, File], traversal: Traversal | None, status: RenderedStatus | None) -> Rendered:
    records = traversal.records if traversal else []
    packages = traversal.packages if traversal else 0
    return Rendered(contents, result_list(records), status=status, steps=tuple(records), packages=packages)


def _with_status(contents: dict[str, File], status: RenderedStatus) -> dict[str, File]:
    """Return ``contents`` with the status in the root Kptfile; one that a function removed stays away."""
    kptfile = contents.get(_KPTFILE)
    if kptfile is None:
        return contents
    data = edit_kptfile(kptfile.data, KptfileEdit(rendered=status))
    return contents if data == kptfile.data else {**contents, _KPTFILE: File(data, kptfile.mode)}


def _is_cheap(rendered: Rendered, seconds: float) -> bool:
    """Say whether running the functions once more costs little, or little beside the whole render."""
    return sum(step.seconds for step in rendered.steps) < max(_CHEAP, seconds * _CHEAP_SHARE)


def _look_ahead(work: _Render, rendered: Rendered, by_file: ByFile) -> list[Repeat]:
    """Run the pipelines on what they made, in memory, and return what that gives as far as nothing changes.

    Costs what the functions alone cost. Nothing is assumed of them but that they are deterministic: as soon as
    one is not, or a file other than the root Kptfile changes, it ends.
    """
    repeats: list[Repeat] = []
    while len(repeats) < _MOST_REPEATS and _KPTFILE in rendered.contents:
        steps = replace(work.steps, observer=Silence())
        # The status has changed since the Kptfile was read, and functions see it.
        known = {path: members for path, members in by_file.items() if path != _KPTFILE}
        again = _Render(rendered.contents, steps, work.shown)
        following, by_file = again.run(known)
        if not steps.is_deterministic or following.failed or following.status is None:
            break
        if _KPTFILE not in following.contents:
            break
        if _without_kptfile(following.contents) != _without_kptfile(rendered.contents):
            break
        kptfile = following.contents[_KPTFILE].data
        repeats.append(Repeat(kptfile, following.results, following.status, following.steps))
        if kptfile == rendered.contents[_KPTFILE].data:
            break
        rendered = following
    return repeats


def _without_kptfile(contents: Contents) -> dict[str, File]:
    return {path: file for path, file in contents.items() if path != _KPTFILE}

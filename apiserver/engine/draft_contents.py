"""What is checked and done with a draft's contents before they are saved, whoever sends them.

Source: ``porch-api.md`` 3.6, 5.2 to 5.5.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from apiserver.engine.off_loop import off_loop
from apiserver.engine.refusals import refuse
from apiserver.engine.rendering import Renderer
from apiserver.rules.gate_fields import conditions_in, merged_conditions, merged_gates, own_gates
from apiserver.rules.pipeline_gate import shortened
from apiserver.rules.revision_changes import INTERNAL
from krm.functions.pipeline import Rendered
from krm.meta.errors import Cause, Invalid
from krm.package.contents import Contents, ContentsError, File, check_contents
from krm.package.kptfile import Kptfile, KptfileEdit, KptfileError, RenderedStatus, edit_kptfile, parse_kptfile
from storage.git.discovery import MAX_KPTFILE

Json = dict[str, Any]

NOT_PUSHED = (
    "error rendering package in kpt function pipeline. Package NOT pushed to remote. Fix locally (until 'kpt fn render' "
    "succeeds) and retry. Details: "
)
PUSHED = "error rendering package in kpt function pipeline. Package pushed to remote despite render failure. Details: "
"""For what was kept. It is durable as any save, and in the remote when any save is (``decisions.md`` 8)."""
MOST_DETAILS = 16 << 10
"""Characters of a render's error that its refusal repeats."""
MOST_CAUSES = 50
"""Of one failed render that its refusal names."""
MOST_CAUSE = 1024
"""Characters of one."""


async def render_checked(
    renderer: Renderer, name: str, contents: Contents, *, keeps_failure: bool = False
) -> dict[str, File]:
    """Check contents and run their pipeline.

    With ``keeps_failure`` the contents of a failed render are what an in-place render leaves: unrendered, and the Kptfile
    says that it failed.

    Raises:
        Invalid: no package may have these contents, or their pipeline fails.
    """
    await off_loop(contents, check_package, name, contents)
    rendered = await renderer.render(contents)
    if rendered.failed and keeps_failure:
        return await off_loop(rendered.contents, failed_contents, name, rendered)
    if rendered.failed:
        why = NOT_PUSHED + shortened(rendered.error, MOST_DETAILS)
        causes = [Cause("FieldValueInvalid", why, "spec.tasks"), *render_causes(rendered)]
        raise Invalid(INTERNAL + why, name=name, group="porch.kpt.dev", kind="PackageRevision", causes=causes)
    await off_loop(rendered.contents, check_rendered, name, rendered)
    return dict(rendered.contents)


def failed_contents(name: str, rendered: Rendered) -> dict[str, File]:
    """Return what is kept of a package whose render failed, with a Kptfile that says so.

    A pipeline that could not even be read leaves an older condition in the Kptfile, which must not pass for this render's.

    Raises:
        Invalid: as :func:`check_package`.
    """
    contents = dict(rendered.contents)
    if rendered.status is None:
        message = rendered.cause or rendered.error
        contents = edit_root_kptfile(name, contents, KptfileEdit(rendered=RenderedStatus(False, message)))
    check_package(name, contents)
    return contents


def refuse_render(name: str, text: str, rendered: Rendered) -> Invalid:
    """Refuse files whose pipeline failed; ``text`` says what became of them, the causes what each function said."""
    why = text + shortened(rendered.error, MOST_DETAILS)
    causes = [Cause("FieldValueInvalid", why, "spec.resources"), *render_causes(rendered)]
    return Invalid(INTERNAL + why, name=name, group="porch.kpt.dev", kind="PackageRevisionResources", causes=causes)


def render_causes(rendered: Rendered) -> list[Cause]:
    """Return one cause for each thing that a function found wrong, in the order of the pipeline (``variants.md`` R7)."""
    causes = []
    for step in rendered.steps:
        if step.exit_code and not step.errors:
            causes.append(_function_cause(step.title, step.execution_error or step.stderr or "failed", {}))
        causes += [_function_cause(step.title, str(error.get("message") or ""), error) for error in step.errors]
    return causes[:MOST_CAUSES]


def _function_cause(function: str, message: str, result: Mapping[str, Any]) -> Cause:
    path = (result.get("file") or {}).get("path")
    field = (result.get("field") or {}).get("path")
    where = f" ({field})" if field else ""
    text = shortened(f"{function}: {message.strip()}{where}", MOST_CAUSE)
    return Cause("FunctionFailed", text, f"spec.resources[{path}]" if path else "spec.resources")


def check_rendered(name: str, rendered: Rendered) -> None:
    """Refuse what functions made of a package, if no package may have it: they may even delete the Kptfile.

    Raises:
        Invalid: as :func:`check_package`.
    """
    if rendered.steps:
        check_package(name, rendered.contents)
    elif "Kptfile" in rendered.contents:
        _check_size(name, rendered.contents["Kptfile"].data)


def check_package(name: str, contents: Contents) -> None:
    """Refuse contents that no package may have.

    Raises:
        Invalid: a path, the number or the size of the files, or the Kptfile is at fault.
    """
    try:
        check_contents(contents)
        kptfile = contents.get("Kptfile")
        if kptfile is None:
            raise refuse_save(name, "spec.resources", "package must contain Kptfile at root: there is none")
        _check_size(name, kptfile.data)
        parse_kptfile(kptfile.data)
    except (ContentsError, KptfileError) as error:
        raise refuse_save(name, "spec.resources", str(error)) from error


def _check_size(name: str, kptfile: bytes) -> None:
    """Refuse a Kptfile that could not be read again from Git, so that its package would not be found there."""
    if len(kptfile) > MAX_KPTFILE:
        why = f"the Kptfile has {len(kptfile)} bytes, more than {MAX_KPTFILE}"
        raise refuse_save(name, "spec.resources[Kptfile]", why)


def refuse_save(name: str, field: str, why: str) -> Invalid:
    """Refuse contents: 422 with upstream's sentence in the message (``decisions.md`` 15)."""
    cause = Cause("FieldValueInvalid", why, field)
    return Invalid(INTERNAL + why, name=name, group="porch.kpt.dev", kind="PackageRevisionResources", causes=[cause])


def with_metadata(name: str, contents: dict[str, File], wanted: Json) -> dict[str, File]:
    """Put the package metadata, gates and conditions of a create into the Kptfile that its source gives.

    They are added to what is there; what is sent wins. Source: ``porch-api.md`` 3.6, ``variants.md`` R1.

    Raises:
        Invalid: the Kptfile cannot be read.
    """
    kptfile = contents.get("Kptfile")
    if kptfile is None:
        return contents
    metadata = wanted["spec"].get("packageMetadata") or {}
    edit = KptfileEdit(labels=metadata.get("labels"), annotations=metadata.get("annotations"))
    if own_gates(wanted) is not None or conditions_in(wanted) is not None:
        present = read_kptfile(name, kptfile.data)
        gates, conditions = merged_gates(present.readiness_gates, wanted), merged_conditions(present.conditions, wanted)
        edit = replace(edit, readiness_gates=gates, conditions=conditions)
    return edit_root_kptfile(name, contents, edit)


def read_kptfile(name: str, data: bytes) -> Kptfile:
    """Read a package's own Kptfile.

    Raises:
        Invalid: it cannot be read.
    """
    try:
        return parse_kptfile(data)
    except KptfileError as error:
        raise refuse(name, "spec.packageMetadata", f"the Kptfile cannot be edited: {error}") from error


def edit_root_kptfile(name: str, contents: dict[str, File], edit: KptfileEdit) -> dict[str, File]:
    """Edit the package's own Kptfile; without one the contents stay as they are.

    Raises:
        Invalid: the Kptfile cannot be read, or is too large afterwards.
    """
    kptfile = contents.get("Kptfile")
    if kptfile is None:
        return contents
    try:
        data = edit_kptfile(kptfile.data, edit)
    except KptfileError as error:
        raise refuse(name, "spec.packageMetadata", f"the Kptfile cannot be edited: {error}") from error
    _check_size(name, data)
    return {**contents, "Kptfile": File(data, kptfile.mode)}

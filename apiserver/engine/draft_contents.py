"""What is checked and done with a draft's contents before they are saved, whoever sends them.

Source: ``porch-api.md`` 3.6, 5.2 to 5.5.
"""

from apiserver.engine.rendering import Renderer
from apiserver.engine.tasks import refuse
from apiserver.rules.revision_changes import INTERNAL
from krm.functions.pipeline import Rendered
from krm.meta.errors import Cause, Invalid
from krm.package.contents import Contents, ContentsError, File, check_contents
from krm.package.kptfile import KptfileEdit, KptfileError, edit_kptfile, parse_kptfile

NOT_PUSHED = (
    "rendering package in kpt function pipeline. Package NOT pushed to remote. Fix locally (until 'kpt fn render' "
    "succeeds) and retry. Details: "
)


async def render_checked(renderer: Renderer, name: str, contents: Contents) -> dict[str, File]:
    """Check contents and run their pipeline.

    Raises:
        Invalid: no package may have these contents, or their pipeline fails.
    """
    check_package(name, contents)
    rendered = await renderer.render(contents)
    if rendered.failed:
        raise refuse(name, "spec.tasks", f"error {NOT_PUSHED}{rendered.error}")
    check_rendered(name, rendered)
    return dict(rendered.contents)


def check_rendered(name: str, rendered: Rendered) -> None:
    """Refuse what functions made of a package, if no package may have it: they may even delete the Kptfile.

    Raises:
        Invalid: as :func:`check_package`.
    """
    if rendered.steps:
        check_package(name, rendered.contents)


def check_package(name: str, contents: Contents) -> None:
    """Refuse contents that no package may have.

    Raises:
        Invalid: a path, the number or the size of the files, or the Kptfile is at fault.
    """
    try:
        check_contents(contents)
        if "Kptfile" in contents:
            parse_kptfile(contents["Kptfile"].data)
    except (ContentsError, KptfileError) as error:
        raise refuse_save(name, "spec.resources", str(error)) from error
    if "Kptfile" not in contents:
        raise refuse_save(name, "spec.resources", "package must contain Kptfile at root: there is none")


def refuse_save(name: str, field: str, why: str) -> Invalid:
    """Refuse contents: 422 with upstream's sentence in the message (``decisions.md`` 15)."""
    cause = Cause("FieldValueInvalid", why, field)
    return Invalid(INTERNAL + why, name=name, group="porch.kpt.dev", kind="PackageRevisionResources", causes=[cause])


def edit_root_kptfile(name: str, contents: dict[str, File], edit: KptfileEdit) -> dict[str, File]:
    """Edit the package's own Kptfile; without one the contents stay as they are.

    Raises:
        Invalid: the Kptfile cannot be read.
    """
    kptfile = contents.get("Kptfile")
    if kptfile is None:
        return contents
    try:
        data = edit_kptfile(kptfile.data, edit)
    except KptfileError as error:
        raise refuse(name, "spec.packageMetadata", f"the Kptfile cannot be edited: {error}") from error
    return {**contents, "Kptfile": File(data, kptfile.mode)}

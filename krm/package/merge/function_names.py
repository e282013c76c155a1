"""Names for the functions of a pipeline while it is merged, so that they can be matched. Source: ``kpt.md`` 3.5."""

from collections.abc import Collection, Sequence
from typing import Any

PREFIX = "_kpt-merge_"
FUNCTION_LISTS = ("mutators", "validators")


def name_functions(kptfiles: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the Kptfiles with every function named after what it runs, and the lists where that was possible.

    A list is done when no function of it has a name in any of the Kptfiles, and none of them runs the same
    image, tags apart, or executable twice in it. Other lists keep what they have.
    """
    named = [dict(kptfile) for kptfile in kptfiles]
    done = []
    for kind in FUNCTION_LISTS:
        lists = [(kptfile.get("pipeline") or {}).get(kind) or [] for kptfile in kptfiles]
        if not all(map(_can_be_named, lists)):
            continue
        done.append(kind)
        for kptfile, functions in zip(named, lists, strict=True):
            if functions:
                given = [{**function, "name": PREFIX + _what_it_runs(function)} for function in functions]
                kptfile["pipeline"] = {**kptfile["pipeline"], kind: given}
    return named, tuple(done)


def without_names(kptfile: dict[str, Any], lists: Collection[str]) -> dict[str, Any]:
    """Return a merged Kptfile without the names that :func:`name_functions` gave in these lists."""
    pipeline = kptfile.get("pipeline")
    if not isinstance(pipeline, dict):
        return kptfile
    unnamed = {
        kind: [{key: value for key, value in function.items() if key != "name"} for function in pipeline[kind]]
        for kind in lists
        if pipeline.get(kind)
    }
    return {**kptfile, "pipeline": {**pipeline, **unnamed}}


def _can_be_named(functions: list[dict[str, Any]]) -> bool:
    names = [_what_it_runs(function) for function in functions]
    return all(names) and len(set(names)) == len(names) and not any("name" in function for function in functions)


def _what_it_runs(function: dict[str, Any]) -> str:
    """Return the base name of the image, or the executable; empty when there is neither."""
    image: str = function.get("image", "")
    return image.rpartition("/")[2].partition(":")[0] or str(function.get("exec", ""))

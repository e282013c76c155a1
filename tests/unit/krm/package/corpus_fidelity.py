"""Every kind of edit at many places of every file in the corpus; the tests try 20 for each.

    python tests/unit/krm/package/corpus_fidelity.py [places per file, default 200] [seed]

Prints each fault with its file and place, and at the end how the edits were made.
"""

import sys

from corpus_documents import VALUES, added, check_edit, places, removed, replaced, seeded, yaml_files

from krm.package.yaml_edit_text import EDIT_WAYS


def main() -> int:
    """Return how many edits went wrong, 1 at most."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = sys.argv[2] if len(sys.argv) > 2 else ""
    faults = 0
    for name, data in yaml_files():
        chance = seeded(seed + name)
        for place in places(data, count, chance):
            value = chance.choice(VALUES)
            for edit in (added(place, value), replaced(place, value), removed(place)):
                if fault := check_edit(place.document, *edit):
                    faults += 1
                    sys.stdout.write(f"{name} {place.path}: {fault}\n")
    ways = ", ".join(f"{way}: {number}" for way, number in EDIT_WAYS.items())
    sys.stdout.write(f"{faults} faults; {ways}\n")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())

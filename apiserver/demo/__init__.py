"""``porch demo``: the life of a package, told with real kubectl and Git remotes of its own.

No part of a serving process. ``narration`` shows commands and their output, ``remotes`` serves Git,
``surroundings`` finds or starts the server, ``story`` is what happens, ``crash`` its last chapter.
"""

from apiserver.demo.story import run

__all__ = ["run"]

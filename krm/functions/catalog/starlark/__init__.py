"""The function ``starlark``: scripts in packages, run in a child process with limits.

``function`` is what the pipeline calls, ``worker_process`` its end of the pipe; ``worker`` and below run in the child.
"""

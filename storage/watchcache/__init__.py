"""The watch cache: every object in memory as bytes ready to serve, fed by the log in revision order.

``store`` is the :class:`storage.interfaces.ObjectStore`; ``cache`` holds one resource, ``ring`` its newest events,
``cursor`` one watcher's position, ``commits`` the group commit, ``follower`` the writes of other processes,
``history`` what only the log still knows, ``compactor`` the clean-up. Everything but the database
runs in the event loop, so a step without ``await`` is atomic. Source: ``kube-api.md`` 5.4.
"""

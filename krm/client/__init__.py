"""A client of the Kubernetes API for programs that watch much and write little: requests, discovery and caches.

It knows paths, answers and events, and nothing of what the objects mean. Built on the configuration of kubernetes-asyncio
and on aiohttp. Source: ``architecture.md`` 3.7.
"""

"""An event becomes a decision: settings give the hooks, a plan fires them, and their answers are merged.

- ``protocol``: what crosses the pipe, in both directions
- ``engine``: registry, planner, plan, runner, aggregator, results, observers
- ``executors``: how hooks are run, one module per hook type
- ``calls``: hooks around a tool, a model call, a session
- ``loops``: hooks for callers without asyncio, and what belongs to one event loop
"""

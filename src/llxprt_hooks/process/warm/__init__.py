"""Python scripts at the cost of a fork: one waiting interpreter for each executable, flags and start-up environment.

``pool`` starts the interpreters and passes requests to them; ``zygote`` is the program that they run. A warm script
is a ``Child`` like any other: same pipes, own session and process group, same timeout, kill and output limit.

What a script can see is as in a fresh start, except: the parent process is the zygote; the hash seed is the zygote's,
unless PYTHONHASHSEED is set; ``/proc`` shows the zygote's command line and start variables; and standard-library
modules that the zygote imported are in ``sys.modules``.

A script runs once: a zygote that leaves reports the end of those that were accepted, and every other script is started
in the usual way.
"""

from llxprt_hooks.process.warm.pool import PythonStart, ScriptOffer, ZygotePool, zygotes

__all__ = ["PythonStart", "ScriptOffer", "ZygotePool", "zygotes"]

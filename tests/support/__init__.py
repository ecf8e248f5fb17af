"""What tests share.

| module | |
|---|---|
| ``project`` | a throwaway project: home, settings of each level, scripts, hooks that record their input, trust |
| ``cli`` | the command line, run in this process or as a process of its own |
| ``agent`` | the agent: one run with recorded answers or over HTTP |
| ``gemini`` | the Gemini API on a loopback socket |
| ``terminal``, ``display`` | a program in a pseudo-terminal, and what its user sees |
| ``replies`` | what hooks answer, and an event or a tool call with such hooks |
| ``stream_server`` | servers on the event loop of a test |
| ``processes`` | waiting for other processes, and whether they live |
| ``fixtures`` | fixtures for all folders |

A folder's own helpers stay in that folder; what two folders need comes here.
"""

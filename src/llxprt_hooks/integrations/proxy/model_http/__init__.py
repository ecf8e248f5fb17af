"""The model proxy: hooks around the model calls of any agent, in any language, that can be given a base URL.

It is an HTTP server on this machine that passes requests on to the APIs of Anthropic and OpenAI, or to others that
speak the same. A model call that has hooks waits for them; ``http_call`` makes it. Everything else passes byte for
byte, as it arrives: other paths, errors, and all calls if no hook is configured for the model.

- A base URL stands for one API, and goes to one configured upstream. There is no way to name another host.
- Keys stay in the requests. Neither they nor any body is logged.
- A browser cannot be made to use it by another site: the ``Host`` and the ``Origin`` of a request are checked.
- If the client goes away, its call ends: the hooks that run for it, and the request to the API.
"""

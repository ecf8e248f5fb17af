"""The policy worker, ``llxprt-hooks serve``: runs its hooks for agents on this and other machines."""

"""What agents call around each tool call and each model call.

Failures of hooks never raise here. The calls of ``hooks.Hooks`` (``session_calls``, ``stream``, ``decorated``) raise
for mistakes in the calling program, and for a stop outside of a session.
"""

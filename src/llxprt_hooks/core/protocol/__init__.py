"""What the engine and a hook send each other: payloads, outputs, exit codes."""

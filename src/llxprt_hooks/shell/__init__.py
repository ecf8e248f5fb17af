"""From a command string to an argument vector and an environment."""

"""Turns a command string into an argument vector and an environment."""

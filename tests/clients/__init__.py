"""Hooks around the real clients of OpenAI and Anthropic, against a server on this machine."""

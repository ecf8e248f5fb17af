"""The engine: settings in, decision out."""

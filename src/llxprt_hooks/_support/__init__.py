"""What every package may use: text, JSON, logging, the terminal, HTTP. Nothing here knows hooks."""

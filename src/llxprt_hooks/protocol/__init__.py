"""What crosses the pipe."""

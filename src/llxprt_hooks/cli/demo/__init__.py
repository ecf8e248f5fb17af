"""What ``llxprt-hooks demo`` shows: a project with hooks, and recorded answers of a model."""

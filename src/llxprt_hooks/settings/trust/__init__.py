"""Whether a project's hooks may run."""

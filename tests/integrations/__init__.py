"""The frameworks, each with real hooks: `make test-integrations` runs these tests in an environment of their own."""

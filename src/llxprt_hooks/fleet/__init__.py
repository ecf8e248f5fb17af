"""Beyond one machine: hooks over NATS, workers that serve them, and the audit trail."""

"""What hooks are configured, what they would do, and what they did."""

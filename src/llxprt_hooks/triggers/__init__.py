"""What agents call around each tool call and each model call. Nothing here raises, except for cancellation."""

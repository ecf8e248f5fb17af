"""What agents call: around each tool call and each model call. Nothing here ever raises, but for cancellation."""

"""What a question found, as text and as JSON."""

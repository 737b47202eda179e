"""The training loops that people write, and which of them are compiled."""

"""What is read from a recorded run."""

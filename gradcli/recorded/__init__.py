"""What is read from a run that was recorded, and what several questions need of it."""

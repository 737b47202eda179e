"""What is asked of a program: a question finds its answer, tells it, declares its command."""

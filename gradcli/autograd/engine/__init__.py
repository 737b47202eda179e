"""The backward pass: the engine, accumulation, the compiled backward."""

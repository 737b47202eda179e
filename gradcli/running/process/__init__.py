"""The process around a run: terminal, signals, memory ceiling, workers."""

"""Recording of what runs: the recorder, the trace recorder, listeners."""

"""Special functions of arrays, in NumPy alone."""

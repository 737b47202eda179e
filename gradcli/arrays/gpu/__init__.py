"""CuPy's arrays with NumPy's behaviour."""

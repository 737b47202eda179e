"""Results, graphs and reports as text: pure functions, which print nothing."""

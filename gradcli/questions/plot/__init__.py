"""A function of one variable drawn, with its derivative and tangents."""

"""matplotlib as programs see it: pyplot, figures and axes, whose pictures are plain data."""

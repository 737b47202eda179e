"""How elements lie in memory: sizes, strides, memory formats, views."""

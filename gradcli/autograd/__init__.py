"""Tensors, the graph behind them, and the engine that runs it backward. Defines no op."""

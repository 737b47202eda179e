"""Tensors, the graph behind them, and the engine that runs it backward. No op is defined here."""

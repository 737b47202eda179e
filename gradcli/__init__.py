"""PyTorch's autograd at the shell: values, gradients and the graph behind them."""

__version__ = "0.1.0"

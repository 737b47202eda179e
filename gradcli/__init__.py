"""PyTorch's autograd at the shell: values, gradients and the graph behind them."""

import os

# One BLAS thread, set before NumPy is imported: `kernels/linalg/products.py` says why.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"

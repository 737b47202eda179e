"""`derive`: the gradient as a program and as a formula."""

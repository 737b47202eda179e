"""Functions of matrices: `matrix_exp pinv matrix_rank cond lstsq`."""

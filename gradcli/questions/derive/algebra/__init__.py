"""Rules for formulas: sums of products, quotients of polynomials, products of matrices."""

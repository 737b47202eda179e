/* Special functions of float64: those that the C library has, and quotients of polynomials. */

KERNEL(erf_wide)
{
    NEED(N(0) == N(1));
    for (int64_t k = 0; k < N(0); k++) D(1)[k] = erf(D(0)[k]);
    return NULL;
}

KERNEL(erfc_wide)
{
    NEED(N(0) == N(1));
    for (int64_t k = 0; k < N(0); k++) D(1)[k] = erfc(D(0)[k]);
    return NULL;
}

KERNEL(lgamma_wide)
{
    NEED(N(0) == N(1));
    for (int64_t k = 0; k < N(0); k++) D(1)[k] = lgamma(D(0)[k]);
    return NULL;
}

enum { LOCAL(ABREAST) = 16 };

/* A polynomial at several places, by Horner's rule. */
INLINE void LOCAL(horner)(const double *x, const double *coefficients, int64_t count,
                                 double *out)
{
    double sums[LOCAL(ABREAST)];
    for (int k = 0; k < LOCAL(ABREAST); k++) sums[k] = coefficients[count - 1];
    for (int64_t j = count - 2; j >= 0; j--) {
        double coefficient = coefficients[j];
        for (int k = 0; k < LOCAL(ABREAST); k++) sums[k] = sums[k] * x[k] + coefficient;
    }
    for (int k = 0; k < LOCAL(ABREAST); k++) out[k] = sums[k];
}

/* quotient(x, numerator, denominator, out): of polynomials, whose coefficients stand from the
 * constant up; without a denominator, of none, the numerator. */
KERNEL(quotient)
{
    enum { ABREAST = LOCAL(ABREAST) };
    const double *x = D(0);
    double *out = D(3), places[ABREAST] = {0}, above[ABREAST], below[ABREAST];
    NEED(N(0) == N(3) && N(1) > 0);
    for (int64_t start = 0; start < N(0); start += ABREAST) {
        int64_t count = N(0) - start < ABREAST ? N(0) - start : ABREAST;
        memcpy(places, x + start, (size_t)count * sizeof *x);
        LOCAL(horner)(places, D(1), N(1), above);
        if (N(2)) {
            LOCAL(horner)(places, D(2), N(2), below);
            for (int k = 0; k < ABREAST; k++) above[k] /= below[k];
        }
        memcpy(out + start, above, (size_t)count * sizeof *out);
    }
    return NULL;
}

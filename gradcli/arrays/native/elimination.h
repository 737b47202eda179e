/* Elimination, in float32 and float64. The matrices of a batch lie one after the other, row by row. */

/* eliminate(matrices, pivots, info, rows, columns): the LU decomposition with partial pivoting in
 * the matrices' place; the rows swapped with, and the first pivot that is 0, are counted from 1.
 * What is not a number is larger only than what comes after it. */
#define ELIMINATE(NAME, REAL, ABS) \
    static void LOCAL(NAME##_one)(REAL *lu, int64_t *pivots, int64_t *info, int64_t rows, \
                                  int64_t columns) \
    { \
        int64_t count = rows < columns ? rows : columns; \
        for (int64_t k = 0; k < count; k++) { \
            int64_t position = k; \
            REAL largest = ABS(lu[k * columns + k]); \
            if (largest == largest) \
                for (int64_t i = k + 1; i < rows; i++) \
                    if (ABS(lu[i * columns + k]) > largest) { \
                        largest = ABS(lu[i * columns + k]); \
                        position = i; \
                    } \
            pivots[k] = position + 1; \
            REAL *top = lu + k * columns, *other = lu + position * columns; \
            if (position != k) \
                for (int64_t j = 0; j < columns; j++) { \
                    REAL kept = top[j]; \
                    top[j] = other[j]; \
                    other[j] = kept; \
                } \
            if (top[k] == 0 && !*info) *info = k + 1; \
            REAL divisor = top[k] == 0 ? 1 : top[k], inverse = 1 / divisor; \
            for (int64_t i = k + 1; i < rows; i++) { \
                REAL *row = lu + i * columns, factor; \
                factor = rows <= 4 && k == rows - 2 ? row[k] / divisor : row[k] * inverse; \
                row[k] = factor; \
                EACH_APART \
                for (int64_t j = k + 1; j < columns; j++) row[j] -= factor * top[j]; \
            } \
        } \
    } \
    KERNEL(NAME) \
    { \
        int64_t rows = N(3), columns = N(4), count = rows < columns ? rows : columns; \
        int64_t size = N(2); \
        NEED(rows > 0 && columns > 0 && N(0) == size * rows * columns && N(1) == size * count); \
        for (int64_t n = 0; n < size; n++) { \
            I(2)[n] = 0; \
            LOCAL(NAME##_one)((REAL *)a[0].data + n * rows * columns, I(1) + n * count, I(2) + n, \
                              rows, columns); \
        } \
        return NULL; \
    }

ELIMINATE(eliminate, float, fabsf)
ELIMINATE(eliminate_wide, double, fabs)
#undef ELIMINATE

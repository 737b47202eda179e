/* Functions of one number. Loops over them are vectorised by the compiler: no branches, no calls. */

/* a * b + c, rounded once. Without the instruction, double holds the product exactly. */
static inline float LOCAL(fma)(float a, float b, float c)
{
#ifdef HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    return (float)((double)a * b + c);
#endif
}

static inline uint32_t LOCAL(bits)(float x)
{
    uint32_t found;
    memcpy(&found, &x, sizeof found);
    return found;
}

static inline float LOCAL(from_bits)(uint32_t x)
{
    float found;
    memcpy(&found, &x, sizeof found);
    return found;
}

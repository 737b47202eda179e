/* Functions of one number. Loops over them are vectorised by the compiler: no branches, no calls. */

/* a * b + c, rounded once. Without the instruction, double holds the product exactly. */
INLINE float LOCAL(fma)(float a, float b, float c)
{
#ifdef HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    return (float)((double)a * b + c);
#endif
}

INLINE uint32_t LOCAL(bits)(float x)
{
    uint32_t found;
    memcpy(&found, &x, sizeof found);
    return found;
}

INLINE float LOCAL(from_bits)(uint32_t x)
{
    float found;
    memcpy(&found, &x, sizeof found);
    return found;
}

/* Whether all are finite. */
static int LOCAL(are_finite)(const float *x, int64_t count)
{
    enum { WIDE = 16 };
    float sums[WIDE] = {0}, total = 0;
    int64_t k = 0;
    for (; k + WIDE <= count; k += WIDE)
        for (int lane = 0; lane < WIDE; lane++) sums[lane] += x[k + lane] * 0.0f;
    for (int lane = 0; k < count; k++, lane++) sums[lane] += x[k] * 0.0f;
    for (int lane = 0; lane < WIDE; lane++) total += sums[lane];
    return total == 0;
}

/* exp(x), at most 1 unit in the last place off. The polynomials here are fitted by weighted least
 * squares, their coefficients rounded one after another. */
INLINE float LOCAL(exp_of)(float x)
{
    int vanishes = x < -104.0f; /* to 0, of which processors make slow work where it underflows */
    x = x > 89.0f ? 89.0f : vanishes ? 0.0f : x; /* nan stays */
    float shifted = LOCAL(fma)(x, 0x1.715476p+0f, 0x1.8p23f), whole = shifted - 0x1.8p23f;
    float r = LOCAL(fma)(whole, -0x1.62e400p-1f, x); /* log(2) in two parts */
    r = LOCAL(fma)(whole, -0x1.7f7d1cp-20f, r);
    float y = 0x1.9e1b2ap-13f;
    y = LOCAL(fma)(y, r, 0x1.6d4f3ap-10f);
    y = LOCAL(fma)(y, r, 0x1.111300p-7f);
    y = LOCAL(fma)(y, r, 0x1.5554e6p-5f);
    y = LOCAL(fma)(y, r, 0x1.555554p-3f);
    y = LOCAL(fma)(y, r, 0.5f);
    y = LOCAL(fma)(y * r, r, r) + 1.0f;
    uint32_t power = LOCAL(bits)(shifted) - LOCAL(bits)(0x1.8p23f); /* of two, in two steps */
    uint32_t half = power >> 1 | (power & 0x80000000u);
    y *= LOCAL(from_bits)((half + 127u) << 23);
    return vanishes ? 0.0f : y * LOCAL(from_bits)((power - half + 127u) << 23);
}

/* erf(x), likewise. */
INLINE float LOCAL(erf_of)(float x)
{
    float t = fabsf(x), s = x * x;
    t = t > 4.0f ? 4.0f : t; /* from there on it is 1 */
    float y = 0x1.4f6760p-14f;
    y = LOCAL(fma)(y, s, -0x1.a60a2ep-11f);
    y = LOCAL(fma)(y, s, 0x1.544a1ap-8f);
    y = LOCAL(fma)(y, s, -0x1.b8011ap-6f);
    y = LOCAL(fma)(y, s, 0x1.ce2d64p-4f);
    y = LOCAL(fma)(y, s, -0x1.812740p-2f);
    y = LOCAL(fma)(y, s, 0x1.06eba8p-3f);
    y = LOCAL(fma)(y, x, x);
    float z = 0x1.829404p-17f;
    z = LOCAL(fma)(z, t, -0x1.55756ap-12f);
    z = LOCAL(fma)(z, t, 0x1.dee682p-9f);
    z = LOCAL(fma)(z, t, -0x1.85b2a6p-6f);
    z = LOCAL(fma)(z, t, 0x1.b340e8p-4f);
    z = LOCAL(fma)(z, t, 0x1.45308ap-1f);
    z = LOCAL(fma)(z, t, 0x1.077ac8p-3f);
    z = 1.0f - LOCAL(exp_of)(-LOCAL(fma)(z, t, t));
    z = LOCAL(from_bits)(LOCAL(bits)(z) | (LOCAL(bits)(x) & 0x80000000u));
    return t > 0.921875f ? z : y;
}

INLINE float LOCAL(tanh_of)(float x)
{
    float t = fabsf(x), s = x * x;
    float y = 0x1.e76c16p-14f;
    y = LOCAL(fma)(y, s, -0x1.ae8cbap-11f);
    y = LOCAL(fma)(y, s, 0x1.8f862cp-9f);
    y = LOCAL(fma)(y, s, -0x1.18db64p-7f);
    y = LOCAL(fma)(y, s, 0x1.64c044p-6f);
    y = LOCAL(fma)(y, s, -0x1.b9f6dap-5f);
    y = LOCAL(fma)(y, s, 0x1.11103cp-3f);
    y = LOCAL(fma)(y, s, -0x1.555552p-2f);
    y = LOCAL(fma)(y * s, x, x);
    float z = 1.0f - 2.0f / (LOCAL(exp_of)(2.0f * (t > 10.0f ? 10.0f : t)) + 1.0f);
    z = LOCAL(from_bits)(LOCAL(bits)(z) | (LOCAL(bits)(x) & 0x80000000u));
    return t > 1.0f ? z : y;
}

/* 1 / (1 + exp(-x)), of whose small values none is lost. */
INLINE float LOCAL(sigmoid_of)(float x)
{
    return 1.0f / (1.0f + LOCAL(exp_of)(-x));
}

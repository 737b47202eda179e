/* Half precision, by its bits: float16, or bfloat16 where a kernel is told `brain`. The instructions
 * that convert float16 quiet nans: a block with one is converted without them from there on. */

static void LOCAL(widen)(const uint16_t *x, float *out, int64_t count, int64_t brain)
{
    int64_t k = 0;
    for (; brain && k < count; k++) out[k] = LOCAL(from_bits)((uint32_t)x[k] << 16);
#ifdef HAS_F16C
    for (; k + 8 <= count; k += 8) {
        __m256 found = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + k)));
        if (_mm256_movemask_ps(_mm256_cmp_ps(found, found, _CMP_UNORD_Q))) break;
        _mm256_storeu_ps(out + k, found);
    }
#endif
    EACH_APART
    for (; k < count; k++) {
        uint32_t rest = (x[k] & 0x7fffu) << 13, ones = rest < 31u << 23 ? 0 : 0x7f800000u;
        uint32_t scaled = LOCAL(bits)(LOCAL(from_bits)(rest) * 0x1p112f);
        out[k] = LOCAL(from_bits)(scaled | ones | (x[k] & 0x8000u) << 16);
    }
}

/* Each rounded to the nearest, of two to the even one; a nan keeps the bits for which there is room,
 * in bfloat16 none. */
static void LOCAL(narrow)(const float *x, uint16_t *out, int64_t count, int64_t brain)
{
    int64_t k = 0;
    for (; brain && k < count; k++) {
        uint32_t all = LOCAL(bits)(x[k]), nan = (all >> 16 & 0x8000u) | 0x7fc0u;
        out[k] = (uint16_t)(x[k] != x[k] ? nan : (all + 0x7fffu + (all >> 16 & 1)) >> 16);
    }
#ifdef HAS_F16C
    for (; k + 8 <= count; k += 8) {
        __m256 given = _mm256_loadu_ps(x + k);
        if (_mm256_movemask_ps(_mm256_cmp_ps(given, given, _CMP_UNORD_Q))) break;
        _mm_storeu_si128((__m128i *)(out + k), _mm256_cvtps_ph(given, _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    EACH_APART
    for (; k < count; k++) {
        uint32_t all = LOCAL(bits)(x[k]), rest = all & 0x7fffffffu, nan = rest >> 13 & 0x3ff;
        uint32_t small = LOCAL(bits)(LOCAL(from_bits)(rest) + 0.5f) - 0x3f000000u;
        uint32_t found = (rest + 0xfffu + (rest >> 13 & 1) - (112u << 23)) >> 13;
        found = rest < 113u << 23 ? small : found > 0x7c00u ? 0x7c00u : found;
        found = rest > 0x7f800000u ? 0x7c00u | (nan ? nan : 1) : found;
        out[k] = (uint16_t)(found | (all >> 16 & 0x8000u));
    }
}

KERNEL(half_to_single)
{
    NEED(N(0) == N(1));
    LOCAL(widen)(H(0), F(1), N(0), 0);
    return NULL;
}

/* single_to_half(x, out, brain) */
KERNEL(single_to_half)
{
    NEED(N(0) == N(1));
    LOCAL(narrow)(F(0), H(1), N(0), N(2));
    return NULL;
}

/* half_arithmetic(x, y, out, which, brain): + - * / maximum minimum, in float32, rounded once; y is
 * repeated. Of two zeros float16 keeps y, bfloat16 x. */
KERNEL(half_arithmetic)
{
    enum { SOME = 512 };
    float x[SOME], y[SOME];
    int64_t which = N(3), brain = N(4), one = N(1) == 1, some;
    NEED(N(2) == N(0) && (!N(0) || (N(1) && N(0) % N(1) == 0)) && which >= 0 && which < 6);
    if (one) LOCAL(widen)(H(1), x, 1, brain);
    for (int k = 0; one && k < SOME; k++) y[k] = x[0];
    for (int64_t k = 0; k < N(0); k += some) {
        int64_t at = k % N(1), left = one ? N(0) - k : N(1) - at;
        some = left < SOME ? left : SOME;
        LOCAL(widen)(H(0) + k, x, some, brain);
        if (!one) LOCAL(widen)(H(1) + at, y, some, brain);
#define EACH(j, number, result) if (which == number) for (int j = 0; j < some; j++) x[j] = result;
        EACH(j, 0, x[j] + y[j])
        EACH(j, 1, x[j] - y[j])
        EACH(j, 2, x[j] * y[j])
        EACH(j, 3, x[j] / y[j])
        EACH(j, 4, x[j] < y[j] || y[j] != y[j] || (!brain && x[j] == y[j]) ? y[j] : x[j])
        EACH(j, 5, x[j] > y[j] || y[j] != y[j] || (!brain && x[j] == y[j]) ? y[j] : x[j])
#undef EACH
        LOCAL(narrow)(x, H(2) + k, some, brain);
    }
    return NULL;
}

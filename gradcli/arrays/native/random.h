/* The Mersenne Twister, and normal numbers from uniform ones as PyTorch makes them. */

enum { LOCAL(WORDS) = 624, LOCAL(AHEAD) = 397 };

INLINE uint32_t LOCAL(twisted)(uint32_t high, uint32_t low)
{
    uint32_t mixed = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (mixed >> 1) ^ (0x9908b0dfu & (0u - (low & 1u)));
}

static void LOCAL(next_words)(uint32_t *key)
{
    enum { ALL = LOCAL(WORDS), AHEAD = LOCAL(AHEAD) };
    EACH_APART
    for (int k = 0; k < ALL - AHEAD; k++) key[k] = key[k + AHEAD] ^ LOCAL(twisted)(key[k], key[k + 1]);
    for (int start = ALL - AHEAD; start < ALL - 1; start += ALL - AHEAD) {
        int stop = start + ALL - AHEAD < ALL - 1 ? start + ALL - AHEAD : ALL - 1;
        EACH_APART
        for (int k = start; k < stop; k++)
            key[k] = key[k - (ALL - AHEAD)] ^ LOCAL(twisted)(key[k], key[k + 1]);
    }
    key[ALL - 1] = key[AHEAD - 1] ^ LOCAL(twisted)(key[ALL - 1], key[0]);
}

/* How many of some words are there to be drawn, of new ones if none is left. The state is the 624
 * words and, behind them, where the next draw is. */
INLINE int64_t LOCAL(ready)(uint32_t *key, int64_t count)
{
    enum { ALL = LOCAL(WORDS) };
    if (key[ALL] == ALL) {
        LOCAL(next_words)(key);
        key[ALL] = 0;
    }
    return ALL - key[ALL] < count ? ALL - key[ALL] : count;
}

INLINE uint32_t LOCAL(tempered)(uint32_t word)
{
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ word >> 18;
}

/* mersenne_seed(state, seed) */
KERNEL(mersenne_seed)
{
    enum { ALL = LOCAL(WORDS) };
    uint32_t word = (uint32_t)N(1);
    NEED(N(0) == ALL + 1 && N(1) == word);
    for (uint32_t k = 0; k < ALL; k++) {
        U(0)[k] = word;
        word = 1812433253u * (word ^ word >> 30) + k + 1;
    }
    U(0)[ALL] = ALL;
    return NULL;
}

static const char *LOCAL(draw)(const Argument *a, int uniform)
{
    uint32_t *key = U(0), *drawn = key + LOCAL(WORDS);
    NEED(N(0) == LOCAL(WORDS) + 1 && *drawn <= LOCAL(WORDS));
    for (int64_t done = 0, some; done < N(1); done += some, *drawn += (uint32_t)some) {
        some = LOCAL(ready)(key, N(1) - done);
        const uint32_t *from = key + *drawn;
        EACH_APART
        for (int64_t k = 0; uniform && k < some; k++)
            F(1)[done + k] = (float)(int32_t)(LOCAL(tempered)(from[k]) & 0xffffffu) * 0x1p-24f;
        EACH_APART
        for (int64_t k = 0; !uniform && k < some; k++) I(1)[done + k] = LOCAL(tempered)(from[k]);
    }
    return NULL;
}

/* mersenne_words(state, out) */
KERNEL(mersenne_words) { return LOCAL(draw)(a, 0); }

/* mersenne_uniform(state, out): float32 in [0, 1) of 24 bits each. */
KERNEL(mersenne_uniform) { return LOCAL(draw)(a, 1); }

/* log(x) of positive normal numbers, by the polynomial of the Cephes library. */
INLINE float LOCAL(cephes_log)(float x)
{
    uint32_t bits = LOCAL(bits)(x);
    float exponent = (float)((int32_t)(bits >> 23) - 126);
    float near = LOCAL(from_bits)((bits & 0x007fffffu) | 0x3f000000u);
    int small = near < 0.70710678118654752440f;
    exponent -= small ? 1.0f : 0.0f;
    x = near - 1.0f + (small ? near : 0.0f);
    float square = x * x, y = 7.0376836292e-2f;
    y = LOCAL(fma)(y, x, -1.1514610310e-1f);
    y = LOCAL(fma)(y, x, 1.1676998740e-1f);
    y = LOCAL(fma)(y, x, -1.2420140846e-1f);
    y = LOCAL(fma)(y, x, 1.4249322787e-1f);
    y = LOCAL(fma)(y, x, -1.6668057665e-1f);
    y = LOCAL(fma)(y, x, 2.0000714765e-1f);
    y = LOCAL(fma)(y, x, -2.4999993993e-1f);
    y = LOCAL(fma)(y, x, 3.3333331174e-1f);
    y = LOCAL(fma)(y * x, square, exponent * -2.12194440e-4f);
    return LOCAL(fma)(exponent, 0.693359375f, x + LOCAL(fma)(square, -0.5f, y));
}

/* box_muller(values, mean, deviation): blocks of 16 uniform numbers made normal. */
KERNEL(box_muller)
{
    float mean = (float)X(1), deviation = (float)X(2);
    NEED(N(0) % 16 == 0);
    for (int64_t block = 0; block < N(0) / 16; block++) {
        float *first = F(0) + 16 * block, *second = first + 8;
        EACH_APART
        for (int k = 0; k < 8; k++) {
            float radius = sqrtf(-2.0f * LOCAL(cephes_log)(1.0f - first[k]));
            float x = 6.28318530717958647692f * second[k];
            int32_t octant = ((int32_t)(x * 1.27323954473516268615f) + 1) & ~1;
            float turns = (float)octant;
            x = LOCAL(fma)(turns, -0.78515625f, x);
            x = LOCAL(fma)(turns, -2.4187564849853515625e-4f, x);
            x = LOCAL(fma)(turns, -3.77489497744594108e-8f, x);
            float square = x * x;
            float cosine = LOCAL(fma)(2.443315711809948e-5f, square, -1.388731625493765e-3f);
            cosine = LOCAL(fma)(cosine, square, 4.166664568298827e-2f);
            cosine = LOCAL(fma)(cosine * square, square, -(square * 0.5f)) + 1.0f;
            float sine = LOCAL(fma)(-1.9515295891e-4f, square, 8.3321608736e-3f);
            sine = LOCAL(fma)(sine, square, -1.6666654611e-1f);
            sine = LOCAL(fma)(sine * square, x, x);
            int32_t quarter = (octant >> 1) & 3;
            float along = quarter & 1 ? sine : cosine, across = quarter & 1 ? cosine : sine;
            along *= quarter == 1 || quarter == 2 ? -1.0f : 1.0f;
            across *= quarter & 2 ? -1.0f : 1.0f;
            first[k] = LOCAL(fma)(radius * along, deviation, mean);
            second[k] = LOCAL(fma)(radius * across, deviation, mean);
        }
    }
    return NULL;
}

/* Convolution with windows side by side, without columns in memory: the rows of a padded image lie
 * one behind the other, so what one element of all windows reads is one run, and a product of the
 * weights with such runs is the convolution. Between two rows a run holds a few columns that belong
 * to no window; they are computed and left out. */

#if defined(__AVX512F__)
enum { LOCAL(VECTOR) = 16, LOCAL(CHANNELS) = 8 };
#elif defined(__AVX2__)
enum { LOCAL(VECTOR) = 8, LOCAL(CHANNELS) = 4 };
#else
enum { LOCAL(VECTOR) = 4, LOCAL(CHANNELS) = 4 };
#endif
enum { LOCAL(RUN) = 3 * LOCAL(VECTOR), LOCAL(PART) = 128 /* of a sum */ };

/* Sums of some vectors, before the first product. They are reached a vector at a time, as where they
 * are summed: so the compiler keeps them in registers, and in no memory. */
INLINE void LOCAL(clear)(float (*total)[LOCAL(RUN)], const int vectors)
{
    UNROLLED(8)
    for (int i = 0; i < LOCAL(CHANNELS); i++)
        UNROLLED(3)
        for (int part = 0; part < vectors * LOCAL(VECTOR); part += LOCAL(VECTOR))
            for (int j = part; j < part + LOCAL(VECTOR); j++) total[i][j] = 0;
}

/* Write sums to rows that are `apart`, added to what is there where `more`. */
INLINE void LOCAL(store)(float (*total)[LOCAL(RUN)], const int vectors, float *out, int64_t apart, int more)
{
    for (int i = 0; more && i < LOCAL(CHANNELS); i++)
        UNROLLED(3)
        for (int part = 0; part < vectors * LOCAL(VECTOR); part += LOCAL(VECTOR))
            for (int j = part; j < part + LOCAL(VECTOR); j++) total[i][j] += out[i * apart + j];
    UNROLLED(8)
    for (int i = 0; i < LOCAL(CHANNELS); i++) {
        float *row = out + i * apart;
        UNROLLED(3)
        for (int part = 0; part < vectors * LOCAL(VECTOR); part += LOCAL(VECTOR)) {
            EACH_APART
            for (int j = part; j < part + LOCAL(VECTOR); j++) row[j] = total[i][j];
        }
    }
}

/* A block of channels over a run, kept in registers: every tap times its weights, added to what is
 * there where `more`. Sums of many taps are taken in parts, for the last digits. */
static void LOCAL(block)(const float *x, const int64_t *offsets, int64_t taps, const float *weights,
                         float *out, int64_t step, int more)
{
    enum { CHANNELS = LOCAL(CHANNELS), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN), PART = LOCAL(PART) };
    for (int64_t start = 0; start < taps; start += PART, more = 1) {
        int64_t stop = start + PART < taps ? start + PART : taps;
        float total[CHANNELS][RUN];
        LOCAL(clear)(total, 3);
        for (int64_t tap = start; tap < stop; tap++) {
            const float *run = x + offsets[tap], *weight = weights + tap * CHANNELS;
            UNROLLED(8)
            for (int channel = 0; channel < CHANNELS; channel++)
                UNROLLED(3)
                for (int part = 0; part < RUN; part += VECTOR)
                    for (int k = part; k < part + VECTOR; k++)
                        total[channel][k] = LOCAL(fma)(weight[channel], run[k], total[channel][k]);
        }
        LOCAL(store)(total, 3, out, step, more);
    }
}

/* An image (channels, height, width) with zeros around it: rows of `wide`, planes of `plane`. */
static void LOCAL(padded)(const float *x, int64_t channels, int64_t height, int64_t width,
                          int64_t above, int64_t before, int64_t wide, int64_t plane, float *out)
{
    memset(out, 0, (size_t)(channels * plane) * sizeof *out);
    for (int64_t channel = 0; channel < channels; channel++)
        for (int64_t row = 0; row < height; row++)
            memcpy(out + channel * plane + (row + above) * wide + before,
                   x + (channel * height + row) * width, (size_t)width * sizeof *out);
}

/* Sizes of a convolution: of the images, of the windows, of what is around the images. */
typedef struct {
    int64_t samples, channels, height, width, outputs, rows, columns, above, before;
    int64_t wide, plane, counts, count, length, taps; /* padded sizes, windows, run, taps */
} LOCAL(Sizes);

/* Those that begin at argument `k`; what is wrong with them. */
static const char *LOCAL(sizes_of)(const Argument *a, int k, LOCAL(Sizes) *s)
{
    for (int j = 0; j < 9; j++) NEED(N(k + j) >= 0 && N(k + j) < 1 << 24);
    s->samples = N(k), s->channels = N(k + 1), s->height = N(k + 2), s->width = N(k + 3);
    s->outputs = N(k + 4), s->rows = N(k + 5), s->columns = N(k + 6), s->above = N(k + 7);
    s->before = N(k + 8);
    s->wide = s->width + 2 * s->before;
    s->plane = s->wide * (s->height + 2 * s->above);
    s->counts = s->height + 2 * s->above - s->rows + 1;
    s->count = s->wide - s->columns + 1;
    NEED(s->samples > 0 && s->channels > 0 && s->outputs > 0 && s->rows > 0 && s->columns > 0);
    NEED(s->height > 0 && s->width > 0 && s->counts > 0 && s->count > 0);
    NEED(s->plane < 1 << 28 && s->channels < 1 << 20 && s->rows < 1 << 10 && s->columns < 1 << 10);
    s->length = (s->counts - 1) * s->wide + s->count;
    s->taps = s->channels * s->rows * s->columns;
    return NULL;
}

/* What samples have in common. */
typedef struct {
    LOCAL(Sizes) s;
    const float *x, *weights, *bias, *grad;
    float *out;
    const int64_t *offsets;
    int64_t each; /* samples of a piece of a weight's gradient */
    int failed;
} LOCAL(Convolution);

static void LOCAL(convolve_sample)(void *given, int64_t sample)
{
    enum { CHANNELS = LOCAL(CHANNELS), RUN = LOCAL(RUN) };
    LOCAL(Convolution) *c = given;
    LOCAL(Sizes) s = c->s;
    int64_t blocks = (s.outputs + CHANNELS - 1) / CHANNELS, step = (s.length / RUN + 1) * RUN;
    int64_t inside = s.channels * s.plane + RUN; /* the last run reaches beyond the last plane */
    float *image = malloc((size_t)(inside + CHANNELS * step) * sizeof *image), *made = image + inside;
    if (!image) {
        c->failed = 1;
        return;
    }
    memset(image + inside - RUN, 0, RUN * sizeof *image);
    LOCAL(padded)(c->x + sample * s.channels * s.height * s.width, s.channels, s.height, s.width,
                  s.above, s.before, s.wide, s.plane, image);
    for (int64_t block = 0; block < blocks; block++) {
        for (int64_t k = 0; k < s.length; k += RUN)
            LOCAL(block)(image + k, c->offsets, s.taps, c->weights + block * CHANNELS * s.taps,
                         made + k, step, 0);
        for (int64_t j = 0; j < CHANNELS && block * CHANNELS + j < s.outputs; j++) {
            int64_t output = block * CHANNELS + j;
            float bias = c->bias ? c->bias[output] : 0;
            float *out = c->out + (sample * s.outputs + output) * s.counts * s.count;
            for (int64_t row = 0; row < s.counts; row++)
                for (int64_t k = 0; k < s.count; k++)
                    out[row * s.count + k] = made[j * step + row * s.wide + k] + bias;
        }
    }
    free(image);
}

/* convolution(x, weight, bias, out, samples, channels, height, width, outputs, rows, columns,
 * above, before, threads): the windows of (samples, channels, height, width), with so many zeros
 * around them, times the weights (outputs, channels, rows, columns). */
KERNEL(convolution)
{
    enum { CHANNELS = LOCAL(CHANNELS) };
    LOCAL(Convolution) c = {.x = F(0), .bias = F(2), .out = F(3)};
    const char *wrong = LOCAL(sizes_of)(a, 4, &c.s);
    if (wrong) return wrong;
    LOCAL(Sizes) s = c.s;
    NEED(N(0) == s.samples * s.channels * s.height * s.width && N(1) == s.outputs * s.taps);
    NEED((!F(2) || N(2) == s.outputs) && N(3) == s.samples * s.outputs * s.counts * s.count);
    int64_t all = (s.outputs + CHANNELS - 1) / CHANNELS * CHANNELS * s.taps;
    int64_t *offsets = malloc((size_t)s.taps * sizeof *offsets + (size_t)all * sizeof(float));
    if (!offsets) return NO_MEMORY;
    float *weights = (float *)(offsets + s.taps);
    for (int64_t tap = 0; tap < s.taps; tap++)
        offsets[tap] = tap / (s.rows * s.columns) * s.plane +
                       tap / s.columns % s.rows * s.wide + tap % s.columns;
    for (int64_t output = 0; output * s.taps < all; output++)
        for (int64_t tap = 0; tap < s.taps; tap++)
            weights[output / CHANNELS * CHANNELS * s.taps + tap * CHANNELS + output % CHANNELS] =
                output < s.outputs ? F(1)[output * s.taps + tap] : 0;
    c.weights = weights;
    c.offsets = offsets;
    share(LOCAL(convolve_sample), &c, s.samples, N(13));
    free(offsets);
    return c.failed ? NO_MEMORY : NULL;
}

/* Rows of some length, `step` apart, as columns of an array whose rows are `width` apart. */
static void LOCAL(turn)(const float *x, int64_t rows, int64_t length, int64_t step, float *out,
                        int64_t width)
{
    enum { SOME = 8 };
    int64_t row = 0;
    for (; row + SOME <= rows; row += SOME)
        for (int64_t k = 0; k < length; k++)
            UNROLLED(8)
            for (int j = 0; j < SOME; j++) out[k * width + row + j] = x[(row + j) * step + k];
    for (; row < rows; row++)
        for (int64_t k = 0; k < length; k++) out[k * width + row] = x[row * step + k];
}

/* What the windows of a sample give the weights of a run in all blocks: part by part of the windows,
 * so that what a part reads of the run stays in the first cache while the blocks go over it. */
static void LOCAL(weigh_run)(const LOCAL(Convolution) *c, const float *run, const float *grads, int64_t blocks,
                             float *total, int64_t width)
{
    enum { CHANNELS = LOCAL(CHANNELS), PART = LOCAL(PART) };
    int64_t windows = c->s.counts * c->s.count, step = c->s.rows * width;
    for (int64_t start = 0; start < windows; start += PART) {
        int64_t count = start + PART < windows ? PART : windows - start;
        for (int64_t first = 0; first < blocks * CHANNELS; first += CHANNELS)
            LOCAL(block)(run, c->offsets + start, count, grads + first * windows + start * CHANNELS,
                         total + first * step, step, 1);
    }
}

/* What some samples give the weights, written to rows of `out` of their own. Every window is a tap
 * here, and a run goes over the channels of a row of a window. */
static void LOCAL(weigh_piece)(void *given, int64_t number)
{
    enum { CHANNELS = LOCAL(CHANNELS), RUN = LOCAL(RUN) };
    LOCAL(Convolution) *c = given;
    LOCAL(Sizes) s = c->s;
    int64_t blocks = (s.outputs + CHANNELS - 1) / CHANNELS, windows = s.counts * s.count;
    int64_t width = (s.columns * s.channels / RUN + 1) * RUN, row_step = s.wide * s.channels;
    int64_t image = s.plane * s.channels + RUN, weights = windows * blocks * CHANNELS;
    int64_t sums = blocks * CHANNELS * s.rows * width;
    float *turned = calloc((size_t)(image + weights + sums), sizeof *turned);
    if (!turned) {
        c->failed = 1;
        return;
    }
    float *grads = turned + image, *total = grads + weights, *out = c->out + number * s.outputs * s.taps;
    for (int64_t sample = number * c->each; sample < s.samples && sample < (number + 1) * c->each; sample++) {
        const float *x = c->x + sample * s.channels * s.height * s.width;
        for (int64_t row = 0; row < s.height; row++)
            LOCAL(turn)(x + row * s.width, s.channels, s.width, s.height * s.width,
                        turned + (row + s.above) * row_step + s.before * s.channels, s.channels);
        const float *grad = c->grad + sample * s.outputs * windows;
        for (int64_t block = 0; block < blocks; block++) {
            int64_t first = block * CHANNELS, left = s.outputs - first;
            LOCAL(turn)(grad + first * windows, left < CHANNELS ? left : CHANNELS, windows, windows,
                        grads + first * windows, CHANNELS);
        }
        for (int64_t row = 0; row < s.rows; row++)
            for (int64_t k = 0; k < s.columns * s.channels; k += RUN)
                LOCAL(weigh_run)(c, turned + row * row_step + k, grads, blocks, total + row * width + k, width);
    }
    for (int64_t output = 0; output < s.outputs; output++, total += s.rows * width)
        for (int64_t channel = 0; channel < s.channels; channel++)
            for (int64_t k = 0; k < s.rows * width; k += width)
                for (int64_t j = 0; j < s.columns; j++) *out++ = total[k + j * s.channels + channel];
    free(turned);
}

/* Elements of channels times others of as many taps, over a run, lane by lane. */
APART void LOCAL(multiply_runs)(const float *grads, int64_t step, const float *const *taps, int64_t length,
                                float *sums)
{
    enum { CHANNELS = LOCAL(CHANNELS), VECTOR = LOCAL(VECTOR), RUN = LOCAL(RUN) };
    float total[CHANNELS][RUN];
    const float *first = taps[0], *second = taps[1], *third = taps[2];
    memset(total, 0, sizeof total);
    for (int64_t k = 0; k < length; k += VECTOR) {
        UNROLLED(8)
        for (int channel = 0; channel < CHANNELS; channel++) {
            const float *grad = grads + channel * step + k;
            for (int j = 0; j < VECTOR; j++)
                total[channel][j] = LOCAL(fma)(grad[j], first[k + j], total[channel][j]);
            for (int j = 0; j < VECTOR; j++)
                total[channel][VECTOR + j] = LOCAL(fma)(grad[j], second[k + j], total[channel][VECTOR + j]);
            for (int j = 0; j < VECTOR; j++)
                total[channel][2 * VECTOR + j] = LOCAL(fma)(grad[j], third[k + j], total[channel][2 * VECTOR + j]);
        }
    }
    for (int channel = 0; channel < CHANNELS; channel++)
        for (int j = 0; j < RUN; j++) sums[channel * RUN + j] += total[channel][j];
}

/* Channels times a tap, window by window, to the first lane. */
static void LOCAL(multiply_windows)(const float *grads, int64_t step, const float *tap, const LOCAL(Sizes) *s,
                                    float *sums)
{
    for (int channel = 0; channel < LOCAL(CHANNELS); channel++)
        for (int64_t row = 0; row < s->counts; row++)
            for (int64_t k = row * s->wide; k < row * s->wide + s->count; k++)
                sums[channel * LOCAL(RUN)] += grads[channel * step + k] * tap[k];
}

/* The same by images of few channels, of which a row of a window is short: the gradients lie as the
 * padded image does, with zeros that belong to no window, and a tap of all windows is a run. */
static void LOCAL(weigh_few)(void *given, int64_t number)
{
    enum { CHANNELS = LOCAL(CHANNELS), RUN = LOCAL(RUN), VECTOR = LOCAL(VECTOR) };
    LOCAL(Convolution) *c = given;
    LOCAL(Sizes) s = c->s;
    int64_t blocks = (s.outputs + CHANNELS - 1) / CHANNELS, triples = (s.taps + 2) / 3;
    int64_t windows = s.counts * s.count, step = (s.length + VECTOR - 1) / VECTOR * VECTOR;
    int64_t inside = s.channels * s.plane + RUN, sums = blocks * triples * CHANNELS * RUN;
    float *memory = calloc((size_t)(inside + CHANNELS * step + sums + RUN), sizeof *memory);
    if (!memory) {
        c->failed = 1;
        return;
    }
    float *grads = memory + (-(uintptr_t)memory % (VECTOR * sizeof *memory)) / sizeof *memory; /* aligned */
    float *total = grads + CHANNELS * step, *image = total + sums, *out = c->out + number * s.outputs * s.taps;
    for (int64_t sample = number * c->each; sample < s.samples && sample < (number + 1) * c->each; sample++) {
        LOCAL(padded)(c->x + sample * s.channels * s.height * s.width, s.channels, s.height, s.width,
                      s.above, s.before, s.wide, s.plane, image);
        int is_finite = LOCAL(are_finite)(image, inside); /* nothing comes of them times the zeros */
        for (int64_t block = 0; block < blocks; block++) {
            int64_t first = block * CHANNELS, left = s.outputs - first < CHANNELS ? s.outputs - first : CHANNELS;
            const float *grad = c->grad + (sample * s.outputs + first) * windows;
            memset(grads, 0, (size_t)(CHANNELS * step) * sizeof *grads);
            for (int64_t j = 0; j < left; j++)
                for (int64_t row = 0; row < s.counts; row++)
                    memcpy(grads + j * step + row * s.wide, grad + (j * s.counts + row) * s.count,
                           (size_t)s.count * sizeof *grads);
            for (int64_t triple = 0; triple < triples; triple++) {
                const float *taps[3];
                for (int64_t j = 0; j < 3; j++) {
                    int64_t tap = 3 * triple + j < s.taps ? 3 * triple + j : s.taps - 1;
                    taps[j] = image + tap / (s.rows * s.columns) * s.plane +
                              tap / s.columns % s.rows * s.wide + tap % s.columns;
                }
                float *sum = total + (block * triples + triple) * CHANNELS * RUN;
                if (is_finite) LOCAL(multiply_runs)(grads, step, taps, s.length, sum);
                else
                    for (int64_t j = 0; j < 3; j++) LOCAL(multiply_windows)(grads, step, taps[j], &s, sum + j * VECTOR);
            }
        }
    }
    for (int64_t output = 0; output < s.outputs; output++)
        for (int64_t tap = 0; tap < s.taps; tap++, out++) {
            const float *lanes = total + ((output / CHANNELS * triples + tap / 3) * CHANNELS + output % CHANNELS) * RUN +
                                 tap % 3 * VECTOR;
            *out = 0;
            for (int j = 0; j < VECTOR; j++) *out += lanes[j];
        }
    free(memory);
}

/* weight_gradient(x, grad, out, samples, …, threads): what `convolution` of these sizes gives the
 * weights. Pieces of the samples are summed one after the other, however many threads there are. */
KERNEL(weight_gradient)
{
    enum { PIECES = 8 };
    LOCAL(Convolution) c = {.x = F(0), .grad = F(1)};
    const char *wrong = LOCAL(sizes_of)(a, 3, &c.s);
    if (wrong) return wrong;
    LOCAL(Sizes) s = c.s;
    int64_t windows = s.counts * s.count, all = s.outputs * s.taps;
    NEED(N(0) == s.samples * s.channels * s.height * s.width && N(2) == all);
    NEED(N(1) == s.samples * s.outputs * windows);
    c.each = s.samples / PIECES > 1 ? s.samples / PIECES : 1;
    int64_t pieces = (s.samples + c.each - 1) / c.each;
    int64_t *offsets = malloc((size_t)windows * sizeof *offsets + (size_t)(pieces * all) * sizeof(float));
    if (!offsets) return NO_MEMORY;
    for (int64_t k = 0; k < windows; k++)
        offsets[k] = (k / s.count * s.wide + k % s.count) * s.channels;
    c.offsets = offsets;
    c.out = (float *)(offsets + windows);
    share(s.channels * s.columns < LOCAL(RUN) / 3 ? LOCAL(weigh_few) : LOCAL(weigh_piece), &c, pieces, N(12));
    for (int64_t k = 0; k < all; k++) {
        float sum = c.out[k];
        for (int64_t piece = 1; piece < pieces; piece++) sum += c.out[piece * all + k];
        F(2)[k] = sum;
    }
    free(offsets);
    return c.failed ? NO_MEMORY : NULL;
}

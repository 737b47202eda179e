/* Layer norm and batch norm. The rows of layer norm are taken in the order of PyTorch's kernels,
 * which work on eight lanes (gradcli/arrays/kernels/row_reductions.py); other sums are kept in float64. */

enum { LOCAL(LANES) = 8, LOCAL(SHORT) = 64 };

static double LOCAL(total_of)(const double *lanes, int count)
{
    double total = 0;
    for (int lane = 0; lane < count; lane++) total += lanes[lane];
    return total;
}

enum { LOCAL(PLAIN), LOCAL(SQUARE), LOCAL(SINGLE_SQUARE) }; /* the last one in single precision */

INLINE double LOCAL(power_of)(float x, double about, int power)
{
    double value = x - about;
    float change = x - (float)about;
    return power == LOCAL(PLAIN) ? value : power == LOCAL(SQUARE) ? value * value : change * change;
}

/* The sum over a run of x - about, or of its square. */
INLINE double LOCAL(sum_about)(const float *x, int64_t length, double about, int power)
{
    enum { WIDE = 16 };
    double lanes[WIDE] = {0};
    int64_t k = 0;
    for (; k + WIDE <= length; k += WIDE)
        for (int lane = 0; lane < WIDE; lane++)
            lanes[lane] += LOCAL(power_of)(x[k + lane], about, power);
    for (int lane = 0; k < length; k++, lane++) lanes[lane] += LOCAL(power_of)(x[k], about, power);
    return LOCAL(total_of)(lanes, WIDE);
}

/* Mean and variance of a short row, one step for each group of lanes. */
static void LOCAL(short_moments)(const float *x, int length, float *mean_of, float *variance)
{
    enum { LANES = LOCAL(LANES) };
    float mean = 0, squares = 0, means[LANES] = {0}, spreads[LANES] = {0};
    int groups = length / LANES, count = length - groups * LANES;
    for (int k = 0; k < count; k++) {
        float value = x[groups * LANES + k], change = value - mean;
        mean = mean + change / (float)(k + 1);
        squares = squares + change * (value - mean);
    }
    for (int group = 0; group < groups; group++) {
        float share = 1.0f / (float)(group + 1);
        for (int lane = 0; lane < LANES; lane++) {
            float value = x[group * LANES + lane], change = value - means[lane];
            means[lane] = LOCAL(fma)(change, share, means[lane]);
            spreads[lane] = LOCAL(fma)(change, value - means[lane], spreads[lane]);
        }
    }
    for (int lane = 0; groups && lane < LANES; lane++) {
        count += groups;
        float part = (float)groups / (float)count, change = means[lane] - mean;
        float spread = change * change * part;
        squares = squares + LOCAL(fma)(spread, (float)(count - groups), spreads[lane]);
        mean = LOCAL(fma)(change, part, mean);
    }
    *mean_of = mean;
    *variance = squares / (float)length;
}

/* layer_norm(x, weight, bias, out, mean, rstd, eps): over rows of as many elements as there are
 * for each mean. */
KERNEL(layer_norm)
{
    const float *weight = F(1), *bias = F(2);
    int64_t rows = N(4), length = rows ? N(0) / rows : 0;
    double eps = X(6);
    NEED(N(3) == N(0) && N(5) == rows && length * rows == N(0));
    NEED((!weight || N(1) == length) && (!bias || N(2) == length) && length > 0);
    for (int64_t row = 0; row < rows; row++) {
        const float *x = F(0) + row * length;
        float *out = F(3) + row * length, mean, rstd;
        if (length <= LOCAL(SHORT)) {
            float variance;
            LOCAL(short_moments)(x, (int)length, &mean, &variance);
            rstd = 1.0f / sqrtf(variance + (float)eps);
        } else {
            double exact = LOCAL(sum_about)(x, length, 0, LOCAL(PLAIN)) / (double)length;
            double variance = LOCAL(sum_about)(x, length, exact, LOCAL(SQUARE)) / (double)length;
            mean = (float)exact;
            rstd = (float)(1 / sqrt(variance + eps));
        }
        F(4)[row] = mean;
        F(5)[row] = rstd;
        if (weight && bias) {
            EACH_APART
            for (int64_t k = 0; k < length; k++)
                out[k] = LOCAL(fma)((x[k] - mean) * rstd, weight[k], bias[k]);
        } else {
            EACH_APART
            for (int64_t k = 0; k < length; k++) {
                float value = (x[k] - mean) * rstd * (weight ? weight[k] : 1.0f);
                out[k] = bias ? value + bias[k] : value;
            }
        }
    }
    return NULL;
}

/* The sums of grad · x · weight and of grad · weight over a row. */
static void LOCAL(row_sums)(const float *grad, const float *x, const float *weight, int64_t length,
                            float *by_value, float *plain)
{
    enum { LANES = LOCAL(LANES) };
    float first[LANES] = {0}, second[LANES] = {0};
    int64_t k = 0;
    if (length < LANES) { /* one after another */
        for (; k < length; k++) {
            float factor = weight ? weight[k] : 1.0f;
            first[0] += weight ? grad[k] * x[k] * factor : grad[k] * x[k];
            second[0] += grad[k] * factor;
        }
        *by_value = first[0];
        *plain = second[0];
        return;
    }
    for (; k + LANES <= length; k += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            float factor = weight ? weight[k + lane] : 1.0f;
            first[lane] += grad[k + lane] * x[k + lane] * factor;
            second[lane] += grad[k + lane] * factor;
        }
    for (int lane = 0; k < length; k++, lane++) {
        float factor = weight ? weight[k] : 1.0f;
        first[lane] = weight ? LOCAL(fma)(grad[k] * x[k], factor, first[lane])
                             : LOCAL(fma)(grad[k], x[k], first[lane]);
        second[lane] = LOCAL(fma)(grad[k], factor, second[lane]);
    }
    for (int half = LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) {
            first[lane] += first[lane + half];
            second[lane] += second[lane + half];
        }
    *by_value = first[0];
    *plain = second[0];
}

/* layer_norm_backward(grad, x, mean, rstd, weight, out, of_weight, of_bias): the gradient of x, and
 * what these rows add to those of weight and bias; each may be None. */
KERNEL(layer_norm_backward)
{
    const float *weight = F(4);
    double *of_weight = D(6), *of_bias = D(7);
    int64_t rows = N(2), length = rows ? N(0) / rows : 0;
    NEED(N(1) == N(0) && N(3) == rows && length * rows == N(0) && length > 0);
    NEED((!weight || N(4) == length) && (!F(5) || N(5) == N(0)));
    NEED((!of_weight || N(6) == length) && (!of_bias || N(7) == length));
    for (int64_t row = 0; row < rows; row++) {
        const float *grad = F(0) + row * length, *x = F(1) + row * length;
        float mean = F(2)[row], rstd = F(3)[row];
        if (F(5)) {
            float *out = F(5) + row * length, by_value, plain, scale = 1.0f / (float)length;
            LOCAL(row_sums)(grad, x, weight, length, &by_value, &plain);
            float slope = LOCAL(fma)(plain, mean, -by_value) * rstd * rstd * rstd * scale;
            float constant = LOCAL(fma)(-slope, mean, -(plain * rstd * scale));
            EACH_APART
            for (int64_t k = 0; k < length; k++) {
                float direct = grad[k] * rstd;
                direct = weight ? direct * weight[k] : direct;
                out[k] = LOCAL(fma)(x[k], slope, direct) + constant;
            }
        }
        if (of_weight) {
            EACH_APART
            for (int64_t k = 0; k < length; k++) of_weight[k] += grad[k] * ((x[k] - mean) * rstd);
        }
        if (of_bias) {
            EACH_APART
            for (int64_t k = 0; k < length; k++) of_bias[k] += grad[k];
        }
    }
    return NULL;
}

/* What the channels of (samples, channels, plane) have in common, which threads share. */
typedef struct {
    const Argument *a;
    int64_t samples, plane, step;
} LOCAL(Channels);

static void LOCAL(moments_of)(void *given, int64_t channel)
{
    const LOCAL(Channels) *c = given;
    const Argument *a = c->a;
    int64_t samples = c->samples, plane = c->plane, step = c->step;
    const float *x = F(0) + channel * plane;
    double total = 0, squares = 0;
    for (int64_t k = 0; k < samples; k++)
        total += LOCAL(sum_about)(x + k * step, plane, 0, LOCAL(PLAIN));
    float mean = (float)(total / (double)(samples * plane));
    for (int64_t k = 0; k < samples; k++)
        squares += LOCAL(sum_about)(x + k * step, plane, mean, LOCAL(SINGLE_SQUARE));
    F(1)[channel] = mean;
    F(2)[channel] = (float)squares / (float)(samples * plane);
}

/* batch_moments(x, mean, variance, samples, threads): of each channel of (samples, channels, plane).
 */
KERNEL(batch_moments)
{
    int64_t channels = N(1), samples = N(3);
    NEED(channels > 0 && N(2) == channels && samples > 0 && N(0) > 0);
    NEED(N(0) % channels == 0 && N(0) / channels % samples == 0);
    LOCAL(Channels) c = {a, samples, N(0) / channels / samples, N(0) / samples};
    share(LOCAL(moments_of), &c, channels, N(4));
    return NULL;
}

/* batch_norm(x, slope, offset, out): x · slope + offset by channels; `x` is samples of them. */
KERNEL(batch_norm)
{
    int64_t channels = N(1), samples = N(4);
    NEED(channels > 0 && N(2) == channels && N(3) == N(0) && samples > 0);
    NEED(N(0) % channels == 0 && N(0) / channels % samples == 0);
    int64_t plane = N(0) / channels / samples;
    for (int64_t k = 0; k < samples * channels; k++) {
        const float *x = F(0) + k * plane;
        float *out = F(3) + k * plane, slope = F(1)[k % channels], offset = F(2)[k % channels];
        EACH_APART
        for (int64_t j = 0; j < plane; j++) out[j] = LOCAL(fma)(x[j], slope, offset);
    }
    return NULL;
}

static void LOCAL(norm_backward_of)(void *given, int64_t channel)
{
    enum { WIDE = 16 };
    const LOCAL(Channels) *c = given;
    const Argument *a = c->a;
    int64_t samples = c->samples, plane = c->plane, step = c->step;
    float mean = F(2)[channel], rstd = F(3)[channel];
    double first[WIDE] = {0}, second[WIDE] = {0};
    for (int64_t sample = 0; sample < samples; sample++) {
        const float *grad = F(0) + channel * plane + sample * step;
        const float *x = F(1) + channel * plane + sample * step;
        int64_t k = 0;
        for (; k + WIDE <= plane; k += WIDE)
            for (int lane = 0; lane < WIDE; lane++) {
                first[lane] += (x[k + lane] - mean) * grad[k + lane];
                second[lane] += grad[k + lane];
            }
        for (int lane = 0; k < plane; k++, lane++) {
            first[lane] += (x[k] - mean) * grad[k];
            second[lane] += grad[k];
        }
    }
    double by_value = LOCAL(total_of)(first, WIDE), plain = LOCAL(total_of)(second, WIDE);
    F(6)[channel] = (float)(by_value * rstd);
    F(7)[channel] = (float)plain;
    if (!F(5)) return;
    double count = (double)(samples * plane);
    float slope = (float)(by_value / count) * rstd * rstd, level = (float)(plain / count);
    float factor = F(4) ? F(4)[channel] : 1.0f;
    for (int64_t sample = 0; sample < samples; sample++) {
        const float *grad = F(0) + channel * plane + sample * step;
        const float *x = F(1) + channel * plane + sample * step;
        float *out = F(5) + channel * plane + sample * step;
        EACH_APART
        for (int64_t k = 0; k < plane; k++)
            out[k] = (grad[k] - level - (x[k] - mean) * slope) * rstd * factor;
    }
}

/* batch_norm_backward(grad, x, mean, rstd, weight, out, of_weight, of_bias, samples, threads): out may
 * be None. */
KERNEL(batch_norm_backward)
{
    int64_t channels = N(2), samples = N(8);
    NEED(channels > 0 && N(3) == channels && (!F(4) || N(4) == channels) && samples > 0);
    NEED(N(1) == N(0) && (!F(5) || N(5) == N(0)) && N(6) == channels && N(7) == channels);
    NEED(N(0) % channels == 0 && N(0) / channels % samples == 0);
    LOCAL(Channels) c = {a, samples, N(0) / channels / samples, N(0) / samples};
    share(LOCAL(norm_backward_of), &c, channels, N(9));
    return NULL;
}

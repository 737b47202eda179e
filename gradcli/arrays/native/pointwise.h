/* Element by element: gelu, erf, multiply-add, a step of Adam. Outputs may be inputs. */

KERNEL(erf)
{
    const float *x = F(0);
    float *out = F(1);
    NEED(N(0) == N(1));
    EACH_APART
    for (int64_t k = 0; k < N(0); k++) out[k] = LOCAL(erf_of)(x[k]);
    return NULL;
}

/* gelu(x, out, several): several elements, in PyTorch, pass through a library in which infinity
 * becomes nan, and what is larger than half the largest number infinity. */
KERNEL(gelu)
{
    const float *x = F(0);
    float *out = F(1);
    int64_t several = N(2);
    NEED(N(0) == N(1));
    EACH_APART
    for (int64_t k = 0; k < N(0); k++) {
        float weight = 1.0f + LOCAL(erf_of)(x[k] * 0.70710678118654752440f);
        float as_one = x[k] * 0.5f * weight, as_many = x[k] * (weight + (x[k] - x[k])) * 0.5f;
        out[k] = several ? as_many : as_one;
    }
    return NULL;
}

/* gelu_backward(grad, x, out) */
KERNEL(gelu_backward)
{
    const float *grad = F(0), *x = F(1);
    float *out = F(2);
    NEED(N(0) == N(1) && N(0) == N(2));
    EACH_APART
    for (int64_t k = 0; k < N(0); k++) {
        float density = LOCAL(exp_of)(x[k] * x[k] * -0.5f) * 0.39894228040143267794f;
        float share = (LOCAL(erf_of)(x[k] * 0.70710678118654752440f) + 1.0f) * 0.5f;
        out[k] = grad[k] * (share + x[k] * density);
    }
    return NULL;
}

enum { LOCAL(PIECE) = 1 << 13 }; /* elements that a thread takes at once */

static int64_t LOCAL(pieces)(int64_t count) { return (count + LOCAL(PIECE) - 1) / LOCAL(PIECE); }

static int64_t LOCAL(end_of)(int64_t number, int64_t count)
{
    int64_t end = (number + 1) * LOCAL(PIECE);
    return end < count ? end : count;
}

static void LOCAL(add_scaled_piece)(void *given, int64_t number)
{
    const Argument *a = given;
    const float *total = F(0), *term = F(1);
    float factor = (float)X(2), *out = F(3);
    int64_t end = LOCAL(end_of)(number, N(0));
    EACH_APART
    for (int64_t k = number * LOCAL(PIECE); k < end; k++) out[k] = LOCAL(fma)(term[k], factor, total[k]);
}

/* add_scaled(total, term, factor, out, threads): out = total + term · factor, rounded once. */
KERNEL(add_scaled)
{
    NEED(N(0) == N(1) && N(0) == N(3));
    share(LOCAL(add_scaled_piece), (void *)a, LOCAL(pieces)(N(0)), N(4));
    return NULL;
}

static void LOCAL(adam_piece)(void *given, int64_t number)
{
    const Argument *a = given;
    float *parameter = F(0), *average = F(2), *square = F(3);
    const float *gradient = F(1);
    float decay = (float)X(4), shrink = (float)X(5), share = (float)(1 - X(6)), beta2 = (float)X(7);
    float share2 = (float)(1 - X(7)), root = (float)X(8), eps = (float)X(9), rate = (float)X(10);
    int near = 1 - X(6) < 0.5; /* the average is reckoned from whichever end is nearer */
    float other = -(1.0f - share);
    int64_t end = LOCAL(end_of)(number, N(0));
    EACH_APART
    for (int64_t k = number * LOCAL(PIECE); k < end; k++) {
        float value = parameter[k] * shrink;
        float grad = decay != 0 ? LOCAL(fma)(value, decay, gradient[k]) : gradient[k];
        float change = grad - average[k];
        float mean = LOCAL(fma)(change, near ? share : other, near ? average[k] : grad);
        float spread = LOCAL(fma)(grad * share2, grad, square[k] * beta2);
        average[k] = mean;
        square[k] = spread;
        parameter[k] = value + mean * rate / (sqrtf(spread) / root + eps);
    }
}

/* adam(parameter, gradient, average, square, decay, shrink, beta1, beta2, root, eps, rate, threads):
 * decay is added to the gradient times the parameter, or the parameter is first multiplied by
 * shrink; root is that of the second correction, rate the step by the first one. */
KERNEL(adam)
{
    NEED(N(1) == N(0) && N(2) == N(0) && N(3) == N(0));
    share(LOCAL(adam_piece), (void *)a, LOCAL(pieces)(N(0)), N(11));
    return NULL;
}

/* A step of an LSTM. The gates stand in the order entering, forgetting, cell, leaving. */

/* lstm_step(gates, projected, cell, kept, hidden): gates are what the hidden state gives, projected
 * what the input gives, both (batch, 4, width); cell is the one before. Kept are gates and cell of
 * the step, (5, batch, width), for the gradient. */
KERNEL(lstm_step)
{
    int64_t size = N(2), width = N(5);
    NEED(width > 0 && size % width == 0 && N(0) == 4 * size && N(1) == N(0));
    NEED(N(3) == 5 * size && N(4) == size);
    for (int64_t row = 0; row < size; row += width) {
        const float *own = F(0) + 4 * row, *given = F(1) + 4 * row, *cell = F(2) + row;
        float *kept = F(3) + row, *hidden = F(4) + row;
        EACH_APART
        for (int64_t k = 0; k < width; k++) {
            float entering = LOCAL(sigmoid_of)(own[k] + given[k]);
            float forgetting = LOCAL(sigmoid_of)(own[width + k] + given[width + k]);
            float fresh = LOCAL(tanh_of)(own[2 * width + k] + given[2 * width + k]);
            float leaving = LOCAL(sigmoid_of)(own[3 * width + k] + given[3 * width + k]);
            float after = forgetting * cell[k] + entering * fresh;
            kept[k] = entering;
            kept[size + k] = forgetting;
            kept[2 * size + k] = fresh;
            kept[3 * size + k] = leaving;
            kept[4 * size + k] = after;
            hidden[k] = leaving * LOCAL(tanh_of)(after);
        }
    }
    return NULL;
}

/* lstm_step_backward(of_hidden, of_output, of_cell, kept, cell, slopes, width): the slopes of the
 * gates, (batch, 4, width); the gradient of the cell becomes that of the cell before. */
KERNEL(lstm_step_backward)
{
    int64_t size = N(0), width = N(6);
    float *of_cell = F(2);
    NEED(width > 0 && size % width == 0 && (!F(1) || N(1) == size) && N(2) == size);
    NEED(N(3) == 5 * size && N(4) == size && N(5) == 4 * size);
    for (int64_t row = 0; row < size; row += width) {
        const float *kept = F(3) + row, *cell = F(4) + row;
        float *slopes = F(5) + 4 * row;
        EACH_APART
        for (int64_t k = 0; k < width; k++) {
            float entering = kept[k], forgetting = kept[size + k], fresh = kept[2 * size + k];
            float leaving = kept[3 * size + k], shown = LOCAL(tanh_of)(kept[4 * size + k]);
            float slope = F(0)[row + k] + (F(1) ? F(1)[row + k] : 0);
            float inner = of_cell[row + k] + slope * (leaving * (1 - shown * shown));
            slopes[k] = fresh * entering * (1 - entering) * inner;
            slopes[width + k] = cell[k] * forgetting * (1 - forgetting) * inner;
            slopes[2 * width + k] = entering * (1 - fresh * fresh) * inner;
            slopes[3 * width + k] = shown * leaving * (1 - leaving) * slope;
            of_cell[row + k] = inner * forgetting;
        }
    }
    return NULL;
}

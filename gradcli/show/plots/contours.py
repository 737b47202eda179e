"""Lines of equal height on a grid, by marching squares, and heights at any place between."""

from __future__ import annotations

from typing import Any

import numpy as np


def segments(x: Any, y: Any, z: Any, level: float) -> Any:
    """The pieces of a line of equal height: an array of (pieces, 2 ends, x and y).

    Args:
        x, y: the places of the columns and of the rows of `z`.
    """
    corners = [z[:-1, :-1], z[:-1, 1:], z[1:, 1:], z[1:, :-1]]  # around each cell
    above = [np.asarray(each > level) for each in corners]
    finite = np.isfinite(sum(corners))
    columns, rows = np.meshgrid(np.arange(z.shape[1] - 1), np.arange(z.shape[0] - 1))
    around = [(columns, rows), (columns + 1, rows), (columns + 1, rows + 1), (columns, rows + 1)]
    crossings = []
    for side in range(4):
        first, second = side, (side + 1) % 4
        crosses = (above[first] != above[second]) & finite
        with np.errstate(all="ignore"):
            share = (level - corners[first]) / (corners[second] - corners[first])
        share = np.where(crosses, share, 0.0)
        (c1, r1), (c2, r2) = around[first], around[second]
        points = np.stack(
            [x[c1] + share * (x[c2] - x[c1]), y[r1] + share * (y[r2] - y[r1])], axis=-1
        )
        crossings.append((crosses, points))
    middle = sum(corners) / 4 > level
    pieces = []
    for first in range(4):
        for second in range(first + 1, 4):
            both = crossings[first][0] & crossings[second][0]
            saddle = crossings[0][0] & crossings[1][0] & crossings[2][0] & crossings[3][0]
            # Of a saddle two corners are cut off: the ones that differ from its middle.
            keeps = ((second - first) % 2 == 1) & ((second == first + 1) | (first == 0))
            corner = above[second % 4] if second == first + 1 else above[0]
            wanted = both & (~saddle | (keeps & (corner != middle)))
            ends = np.stack([crossings[first][1][wanted], crossings[second][1][wanted]], axis=1)
            pieces.append(ends)
    return np.concatenate(pieces)


def heights(x: Any, y: Any, z: Any, columns: Any, rows: Any) -> Any:
    """The heights at places between those of the grid, bilinear; NaN outside."""
    at_x = np.interp(columns, *_rising(x), left=np.nan, right=np.nan)
    at_y = np.interp(rows, *_rising(y), left=np.nan, right=np.nan)
    inside = np.isfinite(at_x)[None, :] & np.isfinite(at_y)[:, None]
    at_x, at_y = np.nan_to_num(at_x), np.nan_to_num(at_y)
    left = np.clip(at_x.astype(int), 0, max(x.size - 2, 0))
    top = np.clip(at_y.astype(int), 0, max(y.size - 2, 0))
    right, bottom = np.minimum(left + 1, x.size - 1), np.minimum(top + 1, y.size - 1)
    across, down = (at_x - left)[None, :], (at_y - top)[:, None]
    upper = z[np.ix_(top, left)] * (1 - across) + z[np.ix_(top, right)] * across
    lower = z[np.ix_(bottom, left)] * (1 - across) + z[np.ix_(bottom, right)] * across
    return np.where(inside, upper * (1 - down) + lower * down, np.nan)


def _rising(places: Any) -> tuple[Any, Any]:
    """Places in rising order, with the numbers of their columns."""
    numbers = np.arange(places.size, dtype=float)
    return (places, numbers) if places[0] <= places[-1] else (places[::-1], numbers[::-1])

"""Pixels as PNG, for the images inside of an SVG."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np


def png(pixels: Any) -> bytes:
    """An array of shape (rows, columns, 4) of uint8 as a PNG file."""
    rows, columns = pixels.shape[:2]
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def data_uri(colors: Any, alpha: Any) -> str:
    """Colours of shape (rows, columns, 3) from 0 to 1 as the address of a PNG that they make."""
    opaque = np.broadcast_to(alpha, colors.shape[:2])[:, :, None]
    pixels = np.rint(np.concatenate([colors, opaque], axis=2) * 255).astype(np.uint8)
    return f"data:image/png;base64,{b64encode(png(pixels)).decode()}"

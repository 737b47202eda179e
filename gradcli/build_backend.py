"""The backend that builds gradcli's wheel: setuptools', with the parsing tables and the index of
lazy families in the wheel.

Working them out takes some tenths of a second. A wheel that carries them spares every fresh machine
that time, and a machine without a writable cache folder pays it never.
"""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta

from gradcli.language.parser import tables
from gradcli.ops.binding import lazy

build_editable = build_meta.build_editable
build_sdist = build_meta.build_sdist
get_requires_for_build_editable = build_meta.get_requires_for_build_editable
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel


def build_wheel(
    wheel_directory: str,
    config_settings: Any = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel, the tables and the index made first; gives its file name."""
    import gradcli.ops.load  # noqa: F401  # lazy: start-up: an editable installation needs no NumPy

    tables.write_beside_grammar()
    lazy.write_installed()
    try:
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        # A checkout's grammar and families may change.
        os.unlink(tables.path_beside_grammar())
        os.unlink(lazy.installed_path())

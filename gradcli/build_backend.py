"""The backend that builds gradcli's wheel: setuptools', with the parsing tables, the index of lazy
families, the kernels in C, the man page and the shells' completions in the wheel.

Working out tables and index takes some tenths of a second. A wheel that carries them spares every
fresh machine that time, and a machine without a writable cache folder pays it never.

The kernels are optional: without a compiler, or with `GRADCLI_NATIVE=0`, everything works without
them, and with that setting the wheel is one for every system.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from glob import glob
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from setuptools import Extension, build_meta, find_packages, setup
from setuptools.command.build_ext import build_ext

from gradcli.arrays.native.dispatch import SOURCES
from gradcli.cli import man_page
from gradcli.language.parser import tables
from gradcli.ops.binding import lazy

FLAGS = [
    "-std=c11", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-g0", "-fno-math-errno",
    "-fno-trapping-math", "-ffp-contract=off",
]  # fmt: skip
"""What the kernels are compiled with. No flag lets the compiler reorder sums or fuse products. What
-O3 has above this, copies of functions and of small loops, is asked for in the sources, where it
pays (`core.h`): it would take twice as long.
"""


def _kernels() -> list[Any]:
    """The extension module of the kernels in C, unless there is to be none."""
    # An interpreter without a global lock has no limited API.
    if os.environ.get("GRADCLI_NATIVE") == "0" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return []
    found = [path for room in SOURCES for path in sorted(glob(f"gradcli/{room}/*.[cdh]*"))]
    core = Extension(
        "gradcli.arrays.native._core",
        [path for path in found if path.endswith(".c")],
        depends=[path for path in found if path.endswith((".h", ".def"))],
        extra_compile_args=["/O2", "/std:c11"] if sys.platform == "win32" else FLAGS,
        libraries=[] if sys.platform == "win32" else ["m"],
        extra_link_args=[] if sys.platform in ("win32", "emscripten") else ["-pthread"],
        py_limited_api=True,
        optional=True,
    )
    return [core]


class _BuildKernels(build_ext):  # type: ignore[misc]  # setuptools has no types here
    """Compiles the files of the extension side by side."""

    def build_extensions(self) -> None:
        compile = self.compiler.compile

        def side_by_side(sources: list[str], *arguments: Any, **settings: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                objects_of_each = pool.map(
                    lambda source: compile([source], *arguments, **settings), sources
                )
                return [each for objects in objects_of_each for each in objects]

        self.compiler.compile = side_by_side
        super().build_extensions()


class _Absent(ModuleType):
    """What stands for NumPy and all that is in it where there is no NumPy.

    To know what names the families have, their files are run: they call NumPy for constants, and
    derive classes, but no name depends on what comes out.
    """

    __path__: list[str] = []  # noqa: RUF012  # of a module that has modules

    def __init__(self, *_: object) -> None:
        super().__init__("absent")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __getattr__(self, name: str) -> _Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **settings: object) -> _Absent:
        return self

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __hash__(self) -> int:
        return id(self)

    def __float__(self) -> float:
        return 1.0

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __call__
    __truediv__ = __rtruediv__ = __neg__ = __or__ = __ror__ = __call__


class FindAbsent(MetaPathFinder, Loader):
    """Finds NumPy where there is none."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name.split(".")[0] in {"numpy", "ml_dtypes"}:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Absent()

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


_shared: list[tuple[str, list[str]]] = []
"""What the wheel that is built puts below the environment: folders, and the files for them."""


def _packages(in_place: bool = False) -> dict[str, Any]:
    """All folders of modules, and the grammar, which stands at the top level of a checkout and
    inside the package of an installation.

    `in_place` leaves the grammar where it is. The checkout's folder is then all that an environment
    has to know; for another place setuptools has a finder of modules, and whatever Python starts in
    the environment would first import that, for 20 ms.
    """
    names = find_packages(include=["gradcli", "gradcli.*"])
    if in_place:
        return {"packages": names, "package_dir": {"": "."}}
    return {"packages": [*names, "gradcli.grammar"], "package_dir": {"gradcli.grammar": "grammar"}}


def _set_up(setup_script: str = "setup.py", in_place: bool = False) -> None:
    """What setuptools does for a project without a setup.py, with the packages and the kernels."""
    options = {"bdist_wheel": {"py_limited_api": "cp311"}}
    commands = {"build_ext": _BuildKernels}
    setup(
        ext_modules=_kernels(),
        options=options,
        data_files=_shared,
        cmdclass=commands,
        **_packages(in_place),
    )


_backend = build_meta._BuildMetaBackend()
_backend.run_setup = _set_up
build_sdist = _backend.build_sdist
get_requires_for_build_editable = _backend.get_requires_for_build_editable
get_requires_for_build_sdist = _backend.get_requires_for_build_sdist
get_requires_for_build_wheel = _backend.get_requires_for_build_wheel
prepare_metadata_for_build_editable = _backend.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = _backend.prepare_metadata_for_build_wheel


def build_editable(
    wheel_directory: str,
    config_settings: Any = None,
    metadata_directory: str | None = None,
) -> str:
    """Build what leads to this checkout; gives its file name."""
    _backend.run_setup = partial(_set_up, in_place=True)
    try:
        return str(_backend.build_editable(wheel_directory, config_settings, metadata_directory))
    finally:
        _backend.run_setup = _set_up


def build_wheel(
    wheel_directory: str,
    config_settings: Any = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel, the tables and the index made first; gives its file name."""
    # Behind all other finders: only what they do not find is absent.
    sys.meta_path.append(FindAbsent())
    import gradcli.ops.load  # noqa: F401  # lazy: start-up: an editable installation needs no index

    tables.write_beside_grammar()
    lazy.write_installed()
    try:
        with tempfile.TemporaryDirectory() as folder:
            places = man_page.write(Path(folder))
            _shared[:] = [(os.path.dirname(each), [f"{folder}/{each}"]) for each in places]
            return str(_backend.build_wheel(wheel_directory, config_settings, metadata_directory))
    finally:
        _shared.clear()
        # A checkout's grammar and families may change.
        os.unlink(tables.path_beside_grammar())
        os.unlink(lazy.installed_path())

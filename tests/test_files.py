"""Files of data: what each format gives back, and what is said of a file that is wrong."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradcli.arrays.files.data_file import DataFile
from gradcli.arrays.files.formats import read, read_one, reads_stdin, replace, sniffed, write_arrays
from gradcli.arrays.files.pickled import BadPickleError, unpickled
from gradcli.errors import GradcliError
from gradcli.limits import Limits
from gradcli.state import State, active
from tests.command_line import CommandLine, process

pytestmark = pytest.mark.usefixtures("here")


def one(text: str) -> Any:
    """The one array or value that a word behind `@` names."""
    return read_one(DataFile.named(text))


# --- round trips --------------------------------------------------------------------------------

_RANDOM = np.random.default_rng(5)

ARRAYS: dict[str, Any] = {
    "matrix": _RANDOM.normal(size=(3, 2)).astype(np.float32),
    "double": _RANDOM.normal(size=4),
    "half": _RANDOM.normal(size=(2, 2)).astype(np.float16),
    "scalar": np.float32(0.1),
    "empty": np.zeros((0, 3), np.float32),
    "int64": np.array([[-(2**62)], [3]]),
    "uint8": np.array([0, 255], np.uint8),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j, -3j], np.complex64),
    "extremes": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
    "transposed": np.arange(6.0).reshape(2, 3).T,
}


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors"])
@pytest.mark.parametrize("name", ARRAYS)
def test_binary_formats_give_back_what_they_got(suffix: str, name: str) -> None:
    array = ARRAYS[name]
    write_arrays(f"x.{suffix}", array if suffix == "npy" else {"some name": array})
    found = one(f"x.{suffix}")
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == np.ascontiguousarray(array).tobytes()
    assert found.ndim == 0 or found.flags.writeable


def test_bfloat16_needs_safetensors() -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    write_arrays("x.safetensors", {"w": array})
    assert one("x.safetensors:w").tobytes() == array.tobytes()
    for name in ("x.npy", "x.npz"):
        with pytest.raises(GradcliError, match="no bfloat16"):
            write_arrays(name, array)
        assert not Path(name).exists()


@pytest.mark.parametrize(
    "value",
    [
        [[1.5, 2.0], [-3.25, 1e-30]],
        [1, 2, 3],
        0.1,
        [],
        {"a": [1.5], "b": {"c": [[1, 2]]}},
        {"z": [{"real": 1.0, "imag": -2.0}]},
        ["NaN", "Infinity", 1.0, "-Infinity"],
    ],
)
def test_json_gives_back_what_it_got(value: Any) -> None:
    Path("v.json").write_text(json.dumps(value))
    found = read(DataFile.named("v.json"))
    write_arrays("w.json", found)
    assert json.loads(Path("w.json").read_text()) == value


@pytest.mark.parametrize(
    "arrays",
    [
        {"m": _RANDOM.normal(size=(4, 3))},
        {"v": _RANDOM.normal(size=5).astype(np.float32)},
        {"a": np.array([0.1, 0.2]), "b": np.array([1, 2])},
        {"a": np.float64(3.5), "b": np.float64(-2)},
        {"v": np.array([np.nan, -np.inf])},
    ],
)
def test_csv_gives_back_what_it_got(arrays: dict[str, Any]) -> None:
    write_arrays("t.csv", arrays)
    if len(arrays) == 1:
        (array,) = arrays.values()
        np.testing.assert_array_equal(one("t.csv").astype(array.dtype), array)
    for name, array in arrays.items() if len(arrays) > 1 else ():
        np.testing.assert_array_equal(one(f"t.csv:{name}"), np.atleast_1d(array))


# --- tables -------------------------------------------------------------------------------------

TABLE = "age,height,name\n31,1.75,Ann\n28,1.68,Bob\n"

TABLES: dict[str, tuple[str, str, Any]] = {
    "without a header": ("1,2\n3,4\n", "", [[1, 2], [3, 4]]),
    "with a header": ("a,b\n1,2\n3,4\n", "", [[1, 2], [3, 4]]),
    "one column": ("1\n2\n3\n", "", [1, 2, 3]),
    "a column by name": (TABLE, "age", [31, 28]),
    "columns by name": (TABLE, "height,age", [[1.75, 31], [1.68, 28]]),
    "a column by number": (TABLE, "1", [1.75, 1.68]),
    "a column from the end": (TABLE, "-2", [1.75, 1.68]),
    "a range": (TABLE, "0:2", [[31, 1.75], [28, 1.68]]),
    "a range to the end": ("1,2,3\n", "1:", [[2, 3]]),
    "a name with a comma": ('"a,b",c\n1,2\n', "a,b", [1]),
    "semicolons": ("1;2\n3;4\n", "", [[1, 2], [3, 4]]),
    "tabs": ("1\t2\n", "", [[1, 2]]),
    "carriage returns": ("a,b\r\n1,2\r\n", "", [[1, 2]]),
    "a byte order mark": ("\ufeff1,2\n", "", [[1, 2]]),
    "quotes": ('"a","b"\n"1","2"\n', "", [[1, 2]]),
    "a line end in quotes": ('t,n\n"x\ny",5\n', "n", [5]),
    "blank lines": ("\na,b\n\n1,2\n\n", "", [[1, 2]]),
    "blanks": (" 1, 2\n3 ,4\n", "", [[1, 2], [3, 4]]),
    "no line end": ("1,2\n3,4", "", [[1, 2], [3, 4]]),
    "special numbers": ("1e3,nan,-inf\n", "", [[1000.0, np.nan, -np.inf]]),
    "a header only": ("a,b\n", "", np.zeros((0, 2))),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(case: str) -> None:
    text, columns, expected = TABLES[case]
    Path("t.csv").write_text(text, newline="")
    found = one(f"t.csv:{columns}" if columns else "t.csv")
    np.testing.assert_array_equal(found, expected, strict=True)


def test_large_tables_are_read_in_blocks() -> None:
    array = _RANDOM.integers(-9, 9, (40_000, 2))
    np.savetxt("t.csv", array, "%d", ",", header="a,b", comments="")
    np.testing.assert_array_equal(one("t.csv"), array)
    with open("t.csv", "a") as file:
        file.write("1,2\n3,?\n")
    with pytest.raises(GradcliError, match=r"line 40003, column 2 \(b\): '\?' is no number"):
        one("t.csv")


# --- what is wrong ------------------------------------------------------------------------------


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npz(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def tensors(entries: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = entries.encode() if isinstance(entries, str) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str, shape: Any, begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = npy(np.arange(3.0))
LARGE_CRC = npz(a=GOOD).replace(GOOD[-8:], b"\x01" * 8)

WRONG: dict[str, tuple[str, bytes | str, str, str]] = {
    # what is wrong: the file, its content, the code, and a part of the message
    "npy without its magic": ("x.npy", b"1, 2, 3\n", "E504", "byte 0"),
    "npy of a later version": ("x.npy", b"\x93NUMPY\x09\x00", "E504", "byte 6"),
    "npy header of no literal": ("x.npy", header("{'descr': open('x')}"), "E504", "byte 10"),
    "npy header of brackets": ("x.npy", header("(" * 5000), "E504", "byte 10"),
    "npy header without a shape": ("x.npy", header("{'descr': '<f8'}"), "E504", "byte 10"),
    "npy of negative size": (
        "x.npy",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"),
        "E504",
        "byte 10",
    ),
    "npy of a huge size": (
        "x.npy",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999,)}"),
        "E504",
        "takes 7,999,992 bytes, and there are 0",
    ),
    "npy of an empty size and a vast one": (
        "x.npy",
        header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {2**40}, {2**40})}}"),
        "E504",
        "byte 10",
    ),
    "npy of many dimensions": (
        "x.npy",
        header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {(0,) * 65}}}"),
        "E504",
        "byte 10",
    ),
    "npy of objects": ("x.npy", npy(np.array([{}], object)), "E505", "pickle"),
    "npy of unsigned": ("x.npy", npy(np.ones(2, np.uint64)), "E505", "uint64"),
    "npy of texts": ("x.npy", npy(np.array(["a"])), "E505", "no dtype for an array of <U1"),
    "npy of records": ("x.npy", npy(np.zeros(2, [("a", "f4")])), "E505", "no dtype"),
    "npy of bfloat16": ("x.npy", npy(np.ones(2, ml_dtypes.bfloat16)), "E505", "no dtype"),
    "a key of an npy": ("x.npy:key", GOOD, "E506", "holds no array"),
    "npz of nothing": ("x.npz", b"", "E504", "no whole npz archive"),
    "npz that is cut": ("x.npz", npz(a=GOOD, b=GOOD)[:-30], "E504", "no whole npz archive"),
    "npz with a bad member": ("x.npz:a", npz(a=GOOD[:40]), "E504", "'a.npy': byte 40"),
    "npz with a bad checksum": ("x.npz:a", LARGE_CRC, "E504", "'a.npy': not readable: Bad CRC"),
    "npz with objects": ("x.npz", npz(a=npy(np.array([{}], object))), "E505", "pickle"),
    "npz of several": ("x.npz", npz(a=GOOD, b=GOOD), "E506", "holds 2 arrays: a, b"),
    "npz without the key": ("x.npz:weihgt", npz(weight=GOOD), "E506", "did you mean `weight`?"),
    "an empty npz": ("x.npz", npz(), "E506", "holds no array"),
    "a control character in a key": ("x.npz:c", npz(**{"\x1b[2J": GOOD}), "E506", r"\x1b[2J"),
    "a file of torch.save": (
        "x.pt",
        npz(a=GOOD).replace(b"a.npy", b"d.npy").replace(b"d.npy", b"d.pkl"),
        "E506",
        "holds no array",
    ),
    "a pickle": ("x.pkl", b"\x80\x04\x95\x00", "E505", "pickle"),
    "safetensors of nothing": ("x.safetensors", b"", "E504", "byte 0"),
    "safetensors with a long header": ("x.safetensors", tensors({}, b"", 10**9), "E504", "byte 0"),
    "safetensors with no JSON": ("x.safetensors", tensors("{oops"), "E504", "byte 8"),
    "safetensors with a list": ("x.safetensors", tensors("[]"), "E504", "no JSON object"),
    "safetensors with a name twice": (
        "x.safetensors",
        tensors('{"a": {}, "a": {}}'),
        "E504",
        "twice",
    ),
    "safetensors without a shape": ("x.safetensors", tensors({"a": {}}), "E504", "'a'"),
    "safetensors of a negative shape": (
        "x.safetensors",
        tensors({"a": entry("F32", [-1], 0, 4)}, bytes(4)),
        "E504",
        "'a'",
    ),
    "safetensors of another size": (
        "x.safetensors",
        tensors({"a": entry("F32", [2], 0, 4)}, bytes(4)),
        "E504",
        "shape (2,) of F32 takes 8 bytes",
    ),
    "safetensors beyond the end": (
        "x.safetensors",
        tensors({"a": entry("F32", [2], 0, 8)}, bytes(4)),
        "E504",
        "describes 8 bytes of data, and there are 4",
    ),
    "safetensors of an empty size and a vast one": (
        "x.safetensors",
        tensors({"a": entry("F32", [0, 2**70], 0, 0)}),
        "E504",
        "'a'",
    ),
    "safetensors with a hole": (
        "x.safetensors",
        tensors({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, bytes(3)),
        "E504",
        "'b': its data begins at 2",
    ),
    "safetensors that overlap": (
        "x.safetensors",
        tensors({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3)),
        "E504",
        "'b': its data begins at 1",
    ),
    "safetensors of 8-bit floats": (
        "x.safetensors",
        tensors({"a": entry("F8_E4M3", [1], 0, 1)}, bytes(1)),
        "E505",
        "F8_E4M3",
    ),
    "csv that is empty": ("t.csv", "", "E504", "the table is empty"),
    "csv that is ragged": ("t.csv", "1,2\n3,4\n5\n", "E504", "line 3: the row has 1 cell,"),
    "csv with a bad cell": (
        "t.csv",
        "a,b\n1,2\n3,x\n",
        "E505",
        "line 3, column 2 (b): 'x' is no number",
    ),
    "csv with a bad first line": ("t.csv", "1,x\n", "E505", "line 1, column 2"),
    "csv with an empty cell": ("t.csv", "1,2\n3,\n", "E505", "line 2, column 2: the cell is empty"),
    "csv with an underscore": ("t.csv", "1,2\n1_000,2\n", "E505", "'1_000'"),
    "csv with other digits": ("t.csv", "1,2\n\u0661,2\n", "E505", "line 2, column 1"),
    "csv with an open quote": ("t.csv", '1,2\n"3,4\n', "E504", "line 2: no table"),
    "csv behind a quoted line end": ("t.csv", 'a,b\n"1\n",2\n?,4\n', "E505", "line 4, column 1"),
    "csv without the column": ("t.csv:hieght", TABLE, "E506", "did you mean `height`?"),
    "csv without that many columns": ("t.csv:3", TABLE, "E506", "no column '3'"),
    "csv of no UTF-8": ("t.csv", b"1,2\n3,\xff\n", "E504", "line 2: the byte 0xff"),
    "csv with a control character": ("t.csv", "a\n\x1b[2J\n", "E505", r"'\x1b[2J' is no number"),
    "json of nothing": ("v.json", "", "E504", "line 1, column 1"),
    "json that is cut": ("v.json", "[1,\n[2,", "E504", "line 2, column 4"),
    "json with a name twice": (
        "v.json",
        '{"a": 1,\n "b": {"a": 1}, "a": 2}',
        "E504",
        "line 2, column 17: the name 'a' stands twice",
    ),
    "json with NaN": ("v.json", "[1,\n NaN]", "E504", "line 2, column 2: JSON has no NaN"),
    "json that is ragged": ("v.json", '{"a": [[1, 2], [3]]}', "E505", "line 1, column 16"),
    "json of mixed depth": ("v.json", "[1, [2]]", "E505", "line 1, column 5"),
    "json that is deep": ("v.json", "[" * 300 + "]" * 300, "E504", "line 1, column 201"),
    "json that is very deep": ("v.json", "[" * 10**6, "E504", "nested more than 200 deep"),
    "json of a huge integer": ("v.json", f"[{'9' * 40}]", "E505", "an integer is too large"),
    "json of a huge literal": ("v.json", "9" * 10**5, "E504", "no JSON"),
    "json without the key": ("v.json:a.c", '{"a": {"b": 1}}', "E506", "no key 'c'"),
    "json without the element": ("v.json:2", "[1, 2]", "E506", "a list of 2"),
    "json of a number with a key": ("v.json:a", "1", "E506", "no object or list"),
    "json of no UTF-8": ("v.json", b"[\n\xff]", "E504", "line 2: the byte 0xff"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(gradcli: CommandLine, case: str) -> None:
    """A file that is wrong ends with exit code 4, a word about the place, and no control
    character.
    """
    word, content, code, message = WRONG[case]
    path = Path(word.partition(":")[0])
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    shown = gradcli("y = x * 2", f"x=@{word}")
    assert (shown.code, shown.out) == (4, "")
    assert shown.err.startswith(f"error[{code}]: {path}")
    assert message in shown.err
    assert "\n1 | x=@" in shown.err
    assert "\x1b" not in shown.err
    # The language's own `load` says the same, unless it takes a file of several arrays whole.
    if "holds" not in message:
        shown = gradcli("-e", f"load({word!r})")
        assert shown.code == 4
        assert shown.err.startswith(f"error[{code}]: {path}")


@pytest.mark.parametrize("length", [*range(12), 64, 127, 128, len(GOOD) - 1])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_cut_anywhere(length: int, version: tuple[int, int]) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.arange(3.0), version)
    Path("x.npy").write_bytes(stream.getvalue()[:length])
    with pytest.raises(GradcliError, match="byte") as raised:
        one("x.npy")
    assert raised.value.code == "E504"


@pytest.mark.parametrize("make", [lambda: npz(a=GOOD, b=GOOD), lambda: tensors(
    {"a": entry("F64", [2], 0, 16), "b": entry("I32", [], 16, 20)}, bytes(20))])  # fmt: skip
def test_archives_cut_anywhere(make: Callable[[], bytes]) -> None:
    content = make()
    for length in range(0, len(content), 3):
        Path("x").write_bytes(content[:length])
        suffix = "npz" if content[:2] == b"PK" else "safetensors"
        with pytest.raises(GradcliError) as raised:
            one(f"{suffix}:x:a")
        assert raised.value.code in ("E504", "E506")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "no file is named"),
        ("missing.npy", "no such file"),
        ("missing.npz:key", "missing.npz: no such file"),
        ("folder.npy", "is a folder"),
        ("\x1b[2J.npy", r"\x1b[2J.npy: no such file"),
    ],
)
def test_files_that_cannot_be_read(gradcli: CommandLine, word: str, message: str) -> None:
    Path("folder.npy").mkdir()
    shown = gradcli("y = x * 2", f"x=@{word}")
    assert (shown.code, shown.out) == (4, "")
    assert shown.err.startswith("error[E502]: ")
    assert message in shown.err
    assert "\x1b" not in shown.err


def test_limits(gradcli: CommandLine) -> None:
    np.save("x.npy", np.ones(2000))
    Path("t.csv").write_text("1\n" * 2000)
    Path("v.json").write_text(json.dumps([1] * 2000))
    for name in ("x.npy", "t.csv", "v.json"):
        shown = gradcli("y = x * 2", f"x=@{name}", "--max-elements", "1000")
        assert shown.code == 5
        assert shown.err.startswith("error[E602]: ")
    shown = gradcli("y = x * 2", "x=@/dev/zero", "--max-elements", "1000000")
    assert shown.code == 5


def test_files_out_of_bounds() -> None:
    Path("x.csv").write_text("1\n")
    active.state = State(limits=Limits(files=False))
    for refused in (lambda: one("x.csv"), lambda: write_arrays("y.npy", np.ones(2))):
        with pytest.raises(GradcliError) as raised:
            refused()
        assert raised.value.code == "E606"
    assert not Path("y.npy").exists()


# --- names and formats --------------------------------------------------------------------------

WORDS = {
    "x.npy": ("x.npy", "", "npy"),
    "X.NPZ:w": ("X.NPZ", "w", "npz"),
    "m.npz:a:b": ("m.npz", "a:b", "npz"),
    "t.tsv:0:2": ("t.tsv", "0:2", "csv"),
    "csv:data.txt:1": ("data.txt", "1", "csv"),
    "data.txt": ("data.txt", "", ""),
    "-": ("-", "", ""),
    "-:key": ("-", "key", ""),
    "json:-:a.b": ("-", "a.b", "json"),
    "with:colon.npz": ("with:colon.npz", "", "npz"),
    "with:colon.npz:k": ("with:colon.npz", "k", "npz"),
    "missing.npz:k": ("missing.npz", "k", "npz"),
}


@pytest.mark.parametrize("word", WORDS)
def test_words(word: str) -> None:
    for name in ("X.NPZ", "m.npz", "data.txt", "with:colon.npz"):
        Path(name).touch()
    file = DataFile.named(word)
    assert (file.path, file.key, file.format) == WORDS[word]
    assert reads_stdin(word) == (file.path == "-")


def test_formats_are_told_from_the_content() -> None:
    for name, value in (("npy", np.ones(2)), ("npz", np.ones(2)), ("safetensors", np.ones(2))):
        write_arrays(f"x.{name}", value)
        assert sniffed(Path(f"x.{name}").read_bytes()) == name
    texts = {"[1]": "json", ' {"a": 1}': "json", "3\n": "json", "1,2\n": "csv", "a\n1\n": "csv"}
    for text, expected in texts.items():
        assert sniffed(text.encode()) == expected
    assert sniffed(b"") == "csv"


@pytest.mark.parametrize(
    ("word", "content", "printed"),
    [
        ("-", b"[[1, 2], [3, 4]]", "tensor(10., "),
        ("-", GOOD, "tensor(3., dtype=torch.float64, "),
        ("-:a", npz(a=GOOD, b=GOOD), "tensor(3., dtype=torch.float64, "),
        ("csv:-", b"7\n", "tensor(7., "),
        ("-:n", b"n,t\n1,x\n2,y\n", "tensor(3., "),
        ("json:-:v", b'{"v": ["NaN", 1]}', "tensor(nan, "),
        ("safetensors:-", tensors({"a": entry("I32", [], 0, 4)}, b"\x05\0\0\0"), "tensor(5)"),
    ],
)
def test_standard_input(word: str, content: bytes, printed: str) -> None:
    shown = process("-e", "print(x.sum())", f"x=@{word}", stdin=content)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(printed)


def test_standard_input_is_read_once(gradcli: CommandLine) -> None:
    for words in (
        ("y = a + b", "a=@-", "b=@csv:-"),
        ("run", "-", "a=@-"),
        ("y = a", "a=@-", "--inputs", "-"),
    ):
        shown = gradcli(*words)
        assert shown.code == 2
        assert "both read standard input" in shown.err


# --- writing ------------------------------------------------------------------------------------


def test_a_failure_leaves_the_old_file() -> None:
    Path("x.npz").write_text("old")

    def fail(stream: Any) -> None:
        stream.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(GradcliError, match="no space left") as raised:
        replace("x.npz", fail)
    assert raised.value.code == "E603"
    assert Path("x.npz").read_text() == "old"
    assert [path.name for path in Path().iterdir()] == ["x.npz"]
    assert not active.state.temporary


TOY = ("y = (a * b).sum()", "a=[1,2]", "b=[3,4]", "-q")


@pytest.mark.parametrize(
    ("program", "output", "message"),
    [
        (("y = a * b", "a=1", "b=2"), "o.npy", "--wrt a"),
        (("y = (a * b).sum()", "a=[1,2]", "b=[[3],[4]]"), "o.csv", "csv holds one matrix"),
        (("y = a * a", "a=ones(2, 2, 2)", "--seed", "ones(2,2,2)"), "o.csv", "3 dimensions"),
        (("y = a * a", "a=tensor(1., dtype=complex128)", "--seed=1"), "o.safetensors", "npz"),
        (("y = a * a", "a=1"), "missing/o.npz", "there is no folder missing"),
    ],
)
def test_results_that_a_format_does_not_hold(
    gradcli: CommandLine, program: tuple[str, ...], output: str, message: str
) -> None:
    shown = gradcli(*program, "-q", "-o", output)
    assert shown.code == 5
    assert "error[E603]" in shown.err
    assert message in shown.err
    assert list(Path().iterdir()) == []


def test_results_in_each_format(gradcli: CommandLine) -> None:
    for suffix in ("npz", "safetensors"):
        assert gradcli(*TOY, "-o", f"o.{suffix}").code == 0
        found = read(DataFile.named(f"o.{suffix}"))
        assert {name: found[name].tolist() for name in found} == {
            "y": 11.0, "a.grad": [3.0, 4.0], "b.grad": [1.0, 2.0],
        }  # fmt: skip
    assert gradcli(*TOY, "-o", "o.csv").code == 0
    assert Path("o.csv").read_text() == "a.grad,b.grad\n3.0,1.0\n4.0,2.0\n"
    assert gradcli(*TOY, "--wrt", "b", "-o", "o.npy").code == 0
    assert np.load("o.npy").tolist() == [1.0, 2.0]
    assert gradcli("y = tensor([1, 2])", "-q", "-o", "o.npy").code == 0
    assert np.load("o.npy").tolist() == [1, 2]


# --- load and save ------------------------------------------------------------------------------

PROGRAMS = {
    "save(x, 'a.npy')\nprint(load('a.npy'))": "tensor([[1., 2.],\n        [3., 4.]])",
    "save(x, 'a.csv')\nprint(load('a.csv:1'))": "tensor([2., 4.])",
    "save(x.long(), 'a.json')\nprint(load('a.json').dtype)": "torch.int64",
    "save({'x': x, 'k': 3}, 'a.npz')\nprint(load('a.npz')['k'])": "tensor(3)",
    "save({'x': x}, 'a.safetensors')\nprint(load('a.safetensors:x')[0])": "tensor([1., 2.])",
    "save([1, 2.5], 'a.json')\nprint(load('a.json'))": "tensor([1.0000, 2.5000])",
    "save(w, 'a.npz')\nprint(load('a.npz'))": "{'arr_0': tensor(2.)}",
    "torch.set_default_dtype(torch.float64)\nsave(w, 'a.json')\nprint(load('a.json') * 2)": "4.0",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_load_and_save(gradcli: CommandLine, program: str) -> None:
    made = "x = tensor([[1., 2.], [3., 4.]])\nw = tensor(2., requires_grad=True)\n"
    shown = gradcli("-e", made + program, "-q")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.split("\n\n")[0].startswith(PROGRAMS[program] + "\n")


@pytest.mark.parametrize(
    ("program", "code", "exit_code", "message"),
    [
        ("torch.load('x.pt')", "E502", 4, "no such file"),
        ("torch.load(3)", "E202", 3, "the name of a file or a BytesIO"),
        ("torch.save(nn.Linear(2, 1), 'x.pt')", "E202", 3, "model.state_dict()"),
        ("torch.save([1], 'none/x.pt')", "E603", 5, "none/x.pt"),
        ("torch.save(lambda: 1, 'x.pt')", "E202", 3, "not function"),
        ("load(3)", "E202", 3, "the name of a file"),
        ("save('text', 'x.npy')", "E202", 3, "writes tensors, not str"),
        ("save({1: 2}, 'x.npz')", "E202", 3, "names as keys"),
        ("save(1, 'x.pt')", "E603", 5, ".safetensors"),
        ("save({'a': 1, 'b': 2}, 'x.npy')", "E603", 5, "npy holds one array"),
        ("load('-')", "E502", 4, "NAME=@-"),
        ("load('no.npy')", "E502", 4, "no such file"),
        ("load('x.npy', 2)", "E201", 3, "load"),
    ],
)
def test_load_and_save_refuse(
    gradcli: CommandLine, program: str, code: str, exit_code: int, message: str
) -> None:
    shown = gradcli("-e", program)
    assert (shown.code, shown.out) == (exit_code, "")
    assert shown.err.startswith(f"error[{code}]: ")
    assert message in shown.err
    assert list(Path().iterdir()) == []


def test_load_fails_as_in_python(gradcli: CommandLine) -> None:
    program = "try:\n    load('no.npy')\nexcept FileNotFoundError:\n    print('gone')"
    assert gradcli("-e", program).out == "gone\n"


def test_sandboxed_programs_touch_no_files(gradcli: CommandLine) -> None:
    for words in (("load('x.npy')",), ("save(1, 'x.npy')",), ("y = x", "x=@x.npy")):
        shown = gradcli("-e", *words, "--sandbox")
        assert shown.code == 5
        assert shown.err.startswith("error[E606]: ")
    assert list(Path().iterdir()) == []


_CALLS = b"(ctorch\nSize\nK\x01t"
"""A tuple that begins with a function, as only the arguments of a call do."""


@pytest.mark.parametrize(
    "code", [b"ctorch\nSize\n", _CALLS, b"](" + _CALLS + b"e", b"((K\x01ctorch\nSize\ntt"]
)
def test_no_value_of_a_pickle_holds_a_function(code: bytes) -> None:
    with pytest.raises(BadPickleError):
        unpickled(b"\x80\x02" + code + b".", {("torch", "Size"): tuple}, lambda value: value)

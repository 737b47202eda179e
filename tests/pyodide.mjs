// `node tests/pyodide.mjs WHEEL…`: commands of gradcli in Pyodide, which npm installs, with these
// wheels unpacked: gradcli's pure one, and click's.
//
// NumPy has to be Pyodide's own build of it, which is not in npm's package: it comes from Pyodide's
// own host, or lies beside the package. Where it is not to be had, what needs it must say so, and the
// rest must work.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = dirname(createRequire(import.meta.url).resolve("pyodide/package.json"));
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const python = await loadPyodide();
for (const wheel of process.argv.slice(2)) {
  python.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel");
}

const quiet = { messageCallback: () => {}, errorCallback: () => {} };
await python.loadPackage("numpy", quiet).catch(() => {});
const numpy = python.runPython(`
import importlib.util
importlib.util.find_spec("numpy") is not None
`);

const SCRIPT = `
w = torch.tensor([3.0, -2.0], requires_grad=True)
for step in range(40):
    loss = (w * w).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.25 * w.grad
        w.grad = None
print(f"{loss.item():.3g}")
`;
const MISSING = [5, "", "error[E609]: ImportError: this needs numpy, which is not installed\n"];
// Words, exit code, how standard output begins, how standard error does; with NumPy or without.
const ALWAYS = [
  [["--version"], 0, "gradcli ", ""],
  [["--help"], 0, "PyTorch's autograd at the shell", ""],
  [["help", "E401"], 0, "E401: seed missing\n", ""],
  [["help", "platforms"], 0, "Platforms\n", ""],
  [["completion", "bash"], 0, "_gradcli_completion()", ""],
  [["y = (a * ", "a=2"], 3, "", "error[E003]: SyntaxError: `(` is never closed\n"],
  [["run", "none.grad"], 2, "", "error[E503]: none.grad: no such file"],
  [["-e", "1", "--timeout", "9"], 5, "", "error[E607]: TimeoutError: the limit of time cannot be kept"],
  [["y = a", "--dtyp", "float64"], 2, "", "error: no such option '--dtyp'\n"],
];
const COMPUTING = [
  [["e = (a + b) * d", "a=2", "b=3", "d=4"], 0, "e = tensor(20., grad_fn=<MulBackward0>)\n\na.grad = tensor(4.)\n", ""],
  [["run", "script.grad"], 0, "1.08e-23\n", ""],
  [["explain", "e = (a + b) * d", "a=2", "b=3", "d=4"], 0, "e = tensor(20.", ""],
  [["derive", "y = x * tanh(x)", "x=2"], 0, "grad_x = tanh(x) + x * (1 - tanh(x) ** 2)", ""],
  [["y = x * 2", "--inputs", "records.jsonl", "--jobs", "2"], 0, '{"schema": "gradcli.result/1", "record": 1', ""],
];
const rows = [...ALWAYS, ...COMPUTING.map((row) => (numpy ? row : [row[0], ...MISSING]))];

python.FS.writeFile("script.grad", SCRIPT);
python.FS.writeFile("records.jsonl", '{"x": 1}\n{"x": 2}\n');
python.globals.set("asked", JSON.stringify(rows.map(([words]) => words)));
const found = JSON.parse(
  python.runPython(`
import contextlib, io, json
from gradcli.cli.main import run

found = []
for words in json.loads(asked):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
        out.flush(), err.flush()
    found.append([code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()])
json.dumps(found)
`),
);
let wrong = 0;
rows.forEach(([words, code, out, err], place) => {
  const [had, printed, told] = found[place];
  if (had === code && printed.startsWith(out) && told.startsWith(err) && !(told && !err)) return;
  wrong += 1;
  console.log(`gradcli ${words.join(" ")}\nexit code ${had}\n${printed}${told}`);
});
const version = python.runPython("import platform; platform.python_version()");
console.log(`Pyodide ${python.version}, Python ${version}, ${numpy ? "with" : "without"} NumPy: `
  + `${rows.length - wrong} of ${rows.length} commands as expected`);
process.exit(wrong ? 1 : 0);

"""The kernel of notebooks in gradcli's language: a session that lasts, as on the terminal.

`gradcli kernel install` tells Jupyter of it. A cell's last expression shows its value, a tensor
with its graph; `.why x.grad` and the other dot-commands work, `name?` explains, Tab completes.
"""

from __future__ import annotations

import json
import os
import re
from html import escape
from typing import Any, ClassVar

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import gradcli
from gradcli.autograd.tensor import Tensor
from gradcli.doors.python.inputs import options_of
from gradcli.errors import GradcliError
from gradcli.language.events import Plotted
from gradcli.language.parser.parser import is_incomplete
from gradcli.recorded.result import Result
from gradcli.repl import dispatch  # noqa: F401  # it says who answers dot-commands
from gradcli.repl.completion import EntryCompleter
from gradcli.repl.dot_commands.describe import answer
from gradcli.repl.repl import run_entry
from gradcli.running.picture import picture_text
from gradcli.running.plots import show_open_figures, show_plot, text_of
from gradcli.running.process.terminal import Terminal
from gradcli.running.run import HANDLERS, Run
from gradcli.show.diagnostics.human import diagnostic
from gradcli.show.plots.svg import svg
from gradcli.show.style import PLAIN, Style
from gradcli.show.values import shown

SETTINGS = "GRADCLI_KERNEL"
"""The environment variable with the settings of the kernel's session, as JSON."""

_LARGEST_PICTURE = 100
"""The nodes of the largest graph that is drawn without being asked for."""

_NAME = re.compile(r"[A-Za-z_][\w.]*$")


class GradcliKernel(Kernel):  # type: ignore[misc]
    """Runs cells in one session."""

    implementation = "gradcli"
    implementation_version = gradcli.__version__
    banner = f"gradcli {gradcli.__version__}; an expression shows its value, .help the rest"
    language_info: ClassVar[dict[str, Any]] = {
        "name": "gradcli",
        "version": gradcli.__version__,
        "mimetype": "text/x-gradcli",
        "file_extension": ".grad",
        "pygments_lexer": "python",
        "codemirror_mode": {"name": "python"},
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._terminal = _Streams(self)
        options = options_of(json.loads(os.environ.get(SETTINGS) or "{}"))
        handlers = {**HANDLERS, Plotted: self._plotted}
        self._run = _CellRun(self._terminal, options, "graph", handlers)
        self._run.shows_values = True

    def do_execute(
        self, code: str, silent: bool, store_history: bool = True, *more: Any, **named: Any
    ) -> dict[str, Any]:
        """Run a cell; the reply to the front end."""
        self._terminal.silent, self._terminal.failure = silent, None
        self._run.last = None
        try:
            run_entry(self._run, code, f"In[{self.execution_count}]")
        except KeyboardInterrupt:
            self._run.transcript.failed += 1
            return self._failed("KeyboardInterrupt", "", ["interrupted"])
        error = self._terminal.failure
        if error is not None:
            text = diagnostic(error, Style(color=True))
            return self._failed(error.raises, error.message, text.split("\n"))
        show_open_figures(self._run)
        data = self._run.shown_last()
        if data and not silent:
            content = {"execution_count": self.execution_count, "data": data, "metadata": {}}
            self.send_response(self.iopub_socket, "execute_result", content)
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "payload": [],
            "user_expressions": {},
        }

    def _plotted(self, run: Run, event: Plotted) -> None:
        """Show a plot as a picture, or write it to the file that the program names."""
        if event.file is not None:
            show_plot(run, event)
        elif not self._terminal.silent:
            data = {"image/svg+xml": svg(event.plot), "text/plain": text_of(event.plot, PLAIN)}
            content = {"data": data, "metadata": {}, "transient": {}}
            self.send_response(self.iopub_socket, "display_data", content)

    def _failed(self, name: str, value: str, lines: list[str]) -> dict[str, Any]:
        content = {"ename": name, "evalue": value, "traceback": lines}
        if not self._terminal.silent:
            self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_complete(self, code: str, cursor_pos: int) -> dict[str, Any]:
        """What can go on at the cursor."""
        document = Document(code, cursor_pos)
        with self._run.session.running():
            completer = EntryCompleter(self._run.session)
            words = list(completer.get_completions(document, CompleteEvent()))
        start = min((each.start_position for each in words), default=0)
        return {
            "status": "ok",
            "matches": [each.text for each in words],
            "cursor_start": cursor_pos + start,
            "cursor_end": cursor_pos,
            "metadata": {},
        }

    def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> dict[str, Any]:
        """What the name at the cursor stands for."""
        behind = re.match(r"\w*", code[cursor_pos:])
        before = _NAME.search(code[:cursor_pos] + (behind[0] if behind else ""))
        text = None if before is None else answer(self._run, before[0])
        data = {} if text is None else {"text/plain": text}
        return {"status": "ok", "found": text is not None, "data": data, "metadata": {}}

    def do_is_complete(self, code: str) -> dict[str, Any]:
        """Whether a cell is whole, for front ends that run it at Enter."""
        if is_incomplete(code):
            last = code.rstrip("\n").rpartition("\n")[2]
            indent = last[: len(last) - len(last.lstrip())]
            return {
                "status": "incomplete",
                "indent": indent + ("    " if last.rstrip().endswith(":") else ""),
            }
        try:
            self._run.session.parse(code, "cell")
        except GradcliError:
            return {"status": "invalid"}
        return {"status": "complete"}


class _CellRun(Run):
    """The session's run, which shows a cell's last expression only.

    Attributes:
        last: the statement and the value of the expression that was run last.
    """

    last: tuple[Any, Any] | None = None

    def show_value(self, value: Any) -> None:
        self.last = self.statement, value

    def shown_last(self) -> dict[str, str]:
        """The value of the last expression for a front end: none unless the cell ends with it."""
        if self.last is None or self.last[0] is not self.statement:
            return {}
        value = self.last[1]
        with self.session.running():
            text = shown(value, self.mode, full=self.options.full).removesuffix("\n")
            data = {"text/plain": text}
            if type(value) is Tensor and value.grad_fn is not None:
                graph = self.session.graph(value)
                if len(graph.nodes) <= _LARGEST_PICTURE:
                    result = Result(value.name, value, None, (), graph)
                    picture = picture_text(self, result, "svg")
                    data["text/html"] = f"<pre>{escape(text)}</pre>\n{picture}"
        return data


class _Streams(Terminal):
    """Sends what a run shows to the front end.

    Attributes:
        silent: whether the front end wants to hear nothing.
        failure: the error that ended the cell.
    """

    def __init__(self, kernel: GradcliKernel) -> None:  # not the terminal's: it has no stream
        self.style, self.error_style = PLAIN, Style(color=True)
        self.quiet = self.strict = False
        self.warnings = 0
        self.silent = False
        self.failure: GradcliError | None = None
        self._kernel = kernel
        self._form = "full"

    def _write(self, text: str) -> None:
        self._send("stdout", text)

    def flush(self) -> None:
        pass

    def error(self, error: GradcliError) -> None:
        self.failure = error

    def _put(self, text: str) -> None:
        self._send("stderr", text)

    def _send(self, name: str, text: str) -> None:
        if text and not self.silent:
            content = {"name": name, "text": text}
            self._kernel.send_response(self._kernel.iopub_socket, "stream", content)


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=GradcliKernel)

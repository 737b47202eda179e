"""The iterations of a recorded run that are not recorded themselves, compiled."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gradcli.autograd.recording.recorder import Alike, Passes
from gradcli.autograd.tensor import Tensor
from gradcli.language.compiler.base import Compiler
from gradcli.language.long_loops import LongLoops
from gradcli.language.tree import syntax as tree
from gradcli.language.tree.control_flow import Run
from gradcli.language.tree.scopes import Scope, Variables
from gradcli.loops.capture import Capture
from gradcli.loops.compiled import Arrays, CompiledIteration
from gradcli.loops.hot_loop import HotLoop


class UnheardLoop(HotLoop):
    """A hot loop of which a run records some iterations.

    What is interpreted of it is told to the listener of `LongLoops`: also the iteration that is
    captured, and the one that the compiled code is compared with. So it has heard each way through
    the body that is compiled; what depends on values, it may check in compiled iterations too
    (`Listener.check`).
    """

    def __init__(
        self,
        compiler: Compiler,
        node: tree.For | tree.While,
        scope: Scope,
        body: Run,
        in_try: bool,
        following: LongLoops,
    ) -> None:
        super().__init__(
            compiler, node, scope, lambda variables: following.listened(body, variables), in_try
        )
        self._following = following
        self._arrivals: Counter[Tensor] = Counter()
        self._alike: dict[CompiledIteration, Alike] = {}

    def _walked(self, walk: Capture) -> Any:
        self._following.rounds[-1].number += 1  # the captured body does not count itself
        passes = self._following.listener
        before = Counter(passes.arrived) if isinstance(passes, Passes) else Counter()
        signal = self._following.listened(lambda _: walk.run(self.node.body), walk.variables)
        if isinstance(passes, Passes):
            self._arrivals = passes.arrived - before
        return signal

    def _add(self, path: CompiledIteration) -> None:
        super()._add(path)
        passes = self._following.listener
        if isinstance(passes, Passes):
            self._alike[path] = Alike(self._arrivals)
            passes.alike.append(self._alike[path])

    def _run_compiled(self, path: CompiledIteration, variables: Variables) -> Arrays:
        left = super()._run_compiled(path, variables)
        if path in self._alike:
            self._alike[path].count += 1
        return left

"""Views, copies, joins and cuts: their graphs, values and errors, recorded from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recorded import graphs_and_shapes, lists, printed, raises

GRAPHS: list[tuple[str, str, tuple[int, ...]]] = [
    ("m.view(4)", "ViewBackward0(leaf)", (4,)),
    ("m.view(-1, 1)", "ViewBackward0(leaf)", (4, 1)),
    ("s.view(1)", "ViewBackward0(leaf)", (1,)),
    ("m.view_as(torch.ones(4))", "ViewBackward0(leaf)", (4,)),
    ("m.reshape(4)", "ViewBackward0(leaf)", (4,)),
    ("m.reshape(2, 2)", "ViewBackward0(leaf)", (2, 2)),
    ("m.t().reshape(4)", "UnsafeViewBackward0(CloneBackward0(TBackward0(leaf)))", (4,)),
    ("m.t().reshape(2, 2)", "ReshapeAliasBackward0(TBackward0(leaf))", (2, 2)),
    ("m.T.reshape(1, 2, 2)", "ReshapeAliasBackward0(PermuteBackward0(leaf))", (1, 2, 2)),
    ("m.reshape_as(torch.ones(4))", "ViewBackward0(leaf)", (4,)),
    ("m.flatten()", "ViewBackward0(leaf)", (4,)),
    ("m.t().flatten()", "UnsafeViewBackward0(CloneBackward0(TBackward0(leaf)))", (4,)),
    ("s.flatten()", "ViewBackward0(leaf)", (1,)),
    ("b.flatten(1)", "ViewBackward0(leaf)", (2, 3)),
    ("m.ravel()", "ViewBackward0(leaf)", (4,)),
    ("v.ravel()", "ViewBackward0(leaf)", (2,)),
    ("m.t().ravel()", "ViewBackward0(CloneBackward0(TBackward0(leaf)))", (4,)),
    ("b.unflatten(-1, (3, 1))", "ViewBackward0(leaf)", (2, 1, 3, 1)),
    ("m.expand(3, 2, 2)", "ExpandBackward0(leaf)", (3, 2, 2)),
    ("m.expand(-1, 2)", "ExpandBackward0(leaf)", (2, 2)),
    ("m.expand_as(torch.ones(3, 2, 2))", "ExpandBackward0(leaf)", (3, 2, 2)),
    ("torch.broadcast_to(v, (2, 2))", "ExpandBackward0(leaf)", (2, 2)),
    ("torch.broadcast_tensors(v, m)[0]", "ExpandBackward0(leaf)", (2, 2)),
    ('torch.meshgrid(v, v, indexing="xy")[1]', "ExpandBackward0(ViewBackward0(leaf))", (2, 2)),
    ("b.squeeze()", "SqueezeBackward0(leaf)", (2, 3)),
    ("b.squeeze(1)", "SqueezeBackward1(leaf)", (2, 3)),
    ("b.squeeze(0)", "SqueezeBackward1(leaf)", (2, 1, 3)),
    ("b.squeeze((0, 1))", "SqueezeBackward2(leaf)", (2, 3)),
    ("m.unsqueeze(-1)", "UnsqueezeBackward0(leaf)", (2, 2, 1)),
    ("m.unsqueeze(0).squeeze(0)", "SqueezeBackward1(UnsqueezeBackward0(leaf))", (2, 2)),
    ("m.T", "PermuteBackward0(leaf)", (2, 2)),
    ("b.T", "PermuteBackward0(leaf)", (3, 1, 2)),
    ("s.T", "PermuteBackward0(leaf)", ()),
    ("m.t()", "TBackward0(leaf)", (2, 2)),
    ("v.t()", "TBackward0(leaf)", (2,)),
    ("m.mT", "TransposeBackward0(leaf)", (2, 2)),
    ("m.H", "TransposeBackward0(leaf)", (2, 2)),
    ("m.adjoint()", "TransposeBackward0(leaf)", (2, 2)),
    ("m.transpose(0, 1)", "TransposeBackward0(leaf)", (2, 2)),
    ("m.swapaxes(0, -1)", "TransposeBackward0(leaf)", (2, 2)),
    ("v.transpose(0, 0)", "TransposeBackward0(leaf)", (2,)),
    ("m.permute(1, 0)", "PermuteBackward0(leaf)", (2, 2)),
    ("b.movedim(0, 2)", "PermuteBackward0(leaf)", (1, 3, 2)),
    ("torch.moveaxis(b, (0, 1), (1, 2))", "PermuteBackward0(leaf)", (3, 2, 1)),
    ("m.select(0, 1)", "SelectBackward0(leaf)", (2,)),
    ("m.narrow(0, 1, 1)", "SliceBackward0(leaf)", (1, 2)),
    ("m.diagonal()", "DiagonalBackward0(leaf)", (2,)),
    ("m.unfold(0, 1, 1)", "UnfoldBackward0(leaf)", (2, 2, 1)),
    ("m.as_strided((2,), (1,), 1)", "AsStridedBackward0(leaf)", (2,)),
    ("m[0].as_strided((2,), (1,), 2)", "AsStridedBackward0(SelectBackward0(leaf))", (2,)),
    ("m.contiguous().ravel()", "ViewBackward0(leaf)", (4,)),
    ("m.t().contiguous()", "CloneBackward0(TBackward0(leaf))", (2, 2)),
    ("torch.atleast_1d(s)", "ViewBackward0(leaf)", (1,)),
    ("torch.atleast_2d(v)", "UnsqueezeBackward0(leaf)", (1, 2)),
    ("torch.atleast_3d(v)", "UnsqueezeBackward0(UnsqueezeBackward0(leaf))", (1, 2, 1)),
    ("torch.atleast_3d(s)", "ViewBackward0(leaf)", (1, 1, 1)),
    ("m.flip(0)", "FlipBackward0(leaf)", (2, 2)),
    ("m.fliplr()", "FlipBackward0(leaf)", (2, 2)),
    ("m.roll(1)", "RollBackward0(leaf)", (2, 2)),
    ("m.rot90()", "Rot90Backward0(leaf)", (2, 2)),
    ("m.repeat(2, 1)", "RepeatBackward0(leaf)", (4, 2)),
    ("v.tile(2)", "RepeatBackward0(leaf)", (4,)),
    (
        "v.repeat_interleave(2)",
        "ViewBackward0(CloneBackward0(ExpandBackward0(UnsqueezeBackward0(leaf))))",
        (4,),
    ),
    (
        "m.repeat_interleave(2)",
        "ViewBackward0(CloneBackward0(ExpandBackward0(UnsqueezeBackward0(ViewBackward0(leaf)))))",
        (8,),
    ),
    ("v.repeat_interleave(torch.tensor([1, 2]))", "IndexSelectBackward0(leaf)", (3,)),
    ("m.tril()", "TrilBackward0(leaf)", (2, 2)),
    ("m.triu(1)", "TriuBackward0(leaf)", (2, 2)),
    ("v.diag()", "DiagEmbedBackward0(leaf)", (2, 2)),
    ("m.diag()", "DiagonalBackward0_copy(leaf)", (2,)),
    ("m.diagflat()", "DiagEmbedBackward0(ViewBackward0(leaf))", (4, 4)),
    ("v.diag_embed()", "DiagEmbedBackward0(leaf)", (2, 2)),
    ("F.pad(m, (1, 1))", "ConstantPadNdBackward0(leaf)", (2, 4)),
    ('F.pad(m, (1, 1), mode="reflect")', "ReflectionPad1DBackward0(leaf)", (2, 4)),
    ('F.pad(m, (1, 1), mode="replicate")', "ReplicationPad1DBackward0(leaf)", (2, 4)),
    (
        'F.pad(b, (1, 1), mode="circular")',
        "CopySlices(CopySlices(CopySlices(None, SliceBackward0(leaf)), "
        "SliceBackward0(CopySlices(None, SliceBackward0(leaf)))), "
        "SliceBackward0(CopySlices(CopySlices(None, SliceBackward0(leaf)), "
        "SliceBackward0(CopySlices(None, SliceBackward0(leaf))))))",
        (2, 1, 5),
    ),
    ("torch.cat([m, torch.ones(1, 2)])", "CatBackward0(leaf, None)", (3, 2)),
    ("torch.cat([m.double(), m])", "CatBackward0(ToCopyBackward0(leaf), leaf)", (4, 2)),
    ("torch.stack([v, v])", "StackBackward0(leaf, leaf)", (2, 2)),
    ("torch.hstack([v, v])", "CatBackward0(leaf, leaf)", (4,)),
    ("torch.hstack([s, s])", "CatBackward0(ViewBackward0(leaf), ViewBackward0(leaf))", (2,)),
    ("torch.vstack([v, m])", "CatBackward0(UnsqueezeBackward0(leaf), leaf)", (3, 2)),
    (
        "torch.dstack([v, v])",
        "CatBackward0(UnsqueezeBackward0(UnsqueezeBackward0(leaf)), "
        "UnsqueezeBackward0(UnsqueezeBackward0(leaf)))",
        (1, 2, 2),
    ),
    ("torch.column_stack([m, v])", "CatBackward0(leaf, ViewBackward0(leaf))", (2, 3)),
    ("torch.block_diag(m, v)", "BlockDiagBackward0(leaf, leaf)", (3, 4)),
    (
        "torch.cartesian_prod(v, v)",
        "StackBackward0(UnsafeViewBackward0(CloneBackward0(ExpandBackward0("
        "ViewBackward0(leaf)))), "
        "UnsafeViewBackward0(CloneBackward0(ExpandBackward0(ViewBackward0(leaf)))))",
        (4, 2),
    ),
    (
        "torch.combinations(v)",
        "StackBackward0(MaskedSelectBackward0(ExpandBackward0(ViewBackward0(leaf))), "
        "MaskedSelectBackward0(ExpandBackward0(ViewBackward0(leaf))))",
        (1, 2),
    ),
    ("m.split(1)[1]", "SplitBackward0(leaf)", (1, 2)),
    ("m.split([1, 1], 1)[0]", "SplitWithSizesBackward0(leaf)", (2, 1)),
    ("m.chunk(2)[0]", "SplitBackward0(leaf)", (1, 2)),
    ("m.unbind(1)[1]", "UnbindBackward0(leaf)", (2,)),
    ("m.tensor_split(2)[1]", "SliceBackward0(leaf)", (1, 2)),
    ("m.hsplit(2)[0]", "SliceBackward0(leaf)", (2, 1)),
    ("m.unsafe_chunk(2)[0]", "UnsafeSplitBackward0(leaf)", (1, 2)),
]

VALUES: list[tuple[str, Any]] = [
    ("m.t().reshape(4)", [1.0, 3.0, 2.0, 4.0]),
    ("b.movedim(0, 2)", [[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]]),
    ("b.flatten(0, 1)", [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
    ("m.unfold(1, 1, 1)", [[[1.0], [2.0]], [[3.0], [4.0]]]),
    ("m.as_strided((2, 2), (1, 1), 1)", [[2.0, 3.0], [3.0, 4.0]]),
    ("m.rot90()", [[2.0, 4.0], [1.0, 3.0]]),
    ("m.rot90(-1)", [[3.0, 1.0], [4.0, 2.0]]),
    ("m.roll(1)", [[4.0, 1.0], [2.0, 3.0]]),
    ("m.roll((1, 1), (0, 1))", [[4.0, 3.0], [2.0, 1.0]]),
    ("m.repeat(1, 2)", [[1.0, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 4.0]]),
    ("v.repeat(2, 2)", [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]),
    ("m.tile(2, 1)", [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]),
    ("m.repeat_interleave(torch.tensor([1, 2]), dim=1)", [[1.0, 2.0, 2.0], [3.0, 4.0, 4.0]]),
    ("m.tril(-1)", [[0.0, 0.0], [3.0, 0.0]]),
    ("m.triu(1)", [[0.0, 2.0], [0.0, 0.0]]),
    ("v.diag(-1)", [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]),
    ("m.diag(1)", [2.0]),
    ("v.diag_embed(1)", [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]),
    (
        'torch.meshgrid(v, torch.arange(3.0), indexing="xy")[0]',
        [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]],
    ),
    ("F.pad(m, (1, 0, 0, 1), value=9)", [[9.0, 1.0, 2.0], [9.0, 3.0, 4.0], [9.0, 9.0, 9.0]]),
    ("F.pad(m, (-1, 1))", [[2.0, 0.0], [4.0, 0.0]]),
    (
        'F.pad(b, (2, 1), mode="reflect")',
        [[[2.0, 1.0, 0.0, 1.0, 2.0, 1.0]], [[5.0, 4.0, 3.0, 4.0, 5.0, 4.0]]],
    ),
    (
        'F.pad(b, (2, 1), mode="replicate")',
        [[[0.0, 0.0, 0.0, 1.0, 2.0, 2.0]], [[3.0, 3.0, 3.0, 4.0, 5.0, 5.0]]],
    ),
    (
        'F.pad(b, (2, 1), mode="circular")',
        [[[1.0, 2.0, 0.0, 1.0, 2.0, 0.0]], [[4.0, 5.0, 3.0, 4.0, 5.0, 3.0]]],
    ),
    ("torch.cat([torch.tensor([]), m])", [[1.0, 2.0], [3.0, 4.0]]),
    ("torch.cat([torch.tensor([1]), torch.tensor([1.5])])", [1.0, 1.5]),
    ("torch.stack([torch.tensor(1), torch.tensor(2.5)])", [1.0, 2.5]),
    ("torch.stack([v, v], -1)", [[1.0, 1.0], [2.0, 2.0]]),
    (
        "torch.block_diag(m, v, s)",
        [
            [1.0, 2.0, 0.0, 0.0, 0.0],
            [3.0, 4.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 2.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 3.0],
        ],
    ),
    ("torch.arange(5.0).chunk(4)[2]", [4.0]),
    ("torch.arange(5.0).tensor_split(3)[0]", [0.0, 1.0]),
    ("torch.arange(5.0).tensor_split((1, 7))[1]", [1.0, 2.0, 3.0, 4.0]),
    ("torch.arange(5.0).split(2)[2]", [4.0]),
    ("torch.ones(0, 3).view(3, 0)", [[], [], []]),
    ("F.pad(torch.tensor([1, 2]), (1, 1), value=1.5)", [1, 1, 2, 1]),
]

ERRORS: list[tuple[str, str]] = [
    ("m.view(3)", "RuntimeError"),
    ("m.view(-1, -1)", "RuntimeError"),
    ("m.view(-1, 0)", "RuntimeError"),
    ("m.view()", "TypeError"),
    ("m.t().view(4)", "RuntimeError"),
    ("torch.ones(0, 3).view(-1, 0)", "RuntimeError"),
    ("m.reshape(3)", "RuntimeError"),
    ("m.expand(2)", "RuntimeError"),
    ("m.expand(3, 3)", "RuntimeError"),
    ("m.expand(-1, 2, 2)", "RuntimeError"),
    ("m.permute(0)", "RuntimeError"),
    ("m.permute(0, 0)", "RuntimeError"),
    ("m.transpose(0, 2)", "IndexError"),
    ("b.t()", "RuntimeError"),
    ("v.mT", "RuntimeError"),
    ("v.H", "RuntimeError"),
    ("m.squeeze(5)", "IndexError"),
    ("m.squeeze((0, 0))", "RuntimeError"),
    ("m.unsqueeze(3)", "IndexError"),
    ("m.flatten(1, 0)", "RuntimeError"),
    ("m.unflatten(0, (3, 1))", "RuntimeError"),
    ("m.movedim(0, 5)", "IndexError"),
    ("m.select(0, 5)", "IndexError"),
    ("m.select(5, 0)", "IndexError"),
    ("s.select(0, 0)", "IndexError"),
    ("m.narrow(0, 1, 5)", "RuntimeError"),
    ("m.narrow(0, -3, 1)", "IndexError"),
    ("m.unfold(0, 3, 1)", "RuntimeError"),
    ("m.unfold(0, 1, 0)", "RuntimeError"),
    ("m.diagonal(0, 0, 0)", "RuntimeError"),
    ("v.diagonal()", "IndexError"),
    ("m.as_strided((2,), (1,), 9)", "RuntimeError"),
    ("m.flip(3)", "IndexError"),
    ("m.flip()", "TypeError"),
    ("torch.flip(m, (0, 0))", "RuntimeError"),
    ("v.fliplr()", "RuntimeError"),
    ("v.rot90()", "RuntimeError"),
    ("m.rot90(1, (0, 0))", "RuntimeError"),
    ("m.roll((1, 1), 0)", "RuntimeError"),
    ("m.repeat(2)", "RuntimeError"),
    ("m.repeat(-1, 1)", "RuntimeError"),
    ("m.repeat_interleave(-1)", "RuntimeError"),
    ("m.repeat_interleave(torch.tensor([1, 2, 3]), dim=0)", "RuntimeError"),
    ("v.tril()", "RuntimeError"),
    ("m.tril(1.5)", "TypeError"),
    ("torch.diag(b)", "RuntimeError"),
    ("F.pad(m, (1,))", "RuntimeError"),
    ("F.pad(m, (-3, 0))", "RuntimeError"),
    ('F.pad(m, (1, 1), mode="zigzag")', "NotImplementedError"),
    ('F.pad(m, (2, 0), mode="reflect")', "RuntimeError"),
    ('F.pad(v, (1, 1), mode="reflect")', "NotImplementedError"),
    ("torch.cat([])", "ValueError"),
    ("torch.cat(m)", "TypeError"),
    ("torch.cat([m, 1.0])", "TypeError"),
    ("torch.cat([m, v])", "RuntimeError"),
    ("torch.cat([m, torch.ones(3, 3)])", "RuntimeError"),
    ("torch.cat([s, s])", "RuntimeError"),
    ("torch.cat([m, m], 2)", "IndexError"),
    ("torch.stack([])", "RuntimeError"),
    ("torch.stack([m, v])", "RuntimeError"),
    ("torch.stack([m, m], 3)", "IndexError"),
    ("m.split(0)", "RuntimeError"),
    ("m.split([1, 2])", "RuntimeError"),
    ("m.chunk(0)", "RuntimeError"),
    ("m.unbind(3)", "IndexError"),
    ("s.unbind()", "IndexError"),
    ("m.tensor_split(0)", "RuntimeError"),
    ("m.hsplit(3)", "RuntimeError"),
    ('torch.meshgrid(m, m, indexing="ij")', "RuntimeError"),
    ('torch.meshgrid(v, v, indexing="yx")', "RuntimeError"),
    ("torch.broadcast_tensors(m, torch.ones(3))", "RuntimeError"),
]


test_graph = graphs_and_shapes(GRAPHS)
test_values = lists(VALUES)
test_errors = raises(ERRORS)


SAME = ["m.contiguous()", "v.flatten()", "m.flatten(0, 0)", "torch.atleast_1d(m)", "+m"]


@pytest.mark.parametrize("expression", SAME)
def test_the_tensor_itself(expression: str) -> None:
    assert printed(f"print(({expression}) is m, ({expression}) is v)") in (
        "True False",
        "False True",
    )


def test_a_window_beyond_its_view_gives_no_gradient_there() -> None:
    program = "m[1].as_strided((2, 2), (2, 1), 0).sum().backward()\nprint(m.grad.tolist())"
    assert printed(program) == "[[0.0, 0.0], [1.0, 1.0]]"


def test_gradients_of_windows_that_overlap_add_up() -> None:
    program = "m.as_strided((2, 2), (1, 1)).sum().backward()\nprint(m.grad.tolist())"
    assert printed(program) == "[[1.0, 2.0], [1.0, 0.0]]"


def test_joined_tensors_get_gradients_of_their_own_dtype() -> None:
    program = """d = v.detach().double().requires_grad_()
y = torch.cat([v, d])
y.sum().backward()
print(y.dtype, v.grad.dtype, d.grad.dtype)"""
    assert printed(program) == "torch.float64 torch.float32 torch.float64"

"""Random numbers: seeded alike, PyTorch drew these."""

from __future__ import annotations

from tests.recorded import printed, raises
from tests.rows import each_row

# After `torch.manual_seed(7)`; `tolist()` shows every digit.
SEEDED: list[tuple[str, str]] = [
    ("torch.rand(3).tolist()", "[0.5349225401878357, 0.19880318641662598, 0.6592116951942444]"),
    ("torch.rand(2, dtype=torch.float64).tolist()", "[0.279380429906404, 0.27369371365176565]"),
    ("torch.rand(3, dtype=torch.float16)", "tensor([0.5352, 0.1989, 0.6592], dtype=torch.float16)"),
    ("torch.rand(())", "tensor(0.5349)"),
    ("torch.randn(3).tolist()", "[-0.1467950940132141, 0.7861412763595581, 0.9468216300010681]"),
    ("torch.randn(2, dtype=torch.float64)", "tensor([-0.1468,  0.7861], dtype=torch.float64)"),
    (
        "torch.randn(16)[:3].tolist()",
        "[-0.8201345205307007, 0.39563116431236267, 0.8989084959030151]",
    ),
    ("torch.randn(17)[-2:].tolist()", "[-1.3597689867019653, -0.866701602935791]"),
    (
        "torch.randn(18, dtype=torch.float16)[-3:]",
        "tensor([ 0.6743, -1.3232, -1.3594], dtype=torch.float16)",
    ),
    (
        "torch.randn(4, 5)[3].tolist()",
        (
            "[-1.3597689867019653, -0.866701602935791, -0.5640066862106323, -2.056462526321411, "
            "-0.35672253370285034]"
        ),
    ),
    (
        "torch.randn(40, dtype=torch.float64)[30:33]",
        "tensor([-0.7051,  0.8267, -0.4156], dtype=torch.float64)",
    ),
    ("torch.randint(10, (5,))", "tensor([5, 2, 1, 6, 3])"),
    ("torch.randint(3, 5, (2, 2))", ("tensor([[4, 3],\n        [4, 3]])")),
    ("torch.randint(2**28 - 1, (2,))", "tensor([ 59306160, 171107527])"),
    ("torch.randint(2**28, (2,))", "tensor([171107524,  27798006])"),
    ("torch.randint(2**40, (2,))", "tensor([752595690692, 108744157686])"),
    (
        "torch.randint(low=-3, high=3, size=(4,), dtype=torch.float32)",
        "tensor([ 0.,  1., -2., -1.])",
    ),
    ("torch.randperm(6)", "tensor([3, 0, 1, 5, 2, 4])"),
    ("torch.rand_like(m)", ("tensor([[0.5349, 0.1988],\n        [0.6592, 0.6569]])")),
    ("torch.randn_like(m)", ("tensor([[-0.1468,  0.7861],\n        [ 0.9468, -1.1143]])")),
    ("torch.randint_like(m, 5)", ("tensor([[0., 2.],\n        [1., 1.]])")),
    ("torch.normal(1.0, 2.0, (3,))", "tensor([0.7064, 2.5723, 2.8936])"),
    ("torch.normal(v, 1.0)", "tensor([0.8532, 2.7861], grad_fn=<NormalBackward1>)"),
    ("torch.normal(1.0, v)", "tensor([0.8532, 2.5723], grad_fn=<NormalBackward2>)"),
    ("torch.normal(v, v)", "tensor([0.8532, 3.5723], grad_fn=<NormalBackward3>)"),
    ("torch.bernoulli(torch.full((8,), 0.4))", "tensor([0., 1., 0., 0., 1., 0., 1., 0.])"),
    ("torch.empty(3).uniform_(2, 5)", "tensor([3.6048, 2.5964, 3.9776])"),
    ("torch.empty(3).normal_(1, 2)", "tensor([0.7064, 2.5723, 2.8936])"),
    ("torch.empty(20).normal_(1, 2)[-3:]", "tensor([-0.1280, -3.1129,  0.2866])"),
    ("torch.empty(20).bernoulli_(0.3).sum()", "tensor(10.)"),
    ("torch.empty(4).exponential_()", "tensor([0.3276, 0.3198, 1.9812, 1.0691])"),
    (
        "torch.empty(2, dtype=torch.int64).random_()",
        "tensor([1407639518939636932, 5163590386780219894])",
    ),
    ("torch.empty(3).random_(5)", "tensor([0., 2., 1.])"),
    ("(v * 1).uniform_()", "tensor([0.5349, 0.1988], grad_fn=<UniformBackward0>)"),
    ("(v * 1).bernoulli_()", "tensor([1., 1.], grad_fn=<BernoulliBackward2>)"),
    ("(v * 1).random_(2, 5)", "tensor([2., 3.], grad_fn=<RandomBackward0>)"),
    ("torch.multinomial(torch.ones(5), 3)", "tensor([1, 0, 3])"),
    (
        (
            "torch.multinomial(torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]]), 4, "
            "replacement=True)"
        ),
        ("tensor([[2, 2, 2, 2],\n        [0, 0, 0, 0]])"),
    ),
    ("torch.rand(2, generator=torch.Generator().manual_seed(3))", "tensor([0.0043, 0.1056])"),
    ("torch.Generator().initial_seed()", "67280421310721"),
    ("torch.manual_seed(-1).initial_seed()", "18446744073709551615"),
    (
        "[torch.randn(3), torch.rand(1), torch.randn(2), torch.randn(17)[:2], torch.randn(1)]",
        (
            "[tensor([-0.1468,  0.7861,  0.9468]), tensor([0.3653]), tensor([-1.1143,  0.3775]), "
            "tensor([-0.5811, -1.3850]), tensor([-0.9509])]"
        ),
    ),
    (
        "[F.dropout(torch.randn(2, 3), 1.0), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[F.dropout(torch.randn(2, 3), 0.0), torch.rand(1)]",
        """[tensor([[-0.1468,  0.7861,  0.9468],
        [-1.1143,  1.6908, -0.8948]]), tensor([0.2868])]""",
    ),
    (
        "[F.dropout(torch.randn(2, 3), 1.0, False), torch.rand(1)]",
        """[tensor([[-0.1468,  0.7861,  0.9468],
        [-1.1143,  1.6908, -0.8948]]), tensor([0.2868])]""",
    ),
    (
        "[F.dropout(torch.randn(2, 3), 1.0, inplace=True)._version, torch.rand(1)]",
        "[1, tensor([0.2868])]",
    ),
    (
        "[F.alpha_dropout(torch.randn(2, 3), 1.0, True), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[F.alpha_dropout(torch.randn(2, 3), 0.5, True)._version, torch.rand(1)]",
        "[1, tensor([0.5209])]",
    ),
    (
        "[F.feature_alpha_dropout(torch.randn(2, 3), 1.0, True), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[torch.feature_dropout(torch.randn(2, 3), 1.0, True), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[F.dropout1d(torch.randn(2, 3), 1.0), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[F.dropout2d(torch.randn(1, 2, 1, 2), 1.0), torch.rand(1)]",
        """[tensor([[[[-0., 0.]],

         [[0., -0.]]]]), tensor([0.3653])]""",
    ),
    (
        "[torch.nn.Dropout(1.0)(torch.randn(2, 3)), torch.rand(1)]",
        """[tensor([[-0., 0., 0.],
        [-0., 0., -0.]]), tensor([0.2868])]""",
    ),
    (
        "[torch.nn.AlphaDropout(1.0, inplace=True)(v.detach()), v, torch.rand(1)]",
        "[tensor([0., 0.]), tensor([1., 2.], requires_grad=True), tensor([0.5349])]",
    ),
    ("[F.dropout(torch.tensor([1, 2]), 1.0), torch.rand(1)]", "[tensor([0, 0]), tensor([0.5349])]"),
    (
        "[F.alpha_dropout(torch.zeros(2, 0, dtype=torch.int64), 0.5, True), torch.rand(1)]",
        "[tensor([], size=(2, 0), dtype=torch.int64), tensor([0.5349])]",
    ),
    (
        "torch.empty(4, dtype=torch.float16).random_(0, 3000)",
        "tensor([ 255., 1268.,  361.,  212.], dtype=torch.float16)",
    ),
    (
        "torch.empty(3, dtype=torch.bfloat16).random_(-257, 3)",
        "tensor([ -82., -245., -136.], dtype=torch.bfloat16)",
    ),
    (
        "torch.randint(2**25, (3,), dtype=torch.float32).tolist()",
        "[25751744.0, 3335422.0, 27837152.0]",
    ),
    (
        "[F.alpha_dropout(torch.ones(2, 3), 0.5, True, True)._version, torch.rand(1)]",
        "[2, tensor([0.2868])]",
    ),
    (
        "[F.feature_alpha_dropout(torch.ones(2, 3), 0.5, True, True)._version, torch.rand(1)]",
        "[2, tensor([0.2868])]",
    ),
    (
        "[F.dropout1d(torch.ones(2, 3), 0.5, True, True)._version, torch.rand(1)]",
        "[3, tensor([0.2328])]",
    ),
    (
        "[F.dropout1d(torch.ones(2, 3), 0.5, False, True)._version, torch.rand(1)]",
        "[2, tensor([0.5349])]",
    ),
    (
        "[torch.alpha_dropout_(v.detach().clone(), 1.0, True)._version, torch.rand(1)]",
        "[1, tensor([0.5349])]",
    ),
    (
        "[F.alpha_dropout(v, 0.5, False, True) is v, F.dropout(v, 0, True, True) is v, v._version]",
        "[True, True, 0]",
    ),
    (
        "[F.dropout3d(torch.ones(3), 0.0), F.dropout3d(torch.ones(3), 0.5), torch.rand(1)]",
        "[tensor([1., 1., 1.]), tensor([2., 2., 0.]), tensor([0.2071])]",
    ),
]

ERRORS: list[tuple[str, str]] = [
    ("torch.randint(5, 1, (2,))", "RuntimeError"),
    ("torch.randint(3)", "TypeError"),
    ("torch.rand(2, dtype=torch.int64)", "NotImplementedError"),
    ("torch.randn(2, dtype=torch.int64)", "NotImplementedError"),
    ("torch.randperm(-1)", "RuntimeError"),
    ("torch.empty(2).uniform_(3, 1)", "RuntimeError"),
    ("torch.empty(2).normal_(0, -1)", "RuntimeError"),
    ("torch.empty(2).bernoulli_(2)", "RuntimeError"),
    ("torch.bernoulli(torch.tensor([2.0]))", "RuntimeError"),
    ("torch.normal(v, -1.0)", "RuntimeError"),
    ('torch.manual_seed("a")', "ValueError"),
    ("torch.manual_seed(2**64)", "ValueError"),
    ("torch.rand(2, generator=3)", "TypeError"),
    ("torch.rand()", "TypeError"),
    ("v.uniform_()", "RuntimeError"),
    ("torch.multinomial(torch.ones(2), 3)", "RuntimeError"),
    ("torch.multinomial(torch.tensor([-1.0, 2.0]), 1)", "RuntimeError"),
    ("torch.randint(5, (2,), requires_grad=True)", "RuntimeError"),
]


@each_row(("expression", "recorded"), SEEDED)
def test_seeded_numbers(expression: str, recorded: str) -> None:
    assert printed(f"torch.manual_seed(7)\nprint({expression})") == recorded


test_error = raises(ERRORS)


def test_a_program_without_a_seed_draws_the_same_numbers_each_time() -> None:
    assert printed("print(torch.rand(3))") == printed("print(torch.rand(3))")


def test_a_seed_from_the_system_differs() -> None:
    assert printed("print(torch.seed() != torch.seed())") == "True"


def test_normal_numbers_have_mean_0_and_deviation_1() -> None:
    drawn = "x = torch.randn(100000)\nprint(x.mean().abs() < 0.02, (x.std() - 1).abs() < 0.02)"
    assert printed(drawn) == "tensor(True) tensor(True)"

"""The statements that random programs are made of beside assignments: one row each, by family."""

from __future__ import annotations

from tests.differential.expressions import filled_dimensions, square
from tests.differential.writing import Row

PRINTING = [
    *[Row("print($x)", kinds="fhibc")] * 5,
    Row("print($x.grad_fn)", kinds="fhc"),
    Row("print($x.grad_fn.next_functions if $x.grad_fn else None)", kinds="fhc"),
    Row("print(type($x.grad_fn).__name__, $x.is_leaf, $x.requires_grad)", kinds="fhibc"),
    Row("print($x.shape, $x.dtype, $x.ndim, $x.numel(), $x.size())", kinds="fhibc"),
    Row("print($x._version, $x._base is not None)", kinds="fhibc"),
    Row("print($x.tolist())", kinds="ib"),
    Row("print($x.stride(), $x.is_contiguous(), $x.storage_offset())", kinds="fhibc"),
    Row("print(f'{$x.sum().item():.3f}', len($x))", rank=(1, 3)),
    Row("print($x.detach(), $x.data)", kinds="fhc"),
    Row("print([round(float(v), 3) for v in $x.reshape(-1)[:2]])"),
    Row("print($x.min(), $x.argmin(), $x.dtype)", kinds="fhi", fits=filled_dimensions),
    Row("print($x.retains_grad, $x.output_nr)"),
    Row("for v in $x:\n    print(v)", rank=(1, 2)),
    Row("print(torch.equal($x, $like), torch.allclose($x, $like))"),
    Row("print($x.grad_fn.name() if $x.grad_fn else 'leaf')"),
    Row("print(($x > 0).sum(), ($x > 0).any().item())", kinds="fhi"),
    Row("print($x.max(0))", rank=(1, 2), kinds="fhi", fits=filled_dimensions),
    Row("node = $x.grad_fn\nwhile node is not None:\n    print(node.name())\n"
        "    node = node.next_functions[0][0] if node.next_functions else None"),
]  # fmt: skip

IN_PLACE = [
    Row("$x += $within"),
    Row("$x *= $within"),
    Row("$x -= $number"),
    Row("$x /= 2"),
    Row("$x *= $number"),
    Row("$x **= 2"),
    Row("$x[$index] = $literal", rank=(1, 3)),
    Row("$x[$index] += $number", rank=(1, 3)),
    Row("$x[$index] *= $number", rank=(1, 3)),
    Row("$x[0] = $literal", rank=(1, 3), fits=filled_dimensions),
    Row("$x[:] = $within", rank=(1, 3)),
    Row("$x[$x > $number] = $literal"),
    Row("$x[$advanced] = $literal", rank=(1, 3), fits=filled_dimensions),
    Row("$x[0] = $x[-1] * 2", rank=(1, 3), fits=filled_dimensions),
    Row("$x.add_($within)"),
    Row("$x.mul_($within)"),
    Row("$x.sub_($number)"),
    Row("$x.div_(2)"),
    Row("$x.add_($within, alpha=$number)"),
    *[
        Row(f"$x.{name}_()")
        for name in ("exp", "relu", "zero", "sigmoid", "abs", "neg", "tanh", "sin", "square")
    ],
    Row("$x.clamp_(-1, 1)"),
    Row("$x.clamp_(min=$number)"),
    Row("$x.fill_($number)"),
    Row("$x.copy_($within)"),
    Row("$x.masked_fill_($x < $number, $literal)"),
    Row("$x.addcmul_($like, $like, value=$number)"),
    Row("$x.lerp_($like, $number)"),
    Row("$x.pow_($exponent)"),
    Row("$x.t_()", rank=(2, 2)),
    Row("$x.unsqueeze_(0)", rank=(0, 2)),
    Row("$x.index_add_(0, torch.tensor([0]), $x[:1].detach() * 2)", rank=(1, 3),
        fits=filled_dimensions),
    Row("$x.scatter_(0, torch.zeros_like($x, dtype=torch.int64), $number)", rank=(1, 3)),
    Row("$x.view(-1)[0] = $literal", rank=(1, 2), fits=filled_dimensions),
    Row("$x.reshape(-1).mul_($number)"),
    Row("$x.T.add_($number)", rank=(2, 2)),
    Row("$x.diagonal().zero_()", rank=(2, 2)),
    Row("$x.unbind(0)[0].mul_(2)", rank=(1, 2), fits=filled_dimensions),
    Row("$x.detach()[0] = $literal", rank=(1, 2), fits=filled_dimensions),
    Row("$x.data += $number"),
    Row("with torch.no_grad():\n    $x += $number"),
    Row("with torch.no_grad():\n    $x[$index] = $literal", rank=(1, 3)),
    Row("$x += 1", kinds="i"),
    Row("$x[$index] = 7", kinds="i", rank=(1, 3)),
    Row("$x.fill_diagonal_($number)", rank=(2, 2), fits=filled_dimensions),
    Row("$name = $x.clone()\n$name += $like\n"
        "print($name, $name.grad_fn.next_functions if $name.grad_fn else 0)"),
    Row("$name = $x.clone()\n$name1 = $name[$index]\n$name1.mul_($number)\n"
        "print($name, $name1, $name1.grad_fn, $name._version, $name1._version)", rank=(1, 3)),
    Row("$name = $x * 1\n$name[$index] = $name[$index].detach() * 2\nprint($name, $name.grad_fn)",
        rank=(1, 3)),
    Row("$name = torch.zeros_like($x)\nfor i in range(len($x)):\n    $name[i] = $x[i] * i\n"
        "print($name)", rank=(1, 2)),
    Row("$name = $x.clone()\n$name1 = $name.view(-1)\n$name1[::2] *= 3\n$name.add_(1)\n"
        "print($name1, $name1.grad_fn, $name1._base is $name)"),
]  # fmt: skip

BACKWARD = [
    *[Row("$x.sum().backward(retain_graph=True)")] * 5,
    *[Row("($x * $like).sum().backward(retain_graph=True)")] * 3,
    Row("$x.sum().backward()"),
    Row("$x.mean().backward()"),
    Row("$x.backward(torch.ones_like($x), retain_graph=True)"),
    Row("$x.backward($like.detach().clone(), retain_graph=True)"),
    Row("$x.pow(2).sum().backward(retain_graph=True)"),
    Row("$x.sum().backward(inputs=[$leaf], retain_graph=True)"),
    Row("torch.autograd.backward([$x.sum(), $leaf.mean()], retain_graph=True)"),
    Row(
        "torch.autograd.backward([$x, $leaf], [$like.detach().clone(), $leaf.detach()],"
        " retain_graph=True)"
    ),
    Row("$x.norm().backward(retain_graph=True)"),
    Row("$x.abs().sum().backward(retain_graph=True)", kinds="fhc"),
]

GRADIENTS = [
    *[Row("print(torch.autograd.grad($x.sum(), $leaf, allow_unused=True, retain_graph=True))")] * 3,
    *[Row("print(torch.autograd.grad($x.sum(), [$x, $leaf], None, True, allow_unused=True))")]
    * 2,
    Row("print(torch.autograd.grad($x, $leaf, $like.detach(), True, allow_unused=True))"),
    Row("print(torch.autograd.grad($x.sum(), $leaf, allow_unused=True, materialize_grads=True,"
        " retain_graph=True))"),
    *[Row("$name, = torch.autograd.grad(($x ** 3).sum(), $x, create_graph=True)\n"
          "print($name, $name.grad_fn)\n"
          "print(torch.autograd.grad($name.sum(), $x))")] * 3,
    Row("$name, = torch.autograd.grad($x.exp().sum(), $x)\nprint($name)"),
    Row("$name = lambda t: ($map(t)).sum()\n"
        "$name1, = torch.autograd.grad($name($x), $x, create_graph=True)\n"
        "$name2, = torch.autograd.grad($name1.sum(), $x, create_graph=True, allow_unused=True)\n"
        "print($name1, $name2)"),
    Row("$name, = torch.autograd.grad($x.sum(), $leaf, create_graph=True, allow_unused=True)\n"
        "print($name)"),
    Row("($x.sigmoid() * $like).sum().backward(create_graph=True)\nprint($x.grad)"),
]  # fmt: skip

LEAVES = [
    *[Row("$x.retain_grad()")] * 3,
    *[Row("print($x.grad)")] * 5,
    Row("$x.grad = None"),
    Row("if $x.grad is not None:\n    $x.grad.zero_()"),
    Row("$x.grad = torch.ones_like($x)"),
    Row("$name = $x.detach().requires_grad_()\n($name * $x).sum().backward(retain_graph=True)\n"
        "print($name.grad)"),
    Row("$name = $x.detach().clone()\n$name.requires_grad = True\nprint($name, $name.is_leaf)"),
    Row("$x.requires_grad_(False)"),
    Row("$x.detach_()"),
    Row("print($x.is_leaf and $x.grad)"),
    Row("with torch.no_grad():\n    $name = $x * 2\n    print($name, $name.requires_grad)"),
    Row("with torch.inference_mode():\n    $name = $x * 2\nprint($name, $name.is_inference())"),
    Row("with torch.no_grad():\n    with torch.enable_grad():\n        $name = $x * $x\n"
        "print($name.requires_grad, $name.grad_fn)"),
    Row("torch.set_grad_enabled(False)\n$name = $x + 1\nprint($name)\n"
        "torch.set_grad_enabled(True)"),
    Row("with torch.set_grad_enabled($flag):\n    $name = $x.exp()\nprint($name.grad_fn)"),
]  # fmt: skip

HOOKS = [
    Row("$x.register_hook(lambda g: print('hook', g))"),
    Row("$x.register_hook(lambda g: g * 2)"),
    Row("$x.register_hook(lambda g: $map(g))"),
    Row("$name = $x.register_hook(lambda g: print(g.shape))\n$x.sum().backward(retain_graph=True)\n"
        "$name.remove()"),
    Row("$x.register_post_accumulate_grad_hook(lambda t: print('grad', t.grad))"),
    Row("$name = []\n$x.register_hook($name.append)\n$x.sum().backward(retain_graph=True)\n"
        "print($name)"),
    Row("if $x.grad_fn is not None:\n"
        "    $x.grad_fn.register_hook(lambda gi, go: print('node', gi, go))"),
    Row("if $x.grad_fn is not None:\n"
        "    $x.grad_fn.register_prehook(lambda go: print('before', go))"),
    Row("$name = $x * 2\n$name.register_hook(lambda g: print('first'))\n"
        "$name.register_hook(lambda g: print('second', g))\n$name.retain_grad()\n"
        "$name.sum().backward(retain_graph=True)\nprint($name.grad)"),
]  # fmt: skip

CONTROL = [
    Row("if $x.sum() > $number:\n    print('more', $x)\nelse:\n    print('less')"),
    Row("$name = $x\nfor i in range($count):\n    $name = $name * $like + i\nprint($name)"),
    Row("$name = $x\nfor i in range($count):\n    $name = torch.sin($name)\n"
        "    print($name.grad_fn)"),
    Row("$name = 0\nwhile $name < 3:\n    $name += 1\n    if $name == 2:\n        continue\n"
        "    print($name * $x)"),
    Row("$name = [$x * i for i in range($count)]\nprint(sum($name))"),
    Row("$name = [v * 2 for v in $x if v > 0]\nprint($name)", rank=(1, 1)),
    Row("def $name(t, k=2):\n    if k == 0:\n        return t\n    return $name($map(t), k - 1)\n"
        "print($name($x))"),
    Row("def $name(t):\n    return lambda s: $map(t) * $map(s)\nprint($name($x)($x))"),
    Row("def $name(*tensors, scale=1.0):\n    total = 0\n    for t in tensors:\n"
        "        total = total + scale * ($map(t)).sum()\n    return total\n"
        "print($name($x, $y, scale=$number))"),
    Row("try:\n    $name = $x.reshape(7, 11)\nexcept RuntimeError:\n    $name = $x * 0\n"
        "print($name)"),
    Row("try:\n    $x.sum().backward(retain_graph=True)\nexcept RuntimeError as failure:\n"
        "    print('no graph')\nelse:\n    print('fine')\nfinally:\n    print($x.grad_fn is None)"),
    Row("assert $x.numel() == $elements, 'elements'"),
    Row("$name, $name1 = $x, $x * 2\n$name, $name1 = $name1, $name\n"
        "print($name is $x, $name1 is $x)"),
    Row("$name = {'w': $x, 'k': $number}\nfor key, value in $name.items():\n"
        "    print(key, value)\nprint(len($name), sorted($name))"),
    Row("for i, ($name, $name1) in enumerate(zip($x, $like)):\n"
        "    print(i, ($name * $name1).sum().item())", rank=(1, 2)),
    Row("@torch.no_grad()\ndef $name(t):\n    return $map(t)\nprint($name($x))"),
    Row("$name = max($x.reshape(-1).tolist())\nprint(f'{$name:8.3f}|', round($name, 2))",
        fits=filled_dimensions),
]  # fmt: skip

MISUSE = [
    Row("$x.backward()", rank=(1, 3)),
    Row("$name = $x.exp().sum()\n$name.backward()\n$name.backward()"),
    Row("$name = torch.ones(2, requires_grad=True)\n$name += 1"),
    Row("$name = torch.ones(3, requires_grad=True)\n$name[0] = 5.0"),
    Row("$name = $x.exp()\n$name1 = $name * 2\n$name.add_(1)\n$name1.sum().backward()"),
    Row("$name = $x.clone()\n$name1 = $name * $name\n$name.mul_(2)\n$name1.sum().backward()"),
    Row("$name = $x.sigmoid()\n$name[...] = 0.5\n$name.sum().backward()"),
    Row("torch.tensor([1, 2], requires_grad=True)"),
    Row("torch.arange(3).requires_grad_()"),
    Row("$x.detach().sum().backward()"),
    Row("torch.autograd.grad($x.sum(), torch.ones(2, requires_grad=True))"),
    Row("torch.autograd.grad($x.sum(), torch.ones(2))"),
    Row("$x @ torch.ones(7, 7)", rank=(1, 3)),
    Row("$x + torch.ones(7)", rank=(1, 3), fits=lambda shape: shape[-1] not in (1, 7)),
    Row("$x.reshape(7, 11)"),
    Row("$x.view(7, -1)", fits=filled_dimensions),
    Row("$x[17]", rank=(1, 3)),
    Row("$x[0, 0, 0, 0]"),
    Row("$x[torch.tensor([17])]", rank=(1, 3)),
    Row("$x.sum(5)"),
    Row("torch.cat([$x, torch.ones(7, 9)])", rank=(1, 3)),
    Row("torch.stack([$x, torch.ones(7, 9)])"),
    Row("$x.item()", rank=(1, 3), fits=lambda shape: 1 not in shape),
    Row("if $x:\n    print('true')", rank=(1, 3), fits=lambda shape: 1 not in shape),
    Row("$x.backward(torch.ones(7, 2))", rank=(1, 2)),
    Row("torch.matmul($x, $x.long())", rank=(1, 2), fits=square),
    Row("$x.foo()"),
    Row("torch.sum($x, nothing=1)"),
    Row("torch.no_such_function($x)"),
    Row("undefined_name + $x"),
    Row("$x.requires_grad = True"),
    Row("$x.grad = torch.ones(7, 3)"),
    Row("$x.half() @ $x", rank=(1, 1)),
    Row("F.cross_entropy($x, torch.tensor([9]))", rank=(2, 2)),
    Row("torch.tensor([1.0, 2.0]) - 'a'"),
    Row("$x + None"),
    Row("len(torch.tensor(1.0))"),
    Row("$x.transpose(0, 4)"),
    Row("$x.expand(7, 7)", rank=(1, 2), fits=lambda shape: shape[-1] not in (1, 7)),
    Row("$x.squeeze(9)"),
    Row("$x.bool() - $x.bool()"),
    Row("-$x.bool()"),
    Row("$x.long().mean()"),
    Row("with torch.inference_mode():\n    $name = $x * 2\n"
        "$name * torch.ones_like($x).requires_grad_()"),
    Row("$name = $x.unbind(0)\n$name[0].add_(1)", rank=(1, 2), fits=filled_dimensions),
    Row("assert $x.numel() < 0, 'never'"),
    Row("raise ValueError('wrong')"),
    Row("$x.to(torch.int64).sum().backward()"),
    Row("$x.retain_grad()\n$x.detach().retain_grad()"),
    Row("torch.linalg.inv(torch.zeros(2, 2))"),
    Row("int($x)", rank=(1, 2), fits=lambda shape: 1 not in shape),
    Row("torch.zeros(2)[[True, False, True]]"),
    Row("[1, 2][5]"),
    Row("{'a': 1}['b']"),
    Row("1 / 0"),
    Row("$x.softmax(3)"),
    Row("$x.as_strided((99,), (1,))"),
    Row("torch.randn(-1)"),
    Row("$x.index_select(0, torch.tensor([0.5]))", rank=(1, 2)),
    Row("$x.gather(0, torch.tensor([0]))", rank=(2, 3)),
    Row("torch.where($x, $x, $x)"),
    Row("torch.tensor([[1.0, 2.0], [3.0]])"),
    Row("F.mse_loss($x, torch.ones(7, 3))", rank=(1, 2), fits=lambda s: s[-1] not in (1, 3)),
    Row("$x.norm().backward(torch.ones(2))"),
    Row("$x[1:] += $x[:-1]", rank=(1, 2), fits=lambda shape: shape[0] > 1),
    Row("torch.zeros(1).expand(3).add_(1)"),
    Row("$x.register_hook(lambda g: torch.ones(7, 7))\n$x.sum().backward(retain_graph=True)"),
]  # fmt: skip

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "printing": (10, PRINTING),
    "in place": (6, [row._replace(needs="written") for row in IN_PLACE]),
    "backward": (6, [row._replace(needs="graph") for row in BACKWARD]),
    "gradients": (3, [row._replace(needs="graph") for row in GRADIENTS]),
    "leaves": (4, [row._replace(needs="leaf") for row in LEAVES]),
    "hooks": (2, [row._replace(needs="graph") for row in HOOKS]),
    "control": (3, CONTROL),
}
"""Each family of statements, and how often it is drawn beside the others."""

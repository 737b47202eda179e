"""The statements that random programs are made of beside assignments: one row each, by family."""

from __future__ import annotations

from tests.differential.expressions import filled_dimensions
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

FORMATS = [
    Row("print(f'{$x.sum():.3f} {$x.mean().item():>10.2e}|{$x.numel():04d}|{$x.dtype}')"),
    Row("print(f'{$x.shape[0]:<4}|{tuple($x.shape)!r:>12}|{$x.requires_grad!s:^7}|')", rank=(1, 3)),
    Row("print('%.3f %5d %s' % ($x.sum(), $x.numel(), $x.shape))"),
    Row("print('{:.2f} and {!r}'.format($x.sum().item(), $x.detach().reshape(-1)[:1]))"),
    Row("print(f'{$x.is_leaf=} {$x.ndim=} {$x._version=}')"),
    Row("print(str($x.sum()), repr($x.detach().sum()), $x.sum().tolist() == $x.sum().item())"),
    Row("torch.set_printoptions(precision=$count, sci_mode=False)\nprint($x)\n"
        "torch.set_printoptions(profile='default')"),
    Row("print($x * 1e6, $x * 1e-6, torch.cat([$x.reshape(-1)[:1] * 1e5, $x.reshape(-1)[:1]]))"),
    Row("print($x / 0, ($x / 0 - $x / 0).isnan().all())"),
    Row("print([round(v, 2) for v in $x.reshape(-1).tolist()], sum($x.reshape(-1).tolist()) > 0)",
        kinds="i"),
    Row("print('node:', type($x.grad_fn).__name__, $x.grad_fn)"),
    Row("print(*$x.shape, sep='x', end='!\\n')"),
    Row("print({'grad': $x.requires_grad, 'size': list($x.size())}, ($x.shape,), [$x.dtype])"),
    Row("print($x.detach().to(torch.bfloat16), $x.detach().double().sum())"),
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
    Row("$x.data += $number", rank=(1, 3)),
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
    Row("class $class:\n    scale = $number\n    def __init__(self, t):\n        self.t = t\n"
        "    def __call__(self, other):\n        return self.t * other * self.scale\n"
        "    @property\n    def size(self):\n        return self.t.numel()\n"
        "    def __repr__(self):\n        return f'<{self.size} elements>'\n"
        "$name = $class($x)\nprint($name, $name(2), $name.size)"),
    Row("class $class:\n    def __enter__(self):\n        print('in')\n        return $x\n"
        "    def __exit__(self, kind, error, trace):\n        print('out', kind is None)\n"
        "        return True\nwith $class() as $name:\n    print($name * 2)\n"
        "    $name.reshape(7, 11)\nprint('after')"),
    Row("$name = $x\nwhile True:\n    $name = $name.abs() * 2 + 1\n"
        "    if $name.abs().max() > 50 or $name.isnan().any():\n        break\n"
        "else:\n    print('never')\nprint($name.grad_fn)", fits=filled_dimensions),
    Row("def $name(t, *more, scale=2, **named):\n"
        "    return t * scale + sum(more) + sum(named.values())\n"
        "print($name($x), $name($x, $x, 1), $name($x, scale=3, a=$x, b=1))"),
    Row("$name = [(i, v * i) for i in range(2) for v in ($x, $like) if i or v is $x]\n"
        "print([(i, v.sum()) for i, v in $name], {i: v.shape for i, v in $name})"),
    Row("$name = {}\nfor key, value in zip('ab', ($x, $like)):\n"
        "    $name.setdefault(key, []).append(value * 2)\n"
        "print(sorted($name), $name.get('c'), 'a' in $name, $name.pop('b')[0].shape)"),
    Row("$name = None\ntry:\n    try:\n        $x.view(7, 13)\n    finally:\n"
        "        print('cleaned')\nexcept (RuntimeError, ValueError) as failure:\n"
        "    $name = type(failure).__name__\nprint($name)"),
    Row("try:\n    raise ValueError('value', $number)\nexcept ValueError as failure:\n"
        "    print(failure.args, isinstance(failure, Exception), str(failure))"),
    Row("$name = lambda t, k=$count: t if k == 0 else $name(torch.sin(t), k - 1)\n"
        "print($name($x), $name($x).requires_grad)"),
    Row("$name = sorted($x.reshape(-1), key=lambda v: -v.item())\nprint($name[:2], min($name))",
        fits=filled_dimensions),
    Row("$name, *rest = $x\nprint($name, len(rest))", rank=(1, 3), fits=filled_dimensions),
    Row("$name = 0\ndef $name1(t):\n    global $name\n    $name += 1\n    return t * $name\n"
        "print($name1($x), $name1($x), $name)"),
    Row("def $name():\n    total = $x * 0\n    def add(t):\n        nonlocal total\n"
        "        total = total + t\n        return total\n    return add\n"
        "$name1 = $name()\n$name1($x)\nprint($name1($like))"),
    Row("if ($name := $x.sum()) > 0 and $x.numel():\n    print('positive', $name)\n"
        "elif not $name < 0:\n    print('zero or nan')\nelse:\n    print('negative')"),
    Row("$name = max($x.reshape(-1).tolist())\nprint(f'{$name:8.3f}|', round($name, 2))",
        fits=filled_dimensions),
]  # fmt: skip

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "printing": (10, PRINTING),
    "formats": (3, FORMATS),
    "in place": (6, [row._replace(needs="written") for row in IN_PLACE]),
    "backward": (6, [row._replace(needs="graph") for row in BACKWARD]),
    "gradients": (3, [row._replace(needs="graph") for row in GRADIENTS]),
    "leaves": (4, [row._replace(needs="leaf") for row in LEAVES]),
    "control": (3, CONTROL),
}
"""Each family of statements, and how often it is drawn beside the others."""

"""Statements about the graph itself: hooks, what nodes save, what views and writes make of it."""

from __future__ import annotations

from tests.differential.expressions import filled_dimensions
from tests.differential.writing import Row

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
    Row("$x.register_hook(lambda g: g.clone().mul_(3))\n$x.retain_grad()"),
    Row("$name = $x.register_hook(lambda g: g + 1)\n$name1 = $x.register_hook(lambda g: g * 10)\n"
        "$x.sum().backward(retain_graph=True)\n$name.remove()\n"
        "$x.sum().backward(retain_graph=True)\n$name1.remove()"),
    Row("$name = $x * 2\n$name1 = []\n$name.register_hook(lambda g: $name1.append('tensor'))\n"
        "$name.grad_fn.register_prehook(lambda go: $name1.append('before'))\n"
        "$name.grad_fn.register_hook(lambda gi, go: $name1.append('after'))\n"
        "$x.register_hook(lambda g: $name1.append('main'))\n"
        "$name.sum().backward(retain_graph=True)\nprint($name1)"),
    Row("$name = $x * 3\n$name.grad_fn.register_prehook(lambda go: (go[0] * 2,))\n"
        "print(torch.autograd.grad($name.sum(), $x, retain_graph=True))"),
    Row("$name = $x * 3\n$name.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, *gi[1:]))\n"
        "print(torch.autograd.grad($name.sum(), $x, retain_graph=True))"),
    Row("$name = ($x * 1).grad_fn.next_functions[0][0]\nprint($name, hasattr($name, 'variable'))"),
    Row("$name = torch.ones(2, requires_grad=True)\n"
        "$name.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(5))\n"
        "($name * $number).sum().backward()\n($name * 2).sum().backward()\nprint($name.grad)"),
    Row("$name = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "$name1 = torch.optim.SGD([$name], lr=0.1)\n"
        "def $name2(t):\n    $name1.step()\n    $name1.zero_grad()\n"
        "$name.register_post_accumulate_grad_hook($name2)\n"
        "for i in range($count):\n    ($name ** 2).sum().backward()\n    print($name, $name.grad)"),
    Row("$name = $x * 2\n$name1 = $x * 3\n$name2 = torch.autograd.graph.register_multi_grad_hook("
        "($name, $name1), lambda grads: print('both', grads))\n"
        "($name + $name1).sum().backward(retain_graph=True)\n$name2.remove()"),
    Row("$name = ($x * 1).grad_fn.next_functions[0][0]\nif hasattr($name, 'variable'):\n"
        "    $name.register_prehook(lambda go: print('accumulate', go))"),
]  # fmt: skip

SAVED = [
    Row("$name = $x.exp()\nprint($name.grad_fn._saved_result)"),
    Row("$name = $x * $x\nprint($name.grad_fn._saved_self, $name.grad_fn._saved_other is $x)"),
    Row("$name = $x ** 3\nprint($name.grad_fn._saved_exponent, $name.grad_fn._saved_self)"),
    Row("$name = $x.sum(0)\nprint($name.grad_fn._saved_dim, $name.grad_fn._saved_keepdim, "
        "$name.grad_fn._saved_self_sym_sizes)", rank=(1, 3)),
    Row("$name = $x.exp()\n$name.sum().backward()\ntry:\n    $name.grad_fn._saved_result\n"
        "except RuntimeError:\n    print('freed')"),
    Row("$name = $x.sin()\n$name.sum().backward(retain_graph=True)\n"
        "print($name.grad_fn._saved_self)"),
    Row("with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1):\n"
        "    $name = $x * $like\n$name.sum().backward(retain_graph=True)\n"
        "print($name.grad_fn.next_functions)"),
    Row("$name = []\nwith torch.autograd.graph.saved_tensors_hooks(\n"
        "    lambda t: ($name.append(t.shape), t)[1], lambda t: t\n):\n"
        "    $name1 = ($map(x)).sum()\nprint($name)".replace("$map(x)", "$x.sigmoid() * $x")),
    Row("with torch.autograd.graph.save_on_cpu():\n    $name = $x.tanh()\n"
        "$name.sum().backward(retain_graph=True)\nprint($name)"),
    Row("with torch.autograd.set_detect_anomaly(True):\n    $name = ($x * 2).sum()\n"
        "    $name.backward(retain_graph=True)\nprint(torch.is_anomaly_enabled())"),
    Row("from torch.utils.checkpoint import checkpoint\n$name = []\ndef $name1(t):\n"
        "    $name.append(torch.is_grad_enabled())\n    return $map(t)\n"
        "$name2 = checkpoint($name1, $x, use_reentrant=$flag)\nprint($name2.grad_fn.name())\n"
        "$name2.sum().backward(retain_graph=$flag)\nprint($name)"),
    Row("$name = torch.autograd.graph.get_gradient_edge($x)\nprint($name.output_nr)\n"
        "print(torch.autograd.grad(($x * 3).sum(), $name, retain_graph=True))"),
    Row("def $name(node, depth):\n    if node is None:\n        return\n"
        "    print('.' * depth + node.name())\n    for each, number in node.next_functions:\n"
        "        $name(each, depth + 1)\n$name($x.grad_fn, 0)"),
    Row("import torch.autograd.forward_ad as fwAD\nwith fwAD.dual_level():\n"
        "    $name = fwAD.make_dual($x.detach(), $like.detach())\n"
        "    print(fwAD.unpack_dual($map(t)))".replace("$map(t)", "$name * $name.sin()")),
]  # fmt: skip

INTERPLAY = [
    Row("$name = $x * 1\n$name1 = $name[0]\n$name1.register_hook(lambda g: print('part', g))\n"
        "$name.register_hook(lambda g: print('whole', g))\n$name1.mul_($number)\n"
        "print($name.grad_fn, $name1.grad_fn, $name._version)\n"
        "$name.sum().backward(retain_graph=True)", rank=(1, 3), fits=filled_dimensions),
    Row("$name = $x.clone()\n$name1 = $name.view(-1)\n$name2 = $name1[:1]\n"
        "with torch.no_grad():\n    $name2.fill_($literal)\n"
        "print($name, $name1._version, $name2.grad_fn, $name2._base is $name)\n"
        "($name * $name1.sum()).sum().backward(retain_graph=True)", fits=filled_dimensions),
    Row("$name = $x * 1\n$name.retain_grad()\n$name1 = $name.detach()\n$name1[..., :1] = 0.0\n"
        "print($name, $name._version, $name1._version)\ntry:\n"
        "    ($name ** 2).sum().backward(retain_graph=True)\nexcept RuntimeError:\n"
        "    print('written')\nprint($name.grad)", rank=(1, 3)),
    Row("$name = $x * 1\n$name1 = $name * $name\nwith torch.no_grad():\n    $name += 1\ntry:\n"
        "    $name1.sum().backward(retain_graph=True)\nexcept RuntimeError:\n"
        "    print('written', $name._version)"),
    Row("$name = $x.sigmoid()\n$name1 = $name.data\n$name1.zero_()\n"
        "print(torch.autograd.grad($name.sum(), $x, retain_graph=True), $name._version)",
        rank=(1, 3)),
    Row("$name = torch.zeros(2, *$x.shape)\n$name[0] = $x\n$name[1] = $x * 2\n"
        "print($name.grad_fn.next_functions)\n$name1 = $name[0]\n$name1 += $name[1]\n"
        "print($name1.grad_fn)\n$name.sum().backward(retain_graph=True)"),
    Row("$name = $x * 1\n$name1, $name2 = $name[0], $name[-1]\n$name1.add_($name2)\n"
        "$name2.mul_(2)\nprint($name1, $name2.grad_fn, $name._version)\n"
        "print(torch.autograd.grad($name.sum(), $x, retain_graph=True))",
        rank=(1, 3), fits=filled_dimensions),
    Row("$name = $x.detach().clone().requires_grad_()\nwith torch.no_grad():\n"
        "    $name1 = $name.view(-1)\n    $name1 *= 2\n"
        "print($name, $name._version, $name1.requires_grad, $name1._base is $name)\n"
        "($name * $x.detach()).sum().backward()\nprint($name.grad)"),
    Row("$name = $x * 1\n$name1 = $name.t()\n$name1[0] = $literal\n$name.diagonal().add_(1)\n"
        "print($name, $name1.grad_fn, $name1.is_contiguous(), $name1.stride())\n"
        "$name1.sum().backward(retain_graph=True)", rank=(2, 2), fits=filled_dimensions),
    Row("$name = $x * 1\n$name[$name.detach() > $number] = $literal\n$name[$index] *= -1\n"
        "$name.clamp_(-2, 2)\nprint($name, $name.grad_fn.next_functions)\n"
        "print(torch.autograd.grad($name.sum(), $x, retain_graph=True))", rank=(1, 3)),
    Row("$name, = torch.autograd.grad(($x ** 2).sum(), $x, create_graph=True)\n"
        "$name.register_hook(lambda g: print('of the gradient', g))\n$name.retain_grad()\n"
        "($name * $like).sum().backward(retain_graph=True)\nprint($name.grad)"),
    Row("$name = ($x * $like).sum()\nfor i in range(2):\n"
        "    $name.backward(retain_graph=True)\n    print($leaf.grad)\n$leaf.grad = None"),
    Row("$name = $x\nfor i in range($count):\n    with torch.set_grad_enabled(i % 2 == 0):\n"
        "        $name = $name * 2\n    print($name.requires_grad, $name.grad_fn)"),
    Row("with torch.no_grad():\n    $name = $x * 1\n    with torch.enable_grad():\n"
        "        $name1 = $x * 2\n        $name1[..., :1] = $name[..., :1]\n"
        "    $name1.mul_(2)\nprint($name1.grad_fn, $name1._version)\n"
        "print(torch.autograd.grad($name1.sum(), $x, retain_graph=True))", rank=(1, 3)),
    Row("with torch.inference_mode():\n    $name = $x.detach() * 2\n    $name.add_(1)\ntry:\n"
        "    print(($x * $name).sum())\nexcept RuntimeError:\n    print('inference')\n"
        "print(($x * $name.clone()).grad_fn, ($x + $name).grad_fn)"),
    Row("$name = nn.Parameter($x.detach().clone())\n$name1 = $name\n$name1.data = $name * 2\n"
        "print($name, $name1 is $name, $name._version)\n($name ** 2).sum().backward()\n"
        "with torch.no_grad():\n    for each in [$name]:\n        each -= 0.1 * each.grad\n"
        "print($name, $name._version)"),
    Row("$name = $x.expand(2, *$x.shape)\n$name1 = $name.clone()\n$name1[0] *= $number\n"
        "$name1 += $name\nprint($name1, $name.stride(), $name1.grad_fn.next_functions)\n"
        "print(torch.autograd.grad($name1.sum(), $x, retain_graph=True))", rank=(0, 2)),
    Row("$name = [$x]\nfor i in range($count):\n    $name.append($name[-1] * $name[0])\n"
        "    $name[-1].retain_grad()\nsum(t.sum() for t in $name).backward(retain_graph=True)\n"
        "print([t.grad for t in $name[1:]])"),
    Row("$name = $x.unsqueeze(0)\n$name.squeeze_()\nprint($name.shape, $name.grad_fn)\n"
        "$name1 = $x * 1\n$name1.unsqueeze_(0).squeeze_(0)\n"
        "print($name1.grad_fn, $name1._version)"),
]  # fmt: skip

FAMILIES: dict[str, tuple[int, list[Row]]] = {
    "hooks": (3, [row._replace(needs="graph") for row in HOOKS]),
    "saved": (2, [row._replace(needs="graph", kinds="f") for row in SAVED]),
    "interplay": (4, [row._replace(needs="graph", kinds="f") for row in INTERPLAY]),
}
"""Each family of statements about the graph, and how often it is drawn beside the others."""

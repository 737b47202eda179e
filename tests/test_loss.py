"""Losses and distances in their limiting cases: as recorded from PyTorch."""

from __future__ import annotations

from tests.recorded import gradients, prints, raises

OPERANDS = """
W, L = tensor([1.0, 2.0, 3.0]), tensor([-200.0, 200.0])
M = tensor([[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]])
P = tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
x = tensor([0.0, 1.0, 0.5], requires_grad=True)
"""

VALUES = [
    ("F.mse_loss(M, P)", "tensor(0.2817)"),
    ("F.mse_loss(M, P[0])", "tensor(0.2650)"),
    ("F.mse_loss(M, tensor([[1, 2, 3], [4, 5, 6]]))", "tensor(14.5517)"),
    ("F.mse_loss(torch.ones(0), torch.ones(0))", "tensor(nan)"),
    ("F.mse_loss(M, P.double(), reduction='sum')", "tensor(1.6900, dtype=torch.float64)"),
    ("F.l1_loss(tensor([1, 2]), tensor([3, 3]), reduction='none')", "tensor([2, 1])"),
    ("F.smooth_l1_loss(M, P, beta=0.0)", "tensor(0.3500)"),
    ("F.huber_loss(M, P, delta=0.3)", "tensor(0.0792)"),
    ("F.huber_loss(M, P.double())", "tensor(0.1408)"),
    ("F.huber_loss(M, tensor([[1, 2, 3], [4, 5, 6]]))", "tensor(2.9175)"),
    ("F.binary_cross_entropy_with_logits(M.double(), P)", "tensor(0.7452)"),
    (
        "F.binary_cross_entropy(tensor([0.0, 1.0]), tensor([1.0, 0.0]), reduction='none')",
        "tensor([100., 100.])",
    ),
    ("F.binary_cross_entropy(P, P, weight=W)", "tensor(1.1684)"),
    (
        "F.binary_cross_entropy_with_logits(L, torch.ones(2), reduction='none')",
        "tensor([200.,   0.])",
    ),
    ("F.binary_cross_entropy_with_logits(M, P, pos_weight=W)", "tensor(1.0716)"),
    ("F.nll_loss(M, tensor([0, 2]), reduction='none')", "tensor([-0.1000, -0.6000])"),
    ("F.nll_loss(M, tensor([0, -100]))", "tensor(-0.1000)"),
    ("F.nll_loss(M, tensor([-100, -100]))", "tensor(nan)"),
    ("F.nll_loss(M, tensor([-100, -100]), reduction='sum')", "tensor(0.)"),
    ("F.nll_loss(M, tensor([0, 2]), weight=W)", "tensor(-0.4750)"),
    ("F.nll_loss(M, tensor([1, 0], dtype=torch.uint8), ignore_index=1)", "tensor(-0.4000)"),
    ("F.nll_loss(M[0], tensor(1))", "tensor(-0.2000)"),
    (
        "F.nll_loss(M.reshape(1, 3, 2), tensor([[0, 2]]), reduction='none')",
        "tensor([[-0.1000, -0.6000]])",
    ),
    ("F.nll_loss(M.reshape(1, 3, 1, 2), tensor([[[0, 2]]]))", "tensor(-0.3500)"),
    ("F.cross_entropy(M, tensor([0, 2]))", "tensor(0.8935)"),
    ("F.cross_entropy(M, tensor([0, 2]), label_smoothing=0.1)", "tensor(0.9202)"),
    ("F.cross_entropy(M, tensor([0, -100]), weight=W, label_smoothing=0.1)", "tensor(1.1562)"),
    (
        "F.cross_entropy(M, P, weight=W, label_smoothing=0.1, reduction='none')",
        "tensor([3.3462, 2.3294])",
    ),
    ("F.cross_entropy(M[0], P[0])", "tensor(1.2808)"),
    ("F.kl_div(P.log(), P, reduction='batchmean')", "tensor(0.)"),
    (
        "F.kl_div(M, tensor([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]), reduction='none')",
        "tensor([[ 0.0000, -0.4466, -0.1966],\n        [-0.4000,  0.0000,  0.0000]])",
    ),
    ("F.poisson_nll_loss(M, P, full=True)", "tensor(1.1563)"),
    ("F.gaussian_nll_loss(M, P, tensor([[0.0], [1.0]]))", "tensor(83329.9375)"),
    ("F.gaussian_nll_loss(M, P, 0.5, full=True)", "tensor(0.8540)"),
    (
        "F.hinge_embedding_loss(tensor([0.2, 0.5]), tensor([1.0, -1.0]), margin=0.7)",
        "tensor(0.2000)",
    ),
    ("F.soft_margin_loss(tensor([0.2, 0.5]), tensor([1, -1]))", "tensor(0.7861)"),
    ("F.margin_ranking_loss(M, P, tensor([[1.0], [-1.0]]), margin=0.1)", "tensor(0.3000)"),
    ("F.cosine_embedding_loss(M, P, tensor([1, -1]), margin=0.2)", "tensor(0.8962)"),
    ("F.triplet_margin_loss(M, P, M * 2, swap=True)", "tensor(1.2895)"),
    ("F.multilabel_soft_margin_loss(M, P.round())", "tensor(0.8036)"),
    ("F.cosine_similarity(M, torch.zeros(2, 3))", "tensor([0., 0.])"),
    ("F.cosine_similarity(M[0], P, dim=-1)", "tensor([-0.5819, -0.1375])"),
    ("F.pairwise_distance(M, P, p=1.0, keepdim=True)", "tensor([[1.0000],\n        [1.1000]])"),
    ("F.pairwise_distance(M, P, p=inf)", "tensor([1.0000, 0.8000])"),
    ("F.normalize(torch.zeros(1, 2))", "tensor([[0., 0.]])"),
    ("torch.cdist(M, P, p=0.0)", "tensor([[1., 3.],\n        [3., 3.]])"),
    ("torch.cdist(torch.ones(2, 1, 2, 3), torch.zeros(3, 4, 3)).shape", "torch.Size([2, 3, 2, 4])"),
]
"""What each expression prints."""

GRADIENTS = [
    ("F.mse_loss(x, tensor(1.0))", "tensor([-0.6667,  0.0000, -0.3333])"),
    ("F.l1_loss(x, torch.zeros(3), reduction='sum')", "tensor([0., 1., 1.])"),
    ("F.smooth_l1_loss(x, torch.zeros(3), reduction='sum')", "tensor([0.0000, 1.0000, 0.5000])"),
    ("F.huber_loss(x, torch.zeros(3), reduction='sum')", "tensor([0.0000, 1.0000, 0.5000])"),
    (
        "F.binary_cross_entropy(x, torch.ones(3), reduction='sum')",
        "tensor([-1.0000e+12,  0.0000e+00, -2.0000e+00])",
    ),
    ("F.cross_entropy(x, tensor(1))", "tensor([ 0.1863, -0.4935,  0.3072])"),
    ("F.cross_entropy(x, tensor(-100))", "tensor([0., 0., 0.])"),
    ("F.nll_loss(x, tensor(2), ignore_index=2, reduction='sum')", "tensor([0., 0., 0.])"),
    ("F.pairwise_distance(x, x.detach(), eps=0.0)", "tensor([0., 0., 0.])"),
    ("F.cosine_similarity(x, torch.zeros(3), dim=0)", "tensor([0., 0., 0.])"),
    ("F.normalize(x * 0, dim=0).sum()", "tensor([0., 0., 0.])"),
    ("torch.cdist(x.reshape(1, 3), x.reshape(1, 3)).sum()", "tensor([0., 0., 0.])"),
]
"""The gradient of each expression in x, from a seed of ones."""

ERRORS = [
    ("F.mse_loss(M, torch.ones(2))", "RuntimeError"),
    ("F.mse_loss(M, P, reduction='x')", "ValueError"),
    ("F.mse_loss(tensor([1]), tensor([2]))", "NotImplementedError"),
    ("F.smooth_l1_loss(M, P, beta=-1.0)", "RuntimeError"),
    ("F.huber_loss(M, P, delta=0.0)", "RuntimeError"),
    ("F.binary_cross_entropy(P, torch.ones(3))", "ValueError"),
    ("F.binary_cross_entropy(tensor([1.5]), tensor([1.0]))", "RuntimeError"),
    ("F.binary_cross_entropy(tensor([0.5]), tensor([1]))", "RuntimeError"),
    ("F.binary_cross_entropy(P, P, weight=torch.ones(3, requires_grad=True))", "RuntimeError"),
    ("F.binary_cross_entropy_with_logits(M, torch.ones(3))", "ValueError"),
    ("F.binary_cross_entropy_with_logits(M, torch.ones(2, 3).long())", "RuntimeError"),
    ("F.nll_loss(M, tensor([0.0, 1.0]))", "RuntimeError"),
    ("F.nll_loss(M, tensor([0, 3]))", "IndexError"),
    ("F.nll_loss(M, tensor([0, -1]))", "IndexError"),
    ("F.nll_loss(M, tensor([0, 1, 1]))", "ValueError"),
    ("F.nll_loss(tensor(1.0), tensor(0))", "ValueError"),
    ("F.nll_loss(M, tensor([0, 1], dtype=torch.int32))", "RuntimeError"),
    ("F.nll_loss(M, tensor([0, 1]), weight=torch.ones(2))", "RuntimeError"),
    ("F.nll_loss(M, tensor([0, 1]), weight=torch.ones(3).double())", "RuntimeError"),
    ("F.nll_loss(M, torch.ones(2, 1).long())", "RuntimeError"),
    ("F.nll_loss(torch.ones(2, 3, 4), torch.ones(2, 5).long())", "RuntimeError"),
    ("F.nll_loss(tensor([[1, 2]]), tensor([0]))", "NotImplementedError"),
    ("F.cross_entropy(M, torch.ones(2))", "RuntimeError"),
    ("F.cross_entropy(M, tensor([0, 1]), label_smoothing=2.0)", "RuntimeError"),
    ("F.cross_entropy(M, P, ignore_index=1)", "RuntimeError"),
    ("F.cross_entropy(tensor([[1, 2]]), tensor([0]))", "NotImplementedError"),
    ("F.kl_div(M, P, reduction='x')", "ValueError"),
    ("F.gaussian_nll_loss(M, P, -P)", "ValueError"),
    ("F.gaussian_nll_loss(M, P, torch.ones(5))", "ValueError"),
    ("F.margin_ranking_loss(M[0], M, P)", "RuntimeError"),
    ("F.cosine_embedding_loss(M, M, tensor([[1.0]]))", "RuntimeError"),
    ("F.triplet_margin_loss(M, M, M[0])", "RuntimeError"),
    ("F.triplet_margin_loss(M, P, M, margin=-1.0)", "ValueError"),
    ("F.soft_margin_loss(M, torch.ones(2, 3, requires_grad=True))", "RuntimeError"),
    ("F.cosine_similarity(tensor([1]), tensor([1]), dim=0)", "RuntimeError"),
    ("torch.cdist(M[0], M[0])", "RuntimeError"),
    ("torch.cdist(M, torch.ones(2, 2))", "RuntimeError"),
]
"""The class of the error that each expression raises."""


test_values = prints(VALUES, OPERANDS)
test_gradients = gradients(GRADIENTS, OPERANDS)
test_errors = raises(ERRORS, OPERANDS)

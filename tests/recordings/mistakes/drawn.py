"""A latent variable that is drawn by sample(), and a function that marks its result."""

import torch
from torch import nn
from torch.distributions import Normal


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.round()
        ctx.mark_non_differentiable(out)
        return out


torch.manual_seed(0)
encoder, decoder, prior = nn.Linear(4, 4), nn.Linear(2, 4), nn.Linear(1, 2)
parameters = [*encoder.parameters(), *decoder.parameters(), *prior.parameters()]
opt = torch.optim.Adam(parameters, lr=0.01)
x = torch.randn(8, 4)
for _ in range(2):
    mean, log_scale = encoder(x).chunk(2, dim=1)
    z = Normal(mean, log_scale.exp()).sample()
    shift = Rounded.apply(prior(torch.ones(8, 1)))
    loss = nn.functional.mse_loss(decoder(z + shift), x)
    opt.zero_grad()
    loss.backward()
    opt.step()

"""Bayesian optimization by botorch: a Gaussian process, expected improvement, Sobol's points.

needs: botorch, gpytorch, linear_operator
agrees to: 0.02
"""

import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])


def score(x):
    return -((x - torch.tensor([0.3, 0.7])) ** 2).sum(-1, keepdim=True) + 0.1 * torch.cos(
        9 * x[:, :1]
    )


x = draw_sobol_samples(bounds, n=8, q=1, seed=3).squeeze(1)
first = x.sum().item()
y = score(x)
for step in range(3):
    model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = LogExpectedImprovement(model, best_f=y.max())
    point, value = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=4, raw_samples=32, options={"seed": step}
    )
    x, y = torch.cat([x, point]), torch.cat([y, score(point)])
sampler = SobolQMCNormalSampler(torch.Size([64]), seed=1)
batch = qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)
drawn = batch(draw_sobol_samples(bounds, n=4, q=2, seed=5)).exp().mean().item()
print(f"first {first:.4f} best {y.max().item():.3f} at {x[-1].sum().item():.2f} drawn {drawn:.4f}")

"""Bayesian linear regression by pyro: stochastic variational inference and its samples.

needs: pyro
"""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.optim import ClippedAdam

pyro.set_rng_seed(0)
x = torch.randn(80, 3)
y = x @ torch.tensor([1.0, -2.0, 0.5]) + 0.3 + 0.1 * torch.randn(80)


def model(x, y=None):
    weights = pyro.sample("weights", dist.Normal(torch.zeros(3), 2.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 2.0))
    noise = pyro.sample("noise", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("obs", dist.Normal(x @ weights + bias, noise), obs=y)


guide = AutoNormal(model)
inference = SVI(model, guide, ClippedAdam({"lr": 0.05}), Trace_ELBO())
for _ in range(50):
    loss = inference.step(x, y)
middle = guide.median(x)
draws = Predictive(model, guide=guide, num_samples=30)(x)["obs"]
print(
    f"loss {loss:.3f} weights {[round(w, 3) for w in middle['weights'].tolist()]} "
    f"spread {draws.std(0).mean().item():.3f}"
)

"""Exact Gaussian-process regression by gpytorch.  needs: gpytorch, linear_operator"""

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(6.0 * x) + 0.1 * torch.randn(40)


class Regression(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        mean, covariance = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Regression(x, y, likelihood)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train(), likelihood.train()
for _ in range(25):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    told = likelihood(model(torch.linspace(0, 1, 9)))
length = model.covar_module.base_kernel.lengthscale.item()
print(
    f"loss {loss.item():.3f} length {length:.3f} mean {told.mean.norm().item():.3f} "
    f"noise {likelihood.noise.item():.3f}"
)

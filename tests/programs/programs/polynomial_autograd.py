"""A custom autograd function, hooks, and a polynomial fitted to a sine in four ways."""

import math

import torch


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


dtype, device = torch.float, torch.device("cpu")
torch.manual_seed(3)
x = torch.linspace(-math.pi, math.pi, 500, device=device, dtype=dtype)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
norms = []
a.register_hook(lambda grad: norms.append(grad.abs().item()))
for _ in range(200):
    y_pred = a + b * LegendrePolynomial3.apply(c + d * x)
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
seen = {}
handle = model[0].register_forward_hook(lambda m, i, o: seen.update(shape=tuple(o.shape)))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in range(100):
    fit = torch.nn.MSELoss(reduction="sum")(model(xx), y)
    optimizer.zero_grad()
    fit.backward()
    optimizer.step()
handle.remove()
assert torch.autograd.gradcheck(
    LegendrePolynomial3.apply, (torch.randn(5, dtype=torch.double, requires_grad=True),)
)
hessian = torch.autograd.functional.hessian(lambda t: (t.sin() * t).sum(), x[:3])
print(seen, model)
print(
    f"loss {loss.item():.4f} fit {fit.item():.4f} hooks {len(norms)} h {hessian.sum().item():.5f}"
)

"""Contractions by opt_einsum with its own paths.  needs: opt_einsum"""

import opt_einsum
import torch

torch.manual_seed(4)
a, b, c = torch.randn(8, 6), torch.randn(6, 9, 5), torch.randn(5, 7)
out = opt_einsum.contract("ij,jkl,lm->ikm", a, b, c)
assert torch.allclose(out, torch.einsum("ij,jkl,lm->ikm", a, b, c), atol=1e-5)
expression = opt_einsum.contract_expression("ab,bc,cd->ad", (4, 5), (5, 6), (6, 3))
x = torch.randn(4, 5, requires_grad=True)
y = expression(x, torch.randn(5, 6), torch.randn(6, 3))
y.sum().backward()
print(opt_einsum.contract_path("ab,bc,cd->ad", x, torch.ones(5, 6), torch.ones(6, 3))[0])
print(f"sum {out.sum().item():.4f} norm {out.norm().item():.4f} grad {x.grad.sum().item():.5f}")

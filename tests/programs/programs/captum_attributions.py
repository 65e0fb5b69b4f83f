"""What a network looks at, by captum: integrated gradients, saliency, occlusion.

needs: captum
"""

import torch
from captum.attr import DeepLift, IntegratedGradients, LayerGradCam, Occlusion, Saliency
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU()
)
model = nn.Sequential(model, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 3)).eval()
x = torch.randn(2, 1, 8, 8)
target = torch.tensor([0, 2])
integrated, delta = IntegratedGradients(model).attribute(
    x, target=target, n_steps=20, return_convergence_delta=True
)
parts = {
    "integrated": integrated,
    "saliency": Saliency(model).attribute(x.clone(), target=target),
    "occlusion": Occlusion(model).attribute(x, (1, 3, 3), target=target, strides=(1, 2, 2)),
    "lift": DeepLift(model).attribute(x, target=target),
    "cam": LayerGradCam(model, model[0][2]).attribute(x, target=target),
}
print(" ".join(f"{name} {part.abs().sum().item():.4f}" for name, part in parts.items()))

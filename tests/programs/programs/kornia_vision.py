"""Differentiable image processing by kornia: filters, geometry, augmentation, matching, losses.

needs: kornia, kornia_rs
"""

import kornia
import torch
from kornia import augmentation as K

torch.manual_seed(0)
grid = torch.stack(torch.meshgrid(torch.arange(48.0), torch.arange(48.0), indexing="ij"))
image = torch.stack([torch.sin(grid[0] / 5), torch.cos(grid[1] / 7), torch.sin(grid.sum(0) / 9)])
image = (image[None] * 0.4 + 0.5).clamp(0, 1)

blurred = kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5))
edges = kornia.filters.sobel(image).mean().item()
hue = kornia.color.rgb_to_hsv(image).mean().item()
distance = kornia.contrib.distance_transform((image[:, :1] > 0.6).float()).mean().item()
augment = K.AugmentationSequential(
    K.RandomHorizontalFlip(p=0.5),
    K.RandomAffine(degrees=20.0, p=1.0),
    K.ColorJiggle(0.2, 0.2, 0.2, 0.1, p=1.0),
    K.RandomErasing(p=0.7),
    data_keys=["input", "mask"],
)
pictures, masks = augment(image.repeat(4, 1, 1, 1), (image[:, :1] > 0.5).float().repeat(4, 1, 1, 1))

# An affine map is learned that takes the picture back to where it came from.
turned = kornia.geometry.rotate(image, torch.tensor([8.0]))
map_ = torch.eye(2, 3)[None].clone().requires_grad_()
optimizer = torch.optim.Adam([map_], lr=0.01)
for _ in range(20):
    moved = kornia.geometry.warp_affine(turned, map_, (48, 48))
    loss = torch.nn.functional.l1_loss(moved, image) + 0.1 * kornia.losses.ssim_loss(
        moved, image, 5
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

corners = kornia.feature.harris_response(image).amax().item()
detector = kornia.feature.ScaleSpaceDetector(20, resp_module=kornia.feature.BlobHessian())
frames, responses = detector(kornia.color.rgb_to_grayscale(image))
patches = kornia.feature.extract_patches_from_pyramid(
    kornia.color.rgb_to_grayscale(image), frames, 16
)
described = kornia.feature.SIFTDescriptor(16)(patches.flatten(0, 1)).norm().item()
print(
    f"blur {blurred.std().item():.4f} edges {edges:.4f} hue {hue:.4f} distance {distance:.3f} "
    f"augmented {pictures.mean().item():.4f} {masks.mean().item():.4f} loss {loss.item():.4f} "
    f"corners {corners:.2e} frames {tuple(frames.shape)} described {described:.2e}"
)

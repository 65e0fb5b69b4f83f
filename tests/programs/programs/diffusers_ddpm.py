"""Denoising diffusion by diffusers: a small UNet, its schedulers, an EMA, saving and sampling.

needs: diffusers
"""

import tempfile

import torch
import torch.nn.functional as F
from diffusers import DDIMScheduler, DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel

torch.manual_seed(0)
rows, columns = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
radius = torch.arange(3, 7)[:, None, None]
images = (((rows - 8) ** 2 + (columns - 8) ** 2 < radius**2).float() * 2 - 1)[:, None]
model = UNet2DModel(
    sample_size=16,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(16, 32),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=8,
    norm_num_groups=8,
)
scheduler = DDPMScheduler(num_train_timesteps=100, beta_schedule="squaredcos_cap_v2")
average = EMAModel(model.parameters(), decay=0.9)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    noise = torch.randn_like(images)
    steps = torch.randint(0, 100, (len(images),))
    loss = F.mse_loss(model(scheduler.add_noise(images, noise, steps), steps).sample, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.step(model.parameters())
average.copy_to(model.parameters())
with tempfile.TemporaryDirectory() as folder:
    DDPMPipeline(unet=model, scheduler=scheduler).save_pretrained(folder)
    pipeline = DDPMPipeline.from_pretrained(folder)
pipeline.set_progress_bar_config(disable=True)
made = pipeline(2, generator=torch.manual_seed(1), num_inference_steps=4, output_type="np").images
ddim = DDIMScheduler.from_config(pipeline.scheduler.config)
ddim.set_timesteps(4)
sample = torch.randn(2, 1, 16, 16, generator=torch.manual_seed(2))
with torch.no_grad():
    for step in ddim.timesteps:
        sample = ddim.step(pipeline.unet(sample, step).sample, step, sample).prev_sample
print(f"loss {loss.item():.4f} made {made.mean():.4f} ddim {sample.std().item():.4f}")

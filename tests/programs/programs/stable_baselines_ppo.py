"""Proximal policy optimization by stable-baselines3 on an environment of gymnasium.

needs: stable_baselines3, gymnasium
"""

import gymnasium
import torch
from stable_baselines3 import A2C, PPO

torch.manual_seed(0)
figures = []
for algorithm, options in ((PPO, dict(n_steps=64, batch_size=32, n_epochs=2)), (A2C, {})):
    environment = gymnasium.make("CartPole-v1")
    agent = algorithm("MlpPolicy", environment, seed=1, device="cpu", **options)
    agent.learn(128)
    norm = sum(p.square().sum().item() for p in agent.policy.parameters())
    figures.append((agent.num_timesteps, norm**0.5))
print(" ".join(f"steps {steps} norm {norm:.4f}" for steps, norm in figures))

"""An actor-critic on a pole that is to be balanced, the environment in a few lines."""

import math
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Pole:
    """A cart with a pole; a step of 0.02 s pushes it left or right."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)

    def reset(self):
        self.state = self.random.uniform(-0.05, 0.05, 4)
        return self.state.astype(np.float32)

    def step(self, action):
        x, dx, a, da = self.state
        force = 10.0 if action else -10.0
        sin, cos = math.sin(a), math.cos(a)
        temp = (force + 0.05 * da * da * sin) / 1.1
        dda = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        ddx = temp - 0.05 * dda * cos / 1.1
        self.state = np.array([x + 0.02 * dx, dx + 0.02 * ddx, a + 0.02 * da, da + 0.02 * dda])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state.astype(np.float32), 1.0, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.action_head = nn.Linear(64, 2)
        self.value_head = nn.Linear(64, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


torch.manual_seed(543)
env = Pole(543)
model = Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)
eps = np.finfo(np.float32).eps.item()
running_reward = 10
for episode in range(12):
    state, length = env.reset(), 0
    for length in range(1, 200):  # noqa: B007
        probs, state_value = model(torch.from_numpy(state).float())
        m = Categorical(probs)
        action = m.sample()
        model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
        state, reward, done = env.step(action.item())
        model.rewards.append(reward)
        if done:
            break
    running_reward = 0.05 * length + 0.95 * running_reward
    R, returns = 0, []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(model.saved_actions, returns, strict=True):
        policy_losses.append(-log_prob * (R - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:], model.saved_actions[:]
    print(f"Episode {episode}\tLast reward: {length}\tAverage reward: {running_reward:.2f}")
print(f"reward {running_reward:.3f} loss {loss.item():.4f}")

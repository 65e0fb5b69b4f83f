"""REINFORCE on a walk through a small maze."""

from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical

MAZE = ["....#", ".##..", ".#..#", "...#G"]
torch.manual_seed(21)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, state):
        return Categorical(logits=self.out(torch.tanh(self.embed(state))))


def move(state, action):
    row, column = divmod(state, 5)
    row2 = row + (0, 0, 1, -1)[action]
    column2 = column + (1, -1, 0, 0)[action]
    if not (0 <= row2 < 4 and 0 <= column2 < 5) or MAZE[row2][column2] == "#":
        return state, -0.1, False
    done = MAZE[row2][column2] == "G"
    return row2 * 5 + column2, 1.0 if done else -0.02, done


policy = Policy()
optimizer = optim.AdamW(policy.parameters(), lr=0.05)
lengths = []
for _ in range(30):
    state, log_probs, entropies, rewards = 0, [], [], []
    for _ in range(40):
        distribution = policy(torch.tensor([state]))
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        entropies.append(distribution.entropy())
        state, reward, done = move(state, action.item())
        rewards.append(reward)
        if done:
            break
    lengths.append(len(rewards))
    returns = deque()
    for r in reversed(rewards):
        returns.appendleft(r + 0.95 * (returns[0] if returns else 0.0))
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps)
    loss = -(torch.cat(log_probs) * returns).sum() - 0.01 * torch.cat(entropies).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"length {np.mean(lengths[-10:]):.3f} loss {loss.item():.4f}")

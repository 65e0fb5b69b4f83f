#!/usr/bin/env python3
"""Teaches an actor-critic to balance a pole on a cart; the environment is below, in 40 lines.

    python -m facula run examples/actor_critic.py [--steps 400] [--resume]

The cart-pole: Barto, Sutton and Anderson, Neuronlike adaptive elements, 1983. The method: Mnih and
others, Asynchronous methods for deep reinforcement learning, 2016, with one process that moves
many carts at once.
"""

import sys

import torch
from torch import nn
from torch.nn import functional
from training import Training, argument_parser, begin, positive


class CartPole:
    """Many carts, each with a pole on it, as one tensor of states (N, 4).

    A state is the cart's place and speed, the pole's angle and its speed. An action pushes a cart
    to the left (0) or to the right (1). A cart that leaves its track, lets its pole fall or has
    gone on for `limit` steps begins anew.
    """

    gravity, cart, pole, half_length, force, seconds = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count, limit=500):
        self.limit = limit
        self.state = self.begin(count)
        self.age = torch.zeros(count)

    def begin(self, count):
        """States near to standing still."""
        return torch.rand(count, 4) * 0.1 - 0.05

    def step(self, actions):
        """Moves every cart by 0.02 s; returns which ones fell and which ones began anew."""
        x, speed, angle, turn = self.state.unbind(1)
        sine, cosine = angle.sin(), angle.cos()
        mass, lever = self.cart + self.pole, self.pole * self.half_length
        push = (self.force * (2 * actions - 1) + lever * turn**2 * sine) / mass
        inertia = self.half_length * (4 / 3 - self.pole * cosine**2 / mass)
        bend = (self.gravity * sine - cosine * push) / inertia
        drive = push - lever * bend * cosine / mass
        change = torch.stack([speed, drive, turn, bend], 1)
        self.state, self.age = self.state + self.seconds * change, self.age + 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.2095)
        ended = fell | (self.age >= self.limit)
        self.state = torch.where(ended[:, None], self.begin(len(ended)), self.state)
        self.age = torch.where(ended, 0.0, self.age)
        return fell, ended

    def state_dict(self):
        return {"state": self.state, "age": self.age}

    def load_state_dict(self, saved):
        self.state, self.age = saved["state"], saved["age"]


class ActorCritic(nn.Module):
    """States (N, 4) to logits of the actions (N, 2) and to what the states are worth (N,)."""

    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.actor = nn.Linear(width, 2)
        self.critic = nn.Linear(width, 1)

    def forward(self, states):
        features = self.body(states)
        return self.actor(features), self.critic(features).squeeze(-1)


def play(model, carts, count):
    """Moves the carts `count` times by the model's choice.

    Returns:
        states (T, N, 4), actions, fell and ended (T, N), as one list.
    """
    moves = []
    for _ in range(count):
        states = carts.state
        with torch.no_grad():
            actions = torch.multinomial(model(states)[0].softmax(-1), 1).squeeze(1)
        fell, ended = carts.step(actions)
        moves.append((states, actions, fell, ended))
    return [torch.stack(parts) for parts in zip(*moves, strict=True)]


def returns_of(fell, ended, worth, last, discount):
    """What each state (T, N) turned out to be worth, from 0 (falls now) to 1 (never falls)."""
    found, following = [], last
    for t in reversed(range(len(fell))):
        # A cart stopped by its limit could have gone on: its state's own worth stands for the rest.
        following = torch.where(ended[t], worth[t], following)
        following = torch.where(fell[t], 0.0, 1 - discount + discount * following)
        found.append(following)
    return torch.stack(found[::-1])


def loss_of(model, carts, count, discount=0.99):
    """The actor's and the critic's loss after playing, and the mean age at which carts end."""
    states, actions, fell, ended = play(model, carts, count)
    logits, worth = model(states)
    with torch.no_grad():
        last = model(carts.state)[1]
        returns = returns_of(fell, ended, worth, last, discount)
        better = returns - worth
        better = (better - better.mean()) / (better.std() + 1e-8)
    log_chances = logits.log_softmax(-1)
    chosen = log_chances.gather(-1, actions[..., None]).squeeze(-1)
    entropy = -(log_chances.exp() * log_chances).sum(-1).mean()
    critic = functional.mse_loss(worth, returns)
    return -(chosen * better).mean() + critic - 0.01 * entropy, fell.sum().item()


@torch.no_grad()
def seconds_upright(model, count=32, limit=500):
    """For how long the model keeps poles up when it takes its likelier action, in seconds."""
    carts, upright = CartPole(count, limit + 1), torch.ones(count)
    total = torch.zeros(count)
    for _ in range(limit):
        fell, _ = carts.step(model(carts.state)[0].argmax(-1))
        upright = torch.where(fell, 0.0, upright)
        total += upright
    return total.mean().item() * CartPole.seconds


def main(arguments=None):
    """Trains, writes a checkpoint and a picture, and prints how long poles stay up."""
    parser = argument_parser("actor_critic", __doc__, steps=400, lr=5e-3, batch_size=32)
    parser.add_argument("--moves", type=positive(int), default=32, help="moves in each step")
    # One action chosen otherwise changes all that follows: in float64 two frameworks choose alike
    # for a long time.
    parser.set_defaults(double=True)
    options = parser.parse_args(arguments)
    begin(options)
    carts, model = CartPole(options.batch_size), ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.993)
    training = Training(options, model=model, optimizer=optimizer, schedule=schedule, carts=carts)
    for _ in training.steps():
        loss, falls = loss_of(model, carts, options.moves)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        training.record(loss.item(), falls=falls)
    training.finish()
    print(f"poles stay up for {seconds_upright(model):.2f} s of 10")
    return 0


if __name__ == "__main__":
    sys.exit(main())

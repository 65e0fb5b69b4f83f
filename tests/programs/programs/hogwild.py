"""Hogwild: processes that train one model in shared memory.  agrees to: 0.5"""

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F


def train(rank, model):
    torch.manual_seed(1 + rank)
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(100):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("spawn", force=True)
    torch.manual_seed(1)
    model = nn.Linear(4, 1)
    model.share_memory()
    processes = []
    for rank in range(2):
        p = mp.Process(target=train, args=(rank, model))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
        assert p.exitcode == 0
    torch.manual_seed(9)
    x = torch.randn(100, 4)
    error = F.mse_loss(model(x), x.sum(1, keepdim=True)).item()
    print(f"below {0.01 if error < 0.01 else error}")

"""A GRU encoder and decoder with attention that learns to reverse words of varying length."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(77)
PAD, SOS, SYMBOLS = 0, 1, 12


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, hidden, padding_idx=PAD)
        self.gru = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, hidden)

    def forward(self, source, lengths):
        packed = pack_padded_sequence(
            self.embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, hidden = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return outputs, torch.tanh(self.fc(torch.cat([hidden[0], hidden[1]], dim=1)))


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, hidden)
        self.score = nn.Bilinear(hidden, 2 * hidden, 1)
        self.cell = nn.GRUCell(3 * hidden, hidden)
        self.out = nn.Linear(hidden, SYMBOLS)

    def forward(self, token, hidden, memory, mask):
        query = hidden.unsqueeze(1).expand(-1, memory.size(1), -1).contiguous()
        scores = self.score(query, memory).squeeze(-1).masked_fill(mask, float("-inf"))
        context = torch.bmm(F.softmax(scores, dim=1).unsqueeze(1), memory).squeeze(1)
        hidden = self.cell(torch.cat([self.embedding(token), context], dim=1), hidden)
        return self.out(hidden), hidden


encoder, decoder = Encoder(24), Decoder(24)
parameters = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(parameters, lr=5e-3)
for step in range(25):
    words = [torch.randint(2, SYMBOLS, (int(n),)) for n in torch.randint(2, 7, (32,))]
    source = pad_sequence(words, batch_first=True, padding_value=PAD)
    target = pad_sequence([w.flip(0) for w in words], batch_first=True, padding_value=PAD)
    memory, hidden = encoder(source, torch.tensor([len(w) for w in words]))
    token, logits = torch.full((32,), SOS), []
    for t in range(target.size(1)):
        out, hidden = decoder(token, hidden, memory, source == PAD)
        logits.append(out)
        token = target[:, t] if torch.rand(()).item() < 0.5 else out.argmax(1)
    loss = F.cross_entropy(torch.stack(logits, 1).flatten(0, 1), target.flatten(), ignore_index=PAD)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    optimizer.step()
    if step % 5 == 0:
        print(step, f"{loss.item():.4f}")
right = (torch.stack(logits, 1).argmax(-1) == target)[target != PAD].float().mean()
print(f"loss {loss.item():.4f} right {right.item():.4f}")

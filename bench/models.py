"""Models for the training suite: each builder gives (model, loss of the model on its batch)."""


def mlp(m):
    """Three layers of 1024 on batches of 128."""
    nn = m.nn
    model = nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    x, y = m.randn(128, 256), m.randint(0, 10, (128,))
    return model, lambda model: nn.functional.cross_entropy(model(x), y)


def residual_block(m, channels_in, channels, stride):
    """Two 3x3 convolutions around a shortcut."""
    nn = m.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(channels)
            self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(channels)
            self.shortcut = None
            if stride != 1 or channels_in != channels:
                self.shortcut = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

        def forward(self, x):
            y = nn.functional.relu(self.norm1(self.first(x)))
            y = self.norm2(self.second(y))
            return nn.functional.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    return Block()


def resnet(m, channels_last=False):
    """A residual network of 14 layers for images of 32 pixels, batches of 16."""
    nn = m.nn
    blocks, before = [], 32
    for channels, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1)):
        blocks.append(residual_block(m, before, channels, stride))
        before = channels
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(before, 10),
    )
    x, y = m.randn(16, 3, 32, 32), m.randint(0, 10, (16,))
    if channels_last:
        model, x = model.to(memory_format=m.channels_last), x.to(memory_format=m.channels_last)
    return model, lambda model: nn.functional.cross_entropy(model(x), y)


def transformer_block(m, width, heads):
    """Causal attention and a network of two layers, each after a norm and with a shortcut."""
    nn = m.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(x).view(batch, length, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).reshape(batch, length, width))

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    return Block()


def gpt(m):
    """Four layers of width 256 on 8 texts of 128 tokens, 4096 words."""
    nn, width, length, words = m.nn, 256, 128, 4096

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[transformer_block(m, width, 8) for _ in range(4)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, words, bias=False)

        def forward(self, text):
            x = self.tokens(text) + self.places(m.arange(text.shape[1]))
            return self.head(self.norm(self.blocks(x)))

    text = m.randint(0, words, (8, length + 1))
    before, after = text[:, :-1].contiguous(), text[:, 1:].reshape(-1)
    return Gpt(), lambda model: nn.functional.cross_entropy(model(before).view(-1, words), after)


def lstm(m):
    """Two recurrent layers of 128 on 16 sequences of 64."""
    nn = m.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(64, 128, 2, batch_first=True)
            self.head = nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    model, x, y = Tagger(), m.randn(16, 64, 64), m.randint(0, 10, (16,))
    return model, lambda model: nn.functional.cross_entropy(model(x), y)


def recommender(m):
    """Embedding bags of 8 features and a dense network, their products and a last network."""
    nn, width, features, rows = m.nn, 32, 8, 10000

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            bags = [nn.EmbeddingBag(rows, width, mode="sum") for _ in range(features)]
            self.bags = nn.ModuleList(bags)
            self.dense = nn.Sequential(
                nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width), nn.ReLU()
            )
            pairs = (features + 1) * features // 2
            self.top = nn.Sequential(nn.Linear(pairs + width, 128), nn.ReLU(), nn.Linear(128, 1))
            self.left, self.right = m.tril_indices(features + 1, features + 1, -1)

        def forward(self, dense, sparse):
            x = self.dense(dense)
            parts = [x] + [bag(sparse[i]) for i, bag in enumerate(self.bags)]
            stacked = m.stack(parts, 1)
            products = stacked @ stacked.transpose(1, 2)
            return self.top(m.cat([x, products[:, self.left, self.right]], 1)).squeeze(1)

    dense, clicks = m.randn(512, 13), m.randint(0, 2, (512,)).float()
    sparse = [m.randint(0, rows, (512, 4)) for _ in range(features)]

    def loss(model):
        found = model(dense, sparse)
        return nn.functional.binary_cross_entropy_with_logits(found, clicks)

    return Recommender(), loss


MODELS = {
    "MLP": mlp,
    "ResNet": resnet,
    "ResNet, channels last": lambda m: resnet(m, channels_last=True),
    "GPT": gpt,
    "LSTM": lstm,
    "recommender": recommender,
}

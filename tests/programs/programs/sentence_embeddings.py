"""Sentence embeddings by sentence-transformers: a small BERT, pooling, a ranking loss, search.

needs: sentence_transformers, transformers
"""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, util
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = "the a cat dog bird sleeps runs flies red blue green house tree on under in".split()
torch.manual_seed(0)
folder = Path(tempfile.mkdtemp())
tokenizer = BertTokenizerFast(
    vocab={word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
)
config = BertConfig(
    vocab_size=len(tokenizer),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=24,
)
BertModel(config).save_pretrained(folder)
tokenizer.save_pretrained(folder)
model = SentenceTransformer(
    modules=[Transformer(str(folder)), Pooling(32), Normalize()], device="cpu"
)

pairs = [
    (f"the {animal} {verb}", f"a {colour} {animal} {verb} {where} the {place}")
    for animal, verb, colour in (("cat", "sleeps", "red"), ("dog", "runs", "blue"))
    for where, place in (("on", "house"), ("under", "tree"), ("in", "tree"))
] + [("the bird flies", f"a {colour} bird flies in the house") for colour in ("red", "green")]
loss_of = losses.MultipleNegativesRankingLoss(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
model.eval()  # without dropout, so that the figures depend on the weights alone
for _ in range(12):
    features = [model.preprocess(list(texts)) for texts in zip(*pairs, strict=True)]
    loss = loss_of(features, labels=None)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

corpus = model.encode([text for _, text in pairs], convert_to_tensor=True)
query = model.encode(["the bird flies", "the dog runs"], convert_to_tensor=True)
found = util.semantic_search(query, corpus, top_k=2)
similar = model.similarity(query, corpus)
print(
    f"loss {loss.item():.4f} best {[hit[0]['corpus_id'] for hit in found]} "
    f"score {found[0][0]['score']:.4f} mean {similar.mean().item():.4f}"
)

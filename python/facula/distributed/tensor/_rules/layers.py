"""Rules of what layers of networks compute: normalization, attention, embedding, losses ..."""

from __future__ import annotations

import facula
from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor._rules.families import broadcast_cut
from facula.distributed.tensor._rules.products import by_equation, equation_of_broadcast
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _equation(call, words, results):
    """An equation for the tensors that a call has: a word for each argument that is there."""
    there = [words.get(slot.name, "") for slot in call.slots]
    return by_equation(call, ",".join(there) + "->" + ",".join(results))


# --- normalization


def _split_normalized(call, name="input"):
    """Letters of the leading dimensions of a normalized tensor; capitals for the normalized."""
    ndim = len(call.values[name].shape)
    inner = len(call["normalized_shape"])
    outer = _LETTERS[: ndim - inner]
    return outer, "A" * inner


def layer_norm(call, mesh_dim):
    """Over the last dimensions: the others may be cut."""
    outer, inner = _split_normalized(call)
    words = {"input": outer + inner, "weight": inner, "bias": inner}
    statistics = outer + "_" * len(inner)
    results = [outer + inner, statistics, statistics][: len(call.outputs)]
    return _equation(call, words, results)


def layer_norm_backward(call, mesh_dim):
    """The gradient of the input is cut as the input; those of weight and bias are terms."""
    outer, inner = _split_normalized(call)
    statistics = outer + "_" * len(inner)
    words = {
        "grad_out": outer + inner,
        "input": outer + inner,
        "mean": statistics,
        "rstd": statistics,
        "weight": inner,
        "bias": inner,
    }
    return _equation(call, words, [outer + inner, inner, inner][: len(call.outputs)])


# --- attention


def attention(call, mesh_dim):
    """Samples and heads may be cut, and the queries of attention that sees all keys."""
    sees_all = not call["is_causal"]
    query = "s" if sees_all else "S"
    words = {
        "query": f"bh{query}T",
        "key": "bhUT",
        "value": "bhUV",
        "out": f"bh{query}V",
        "grad_out": f"bh{query}V",
        "logsumexp": f"bh{query}",
    }
    mask = call.get("attn_mask")
    if mask is not None:
        own = f"bh{query}U"[4 - mask.ndim :]
        words["attn_mask"] = "".join(
            c if n > 1 else "_" for c, n in zip(own, mask.shape, strict=True)
        )
    forward = [words["out"], words["logsumexp"]]
    backward = [words["query"], words["key"], words["value"]]
    return _equation(call, words, forward if "grad_out" not in call.values else backward)


# --- embedding


def embedding(call, mesh_dim):
    """Columns and indices may be cut; of cut rows each rank looks up its own."""
    letters = _LETTERS[: call["indices"].ndim]
    found = by_equation(call, f"Vz,{letters}->{letters}z", [{0}])
    found.append(Alternative((Partial(),), (Shard(0), Replicate()), in_order=True))
    return found


def embedding_backward(call, mesh_dim):
    """Columns may be cut; cut indices give terms."""
    letters = _LETTERS[: call["indices"].ndim]
    return by_equation(call, f"{letters}z,{letters}->Vz", [{0}])


def index_select(call, mesh_dim):
    """Dimensions that are not indexed may be cut, and the index itself."""
    ndim, dim = call.first.ndim, call["dim"] % max(1, call.first.ndim)
    if ndim == 0 or call["index"].ndim == 0:
        return [everywhere(call)]
    letters = _LETTERS[:ndim]
    source = letters[:dim] + letters[dim].upper() + letters[dim + 1 :]
    return by_equation(call, f"{source},z->{letters[:dim]}z{letters[dim + 1 :]}", [{0}])


def _words_of_index(call):
    """Words of an indexed tensor, of its indices, and of what they find."""
    source, indices = call["self"], list(call["indices"])
    letters = list(_LETTERS[: source.ndim])
    taken = [d for d, i in enumerate(indices) if i is not None]
    if any(indices[d].tensor_meta.dtype in (facula.bool, facula.uint8) for d in taken):
        return None  # a mask finds as many as its values say
    shape = facula.broadcast_shapes(*(indices[d].shape for d in taken))
    new = _LETTERS[source.ndim : source.ndim + len(shape)]
    kept = [c for d, c in enumerate(letters) if d not in taken]
    adjacent = taken == list(range(taken[0], taken[0] + len(taken)))
    at = taken[0] if adjacent else 0
    words = ["".join(c.upper() if d in taken else c for d, c in enumerate(letters))]
    words += [equation_of_broadcast(indices[d].shape, new, shape) for d in taken]
    return words, "".join(kept[:at]) + new + "".join(kept[at:])


def index(call, mesh_dim):
    """Dimensions that are not indexed may be cut, and the indices, which lie behind each other."""
    words = _words_of_index(call)
    if words is None:
        return [everywhere(call)]
    return by_equation(call, ",".join(words[0]) + "->" + words[1], [{0}])


def index_put(call, mesh_dim):
    """Dimensions that are not indexed may be cut."""
    words = _words_of_index(call)
    if words is None:
        return [everywhere(call)]
    (source, *indices), result = words
    sizes = dict(zip(source, call["self"].shape, strict=True))
    own = result[len(result) - call["values"].ndim :]
    values = "".join(
        c if sizes.get(c) == n else "_" for c, n in zip(own, call["values"].shape, strict=True)
    )
    return by_equation(
        call, ",".join([source, *("_" * len(i) for i in indices), values]) + "->" + source
    )


def repeat(call, mesh_dim):
    """Dimensions that are not repeated may be cut."""
    times = list(call["repeats"])
    new = len(times) - call.first.ndim
    free = [d for d in range(call.first.ndim) if times[new + d] == 1]
    cuts = [Alternative((Shard(new + d),), (Shard(d),)) for d in free]
    return [
        everywhere(call),
        *cuts,
        *(everywhere(call, Partial(k)) for k in Partial.ALL_REDUCE_OPS),
    ]


# --- convolution


def convolution(call, mesh_dim):
    """Samples may be cut, and channels that come out."""
    spatial = "X" * (call.first.ndim - 2)
    if call["transposed"] or call["groups"] != 1:
        words = {"input": "nC" + spatial, "weight": "OC" + spatial, "bias": "O"}
        return _equation(call, words, ["nO" + spatial])
    words = {"input": "nC" + spatial, "weight": "oC" + spatial, "bias": "o"}
    return _equation(call, words, ["no" + spatial])


def convolution_backward(call, mesh_dim):
    """Cut samples give terms of the gradients of weight and bias."""
    spatial = "X" * (call.first.ndim - 2)
    words = {"grad_output": "nO" + spatial, "input": "nC" + spatial, "weight": "OC" + spatial}
    return _equation(call, words, ["nC" + spatial, "OC" + spatial, "O"])


# --- matrices


def of_matrices(call, mesh_dim):
    """Products and the like of matrices: dimensions before the last two may be cut."""
    found = [everywhere(call)]
    shape = call.outputs[0].shape
    for dim in range(len(shape) - 2):
        inputs = tuple(broadcast_cut(spec.shape, shape, dim) for spec in call.specs)
        found.append(Alternative((Shard(dim),) * len(call.outputs), inputs))
    return found


rules = {
    # Their batching rule is that of elementwise operators, which they are not.
    "linalg_solve_triangular": of_matrices,
    "cholesky_solve": of_matrices,
    "_cdist_forward": of_matrices,
    "native_layer_norm": layer_norm,
    "_fused_rms_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "_fused_rms_norm_backward": layer_norm_backward,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention,
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "index_select": index_select,
    "index": index,
    "index_put": index_put,
    "repeat": repeat,
    "convolution": convolution,
    "convolution_backward": convolution_backward,
}

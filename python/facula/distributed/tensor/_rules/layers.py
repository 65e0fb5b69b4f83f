"""Rules of what layers of networks compute: normalization, attention, embedding, losses ..."""

from __future__ import annotations

from facula.distributed.tensor._propagate import Alternative, everywhere
from facula.distributed.tensor._rules.products import by_equation
from facula.distributed.tensor.placement_types import Partial, Replicate, Shard

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _equation(call, words, results):
    """An equation for the tensors that a call has: a word for each argument that is there."""
    there = {slot.name for slot in call.slots}
    return by_equation(
        call, ",".join(w for name, w in words.items() if name in there) + "->" + ",".join(results)
    )


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
    """Samples and heads may be cut; results beside the values begin with samples and heads."""
    words = {
        "query": "bhST",
        "key": "bhUT",
        "value": "bhUV",
        "out": "bhSV",
        "grad_out": "bhSV",
        "logsumexp": "bhS",
        "attn_mask": "",
        "attn_bias": "",
    }
    mask = call.get("attn_mask") if "attn_mask" in call.values else call.get("attn_bias")
    if mask is not None:
        word = "".join(
            c if n > 1 else "_" for c, n in zip("bhSU"[-mask.ndim :], mask.shape, strict=True)
        )
        words["attn_mask"] = words["attn_bias"] = word
    there = {slot.name: words[slot.name] for slot in call.slots}
    results = ["bh" + "X" * (len(m.shape) - 2) if m is not None else "" for m in call.outputs]
    return by_equation(call, ",".join(there.values()) + "->" + ",".join(results))


# --- embedding


def embedding(call, mesh_dim):
    """Columns and indices may be cut; of cut rows each rank looks up its own."""
    letters = _LETTERS[: call["indices"].ndim]
    found = by_equation(call, f"Vz,{letters}->{letters}z", [{0}])
    found.append(Alternative((Partial(),), (Shard(0), Replicate())))
    return found


def embedding_backward(call, mesh_dim):
    """Columns may be cut; cut indices give terms."""
    letters = _LETTERS[: call["indices"].ndim]
    return by_equation(call, f"{letters}z,{letters}->Vz", [{0}])


def index_select(call, mesh_dim):
    """Dimensions that are not indexed may be cut, and the index itself."""
    ndim, dim = call.first.ndim, call["dim"] % max(1, call.first.ndim)
    letters = _LETTERS[:ndim]
    source = letters[:dim] + letters[dim].upper() + letters[dim + 1 :]
    return by_equation(call, f"{source},z->{letters[:dim]}z{letters[dim + 1 :]}", [{0}])


# --- losses


def nll_loss(call, mesh_dim):
    """Samples may be cut if their losses are not added, or all are of equal weight."""
    if call.first.ndim == 1:
        return [everywhere(call)]
    by_sample = (Shard(0),) * 2
    weight = (Replicate(),) if call.place_of("weight") is not None else ()
    reduced = {0: Shard(0), 2: Partial()}.get(call["reduction"])
    if reduced is None:  # a mean divides by a number that parts do not know
        return [everywhere(call)]
    return [everywhere(call), Alternative((reduced, Partial()), by_sample + weight)]


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


rules = {
    "native_layer_norm": layer_norm,
    "_fused_rms_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
    "_fused_rms_norm_backward": layer_norm_backward,
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": attention,
    "embedding": embedding,
    "embedding_dense_backward": embedding_backward,
    "index_select": index_select,
    "nll_loss_forward": nll_loss,
    "convolution": convolution,
    "convolution_backward": convolution_backward,
}

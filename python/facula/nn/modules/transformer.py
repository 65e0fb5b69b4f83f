"""Encoders and decoders of attention layers: Transformer and its parts."""

from __future__ import annotations

import copy

import facula
from facula.nn import functional as F
from facula.nn import init
from facula.nn.modules.activation import GELU, ReLU
from facula.nn.modules.attention import MultiheadAttention
from facula.nn.modules.container import ModuleList
from facula.nn.modules.dropout import Dropout
from facula.nn.modules.linear import Linear
from facula.nn.modules.module import Module
from facula.nn.modules.normalization import LayerNorm
from facula.nn.modules.utils import _keep

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _causal_mask(size, device=None, dtype=None):
    """0 on and below the diagonal, -inf above."""
    full = facula.full((size, size), float("-inf"), device=device, dtype=dtype)
    return facula.triu(full, diagonal=1)


def _is_causal_mask(mask, is_causal, size):
    """What the caller says, or where that is None whether the mask is the causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    causal = _causal_mask(size, mask.device, mask.dtype if mask.is_floating_point() else None)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _length(sequence, batch_first):
    """The number of steps of a batch, or of a single sequence."""
    return sequence.size(1 if sequence.dim() == 3 and batch_first else 0)


def _get_activation_fn(activation):
    """The function that a name stands for; other packages' layers use it, too."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _activation(activation):
    return _get_activation_fn(activation) if isinstance(activation, str) else activation


def _copies(module, count):
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _Layer(Module):
    """What the layers of encoder and decoder share: all but their attentions to other things."""

    __constants__ = ["norm_first"]
    _attentions = ("self_attn",)  # each a block, before that of the two linear layers

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _around(self, norm, x, block):
        """The block with its shortcut; the norm comes first or last."""
        if self.norm_first:
            return x + block(norm(x))
        return norm(x + block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        attended = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(attended[0])

    def _forward_network(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a network of two layers, each with a shortcut, dropout and a norm.

    Args:
        d_model, nhead (int): size of the vectors, and heads of the attention.
        dim_feedforward (int): size between the two layers.
        dropout (float): probability, of all dropouts.
        activation (str or callable): "relu", "gelu" or a function of a Tensor.
        layer_norm_eps (float): of the norms.
        batch_first (bool): shapes are (batch, steps, d_model), not (steps, batch, d_model).
        norm_first (bool): each norm stands before its block, not behind the shortcut.
        bias (bool): of linear layers and norms.
        device, dtype: of the parameters.

    Example:
        >>> layer = facula.nn.TransformerEncoderLayer(d_model=8, nhead=2)
        >>> layer(facula.rand(10, 32, 8)).shape
        facula.Size([10, 32, 8])
    """

    def __getstate__(self):
        # PyTorch, which may read the pickle, keeps a number for the functions that it knows best.
        known = ((F.relu, ReLU), (F.gelu, GELU))
        numbers = [
            number
            for number, (function, kind) in enumerate(known, 1)
            if self.activation is function or isinstance(self.activation, kind)
        ]
        return {**super().__getstate__(), "activation_relu_or_gelu": sum(numbers)}

    def forward(
        self,
        src: facula.Tensor,
        src_mask: facula.Tensor | None = None,
        src_key_padding_mask: facula.Tensor | None = None,
        is_causal: bool = False,
    ) -> facula.Tensor:
        """Encode `src`; masks as for :class:`MultiheadAttention`."""
        padding = F._canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            F._none_or_dtype(src_mask),
            "src_mask",
            src.dtype,
        )
        mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)
        x = self._around(self.norm1, src, lambda x: self._sa_block(x, mask, padding, is_causal))
        return self._around(self.norm2, x, self._ff_block)

    def _ff_block(self, x):
        return self.dropout2(self._forward_network(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a network of two layers.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype: as for :class:`TransformerEncoderLayer`.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: facula.Tensor,
        memory: facula.Tensor,
        tgt_mask: facula.Tensor | None = None,
        memory_mask: facula.Tensor | None = None,
        tgt_key_padding_mask: facula.Tensor | None = None,
        memory_key_padding_mask: facula.Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> facula.Tensor:
        """Decode `tgt` with the encoder's output `memory`; masks of each as for the encoder."""

        def attend_to_memory(x):
            return self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        x = self._around(
            self.norm1,
            tgt,
            lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
        )
        x = self._around(self.norm2, x, attend_to_memory)
        return self._around(self.norm3, x, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        attended = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        return self.dropout2(attended[0])

    def _ff_block(self, x):
        return self.dropout3(self._forward_network(x))


class TransformerEncoder(Module):
    """Several encoder layers, one after the other.

    Args:
        encoder_layer (TransformerEncoderLayer): is copied, with its values.
        num_layers (int): how many.
        norm (Module): of the result, or None.
        enable_nested_tensor, mask_check (bool): kept; padding is always computed.
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer,
        num_layers: int,
        norm=None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        _keep(self, num_layers=num_layers)
        self.norm = norm
        _keep(
            self,
            enable_nested_tensor=enable_nested_tensor,
            use_nested_tensor=False,
            mask_check=mask_check,
        )

    def forward(
        self,
        src: facula.Tensor,
        mask: facula.Tensor | None = None,
        src_key_padding_mask: facula.Tensor | None = None,
        is_causal: bool | None = None,
    ) -> facula.Tensor:
        """Encode `src`; `is_causal` None: found by looking at the mask."""
        padding = F._canonical_mask(
            src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(mask), "mask", src.dtype
        )
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, False)
        first = self.layers[0]
        batch_first = getattr(getattr(first, "self_attn", None), "batch_first", False)
        causal = _is_causal_mask(mask, is_causal, _length(src, batch_first))
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Several decoder layers, one after the other.

    Args:
        decoder_layer (TransformerDecoderLayer): is copied, with its values.
        num_layers (int): how many.
        norm (Module): of the result, or None.
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers: int, norm=None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        _keep(self, num_layers=num_layers)
        self.norm = norm

    def forward(
        self,
        tgt: facula.Tensor,
        memory: facula.Tensor,
        tgt_mask: facula.Tensor | None = None,
        memory_mask: facula.Tensor | None = None,
        tgt_key_padding_mask: facula.Tensor | None = None,
        memory_key_padding_mask: facula.Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> facula.Tensor:
        """Decode `tgt` with the encoder's output `memory`."""
        first = self.layers[0]
        batch_first = getattr(getattr(first, "self_attn", None), "batch_first", False)
        causal = _is_causal_mask(tgt_mask, tgt_is_causal, _length(tgt, batch_first))
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder and a decoder.

    Args:
        d_model, nhead (int): size of the vectors, and heads of the attentions.
        num_encoder_layers, num_decoder_layers (int): how many of each.
        dim_feedforward, dropout, activation: as for :class:`TransformerEncoderLayer`.
        custom_encoder, custom_decoder (Module): used in place of those made here, or None.
        layer_norm_eps, batch_first, norm_first, bias, device, dtype: as for the layers.

    Shape: src (steps, batch, d_model), tgt likewise with steps of its own, or with the batch first,
        or without a batch; the result is as tgt.

    Example:
        >>> model = facula.nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1)
        >>> model(facula.rand(10, 3, 8), facula.rand(20, 3, 8)).shape
        facula.Size([20, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)

        def make(layer_class, network_class, count):
            layer = layer_class(*sizes, batch_first, norm_first, bias, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            return network_class(layer, count, norm)

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = make(TransformerEncoderLayer, TransformerEncoder, num_encoder_layers)
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = make(TransformerDecoderLayer, TransformerDecoder, num_decoder_layers)
        self._reset_parameters()
        _keep(self, d_model=d_model, nhead=nhead, batch_first=batch_first)

    def forward(
        self,
        src: facula.Tensor,
        tgt: facula.Tensor,
        src_mask: facula.Tensor | None = None,
        tgt_mask: facula.Tensor | None = None,
        memory_mask: facula.Tensor | None = None,
        src_key_padding_mask: facula.Tensor | None = None,
        tgt_key_padding_mask: facula.Tensor | None = None,
        memory_key_padding_mask: facula.Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> facula.Tensor:
        """Encode `src` and decode `tgt` with the result.

        Raises:
            RuntimeError: batches that differ, or vectors of another size than d_model.
        """
        batched = src.dim() == 3
        batch = 0 if self.batch_first else 1
        if src.dim() != tgt.dim() or (batched and src.size(batch) != tgt.size(batch)):
            raise RuntimeError(
                "the batch number of src and tgt must be equal; got shapes "
                f"{tuple(src.shape)} and {tuple(tgt.shape)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError(
                f"the feature number of src and tgt must be equal to d_model, {self.d_model}; got "
                f"{src.size(-1)} and {tgt.size(-1)}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask of a sequence: 0 on and below the diagonal, -inf above.

        Args:
            sz (int): the number of steps.
            device, dtype: of the mask.
        """
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self):
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)

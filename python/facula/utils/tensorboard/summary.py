"""Summaries of parameters and results, for TensorBoard's table of runs."""

from __future__ import annotations

import facula
from facula.utils.tensorboard import _encoding as enc

# The numbers of fields and kinds are those of tensorboard/plugins/hparams (plugin_data.proto,
# api.proto) and of google/protobuf/struct.proto.
_STRING, _FLOAT64 = 1, 3
_SUCCESS = 1


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """The three Summary messages (bytes) that tell of a run's parameters and results.

    Args:
        hparam_dict (dict): numbers, bools, texts or tensors of one element, by name; None is left
            out.
        metric_dict (dict): results by name; the numbers themselves are scalars of that name.
        hparam_domain_discrete (dict): lists of the values that a parameter may have, by name.

    Returns:
        tuple of bytes: the experiment, the start and the end of its session.

    Raises:
        TypeError: no dictionaries; a list whose items are not of its parameter's type.
        ValueError: a parameter of another type.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    _check_domains(domains, hparam_dict)
    values = {name: _plain(value) for name, value in hparam_dict.items() if value is not None}
    infos = [_parameter(name, value, domains.get(name)) for name, value in values.items()]
    infos += [enc.block(5, enc.block(1, enc.block(2, name))) for name in metric_dict]
    start = [enc.block(1, enc.block(1, n) + enc.block(2, _value(v))) for n, v in values.items()]
    return (
        _summary("experiment", 2, b"".join(infos)),
        _summary("session_start_info", 3, b"".join(start)),
        _summary("session_end_info", 4, enc.integer(1, _SUCCESS)),
    )


def _check_domains(domains, parameters):
    for name, values in domains.items():
        fits = name in parameters and isinstance(values, list)
        if not fits or not all(isinstance(value, type(parameters[name])) for value in values):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                f"hparam_dict[{name}]."
            )


def _plain(value):
    """A parameter as float or text."""
    if isinstance(value, facula.Tensor):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str):
        return value
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _value(value):
    """A google.protobuf.Value."""
    return enc.block(3, value) if isinstance(value, str) else enc.double(2, value)


def _parameter(name, value, domain):
    """A field of an experiment: what one parameter is, and may be."""
    kind = _STRING if isinstance(value, str) else _FLOAT64
    info = enc.block(1, name) + enc.integer(4, kind)
    if domain is not None:
        info += enc.block(5, b"".join(enc.block(1, _value(_plain(one))) for one in domain))
    return enc.block(4, info)


def _summary(name, field, content):
    data = enc.block(1, "hparams") + enc.block(2, enc.block(field, content))
    return enc.block(1, enc.block(1, f"_hparams_/{name}") + enc.block(9, enc.block(1, data)))

"""Anomaly mode, errors that name lines, and the search for NaN."""

import warnings

import facula
import pytest
from facula.autograd import detect_anomaly, locate_nan, set_detect_anomaly
from facula.autograd.nan_locator import NotFiniteError


def leaf(*values):
    return facula.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def test_nan_in_backward_names_the_node_and_its_forward_line():
    x = leaf(0.0)
    with set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = x.sqrt() * 0  # the line to be named
        with pytest.raises(
            RuntimeError, match="'SqrtBackward0' returned nan values in its output 0"
        ):
            y.sum().backward()
    assert any("the line to be named" in str(w.message) for w in caught)


def test_without_forward_in_the_mode_the_warning_says_so():
    y = leaf(0.0).sqrt() * 0
    with set_detect_anomaly(True), pytest.warns(UserWarning, match="is not known"):
        with pytest.raises(RuntimeError, match="nan"):
            y.sum().backward()


def test_an_error_of_a_function_is_traced_and_passes():
    class Failing(facula.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    with pytest.warns(UserWarning, match="Error detected in FailingBackward"):
        with set_detect_anomaly(True), pytest.raises(KeyError, match="mine"):
            Failing.apply(leaf()).sum().backward()


def test_detect_anomaly_warns_and_ends():
    with pytest.warns(UserWarning, match="which is slow"):
        with detect_anomaly():
            assert facula.is_anomaly_enabled()
    assert not facula.is_anomaly_enabled()


def test_second_derivatives_name_what_induced_them():
    x = leaf(0.0)
    with set_detect_anomaly(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = (x * x).sqrt()
        (first,) = facula.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (second,) = facula.autograd.grad(first.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="nan"):
            facula.autograd.grad((second * 0).sum(), x)
    del y
    assert any("was made by the backward of" in str(w.message) for w in caught)


def changed_after_saving():
    x = leaf()
    y = x * 1
    z = y.sin()  # saves
    y.mul_(2)  # changes
    return z


def test_the_version_error_names_both_operators():
    with pytest.raises(RuntimeError, match="by SinBackward0.*changed by aten::mul_"):
        changed_after_saving().sum().backward()


def test_in_anomaly_mode_the_version_error_names_both_lines():
    first = changed_after_saving.__code__.co_firstlineno
    with set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError) as caught:
            changed_after_saving().sum().backward()
    text = str(caught.value)
    assert f"by SinBackward0 at {__file__}:{first + 3}" in text
    assert f"{__file__}:{first + 4}" in text.split("last changed by")[1]


def test_locate_nan_in_forward_names_operator_line_and_inputs():
    x = leaf(1.0, -1.0)
    with locate_nan(), pytest.raises(NotFiniteError) as caught:
        y = x * 2
        y.log()
    error = caught.value
    assert (error.operator, error.phase, error.node) == ("aten.log.default", "forward", None)
    assert error.line.startswith(__file__)
    assert "min -2, max 2" in error.inputs[0]


def test_locate_nan_names_the_module():
    class Bad(facula.nn.Module):
        def forward(self, x):
            return x / 0

    model = facula.nn.Sequential(facula.nn.Identity(), Bad())
    with locate_nan(model=model), pytest.raises(NotFiniteError) as caught:
        model(facula.ones(2))
    assert caught.value.module == "1 (Bad)"
    with locate_nan(check_inf=False):
        model(facula.ones(2))


def test_locate_nan_in_backward_names_the_node_and_the_forward_line():
    x = leaf(0.0)
    with locate_nan(), pytest.raises(NotFiniteError) as caught:
        y = x.sqrt()
        y.sum().backward()
    error = caught.value
    assert error.phase == "backward" and error.node == "SqrtBackward0"
    assert error.line.startswith(__file__)


def test_locate_nan_lets_given_nan_pass():
    with locate_nan():
        (facula.tensor([float("nan")]) * 2).exp()

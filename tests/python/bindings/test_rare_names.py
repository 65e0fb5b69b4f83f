"""Methods of Tensor, Generator and Event that only some builds of PyTorch can carry out."""

import facula
import pytest

X = facula.arange(24).reshape(2, 3, 4)
PAIR = facula.tensor([0, 1])


@pytest.mark.parametrize(
    "positions, dims, expected",
    [
        (1, 2, X[:, 2]),
        (-1, slice(1, 3), X[..., 1:3]),
        (0, [0, 1], X),
        (1, (0, 1), X[:, [0, 1]]),
        ((0, 2), (1, 2), X[1, :, 2]),
        ([0, 1], [PAIR, PAIR], X[PAIR, PAIR]),
        ((0, 2), (slice(None), PAIR), X[:, :, PAIR]),
        (((0, 1),), (PAIR,), X.flatten(0, 1)[:2]),
        ((0, (1, 2)), (0, PAIR), X[0, 0, :2]),
        ((0, 0), (0, 1), X[0]),
        ((), (), X),
    ],
)
def test_index_takes_positions(positions, dims, expected):
    assert facula.equal(X.index(positions, dims), expected)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: X.index((0, 1), (0,)), TypeError, "as many indices as positions"),
        (lambda: X.index("a", 0), TypeError, "positions that are ints"),
        (lambda: X.index(5, 0), IndexError, "from -3 to 2"),
        (lambda: X.to_mkldnn(), RuntimeError, "oneDNN"),
        (lambda: X.to_padded_tensor(0.0), NotImplementedError, "a nested tensor"),
        (lambda: facula.Generator().graphsafe_get_state(), NotImplementedError, "captured graph"),
        (lambda: facula.Generator().graphsafe_set_state(0), NotImplementedError, "captured graph"),
        (lambda: facula.Generator().philox_state(4), NotImplementedError, "captured graph"),
        (lambda: facula.Event.from_ipc_handle("cpu", b""), NotImplementedError, "not shared"),
    ],
)
def test_what_is_not_there_says_so(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_numpy_of_a_leaf_that_requires_grad_is_given_without_recording():
    x = facula.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with facula.no_grad():
        assert x.view(-1).numpy().tolist() == [1, 1, 1]


def test_native_backtrace_has_a_line_for_each_frame():
    text = facula.utils.get_cpp_backtrace(0, 2)
    assert [line.partition(":")[0] for line in text.splitlines()] == ["frame #0", "frame #1"]
    assert len(facula.utils.get_cpp_backtrace().splitlines()) > 2
    with pytest.raises(TypeError, match="expected an integer as frames_to_skip; got str"):
        facula.utils.get_cpp_backtrace("a")


def test_autocast_answers_for_devices_that_are_not_there():
    for kind in ("mps", "xpu", "hpu"):
        assert facula.amp.is_autocast_available(kind)
        assert not facula.is_autocast_enabled(kind)
    assert facula.get_autocast_dtype("xpu") == facula.float16
    assert facula.get_autocast_dtype("hpu") == facula.bfloat16
    with pytest.raises(RuntimeError):
        facula.is_autocast_enabled("nothing")


def test_types_of_torchscript_are_compared_printed_and_taken_apart():
    ints = facula.ListType(facula.IntType.get())
    assert ints == facula.ListType.ofInts() and ints != facula.ListType.ofFloats()
    assert repr(facula.DictType(facula.StringType.get(), ints)) == "Dict[str, List[int]]"
    assert repr(facula.OptionalType.ofTensor()) == "Optional[Tensor]"
    assert facula.IntType.get().isSubtypeOf(facula.OptionalType(facula.IntType.get()))
    assert not facula.IntType.get().isSubtypeOf(facula.FloatType.get())
    assert facula.TensorType.create_from_tensor(X).sizes() == [2, 3, 4]
    with pytest.raises(TypeError, match="expected types"):
        facula.ListType(3)

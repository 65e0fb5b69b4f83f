"""Datapipes beside PyTorch: what expressions give, or the class of the error."""

import json
import pickle

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

EXPRESSIONS = """
s|list(s)|len(s)|list(s.batch(3))|list(s.batch(3, drop_last=True))|len(s.batch(3))
list(s.batch(3).batch(2).unbatch(unbatch_level=-1))|list(s.batch(3).unbatch(unbatch_level=2))
list(s.map(abs))|list(t.map(neg, input_col=0))|list(t.map(add, input_col=[0, 1]))
list(t.map(add, input_col=[0, 1], output_col=2))|list(t.map(neg, input_col=0, output_col=-1))
t.map(neg, output_col=1)|t.map(neg, input_col=0, output_col=[1, 2])|s.map(add)|s.map(zero)
list(d.map(neg, input_col='a', output_col='c'))|list(s.filter(odd))|list(s.filter(neg))
list(t.filter(odd, input_col=0))|s.fork(2)|[list(x) for x in s.fork(3)]|s.fork(0)|s.fork(1)
list(s.fork(2, buffer_size=3)[0])|s.fork(2, copy='x')|len(s.fork(2)[0])
[list(x) for x in s.demux(2, parity)]|list(s.demux(2, parity, buffer_size=1)[0])
list(s.demux(2, neg)[0])|s.demux(0, parity)|list(s.demux(2, none)[0])
list(s.demux(2, none, drop_none=True)[0])|list(s.mux(w(range(3))))|list(s.mux(s))
list(s.zip(w(range(3))))|list(s.concat(w(range(3))))|len(s.mux(w(range(3))))|s.zip(3)
i.Zipper()|i.Concater()|i.Concater([1])|i.Multiplexer()|list(s.groupby(third))
list(s.groupby(third, group_size=2))|list(s.groupby(third, group_size=2, keep_key=True))
list(s.groupby(third, buffer_size=4, group_size=3, guaranteed_group_size=2))
list(s.groupby(third, buffer_size=4, group_size=3, drop_remaining=True))
list(s.groupby(third, buffer_size=4, group_size=3))|list(s.groupby(third, buffer_size=5))
list(s.groupby(third, group_size=2, guaranteed_group_size=3))|list(s.shuffle())
list(s.shuffle().set_seed(3))|list(s.shuffle(buffer_size=3).set_seed(3))|s.shuffle(buffer_size=0)
list(s.shuffle().set_shuffle(False))|list(w(range(100)).shuffle(buffer_size=20).set_seed(5))
list(s.batch(4).collate())|list(s.collate(collate_fn=neg))|list(i.Sampler(s))|s[0]|s.foo|m.foo
len(w(iter([1])))|len(s.filter(odd))|list(m)|list(m.map(neg))|list(m.batch(2))|m.batch(2)[5]
list(m.shuffle())|list(m.shuffle().set_seed(1))|list(m.zip(m))|list(m.concat(m))|m.concat(m)[9]
m.zip(m)[9]|list(p.map.Shuffler(m, indices=[2, 0]).set_seed(0))|p.map.Concater()|p.map.Zipper(3)
list(pickle.loads(pickle.dumps(s.batch(2))))|s.reset()|s.set_getstate_hook(None)
list(i.FileLister(folder, recursive=True))|list(i.FileLister(folder, '*.txt'))
list(w([folder]).list_files(recursive=True).open_files(mode='rb').read_from_stream())
list(i.FileLister(folder, recursive=True).open_files(mode='b').routed_decode())
list(i.FileLister(folder).open_files().read_from_stream(chunk=4))|i.FileOpener(s, mode='q')
list(l.utils.data.DataLoader(s.shuffle(), batch_size=4, shuffle=True, generator=g))
list(l.utils.data.DataLoader(s.shuffle().map(neg), batch_size=4, generator=g))
list(l.utils.data.DataLoader(s.shuffle(), batch_size=4, shuffle=False))
list(l.utils.data.DataLoader(m, batch_size=2))|list(l.utils.data.DataLoader(m, shuffle=True))
list(l.utils.data.DataLoader(s.shuffle().sharding_filter(), num_workers=2, generator=g))
sharded(s.sharding_filter(), (3, 1))|sharded(s.sharding_filter(), (3, 3))
sharded(s.sharding_filter(), (2, 1, P.MULTIPROCESSING), (3, 2, P.DISTRIBUTED))
sharded(s.sharding_filter(), (2, 1), (3, 2, P.DISTRIBUTED))
names(l.utils.data.graph.traverse_dps(s.map(neg).zip(t)))|l.utils.data.graph.traverse_dps(3)
l.utils.data.DataChunk([1, 2]).as_str('x')|first_of_two(s)
""".replace("\n", "|").strip("|")


def neg(x):
    return -x


def add(x, y):
    return x + y


def zero():
    return 0


def odd(x):
    return x % 2 == 1


def parity(x):
    return x % 2


def none(x):
    return None


def third(x):
    return x % 3


def sharded(pipe, *parts):
    for part in parts:
        pipe.apply_sharding(*part)
    return list(pipe), len(pipe)


def names(graph):
    return [(str(pipe), names(below)) for pipe, below in graph.values()]


def first_of_two(pipe):
    first, second = iter(pipe), iter(pipe)
    next(first)
    next(second)
    return next(first)


def plain(value, lib):
    if isinstance(value, lib.Tensor):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v, lib) for v in value]
    return value if isinstance(value, (int, str, bytes, dict, type(None))) else str(value)


def answer(lib, expression, folder):
    lib.manual_seed(0)
    pipes = lib.utils.data.datapipes
    known = dict(globals(), l=lib, p=pipes, i=pipes.iter, w=pipes.iter.IterableWrapper)
    known.update(folder=folder, g=lib.Generator().manual_seed(1), pickle=pickle)
    known["P"] = pipes.iter.sharding.SHARDING_PRIORITIES
    known.update(s=known["w"](range(10)), t=known["w"]([(1, 2, 3), (4, 5, 6)]))
    known.update(d=known["w"]([{"a": 1, "b": 2}]), m=pipes.map.SequenceWrapper([3, 4, 5]))
    try:
        return plain(eval(expression, known), lib)
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("expression", EXPRESSIONS.split("|"))
def test_datapipes_answer_as_in_pytorch(expression, tmp_path):
    import facula.utils.data.graph
    import torch.utils.data.graph  # noqa: F401

    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "sub" / "b.json").write_text(json.dumps({"x": 1}))
    ours, theirs = (answer(lib, expression, str(tmp_path)) for lib in (facula, torch))
    assert ours == theirs

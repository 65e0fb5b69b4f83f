"""Modules that go into packages, for the tests of facula alone and beside PyTorch."""

FILES = {
    "shapes/__init__.py": "from .area import square\n",
    "shapes/area.py": "from . import constants\n\n\ndef square(x):\n"
    "    return x * x * constants.SCALE\n",
    "shapes/constants.py": "SCALE = 2\n",
    "shapes/words.txt": "one two",
    "network.py": '''\
import torch
from torch import nn
from shapes import square
import plotting


class Net(nn.Module):
    """Weights that a program trained."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("steps", torch.arange(4))

    def forward(self, x):
        return square(self.linear(x))

    def plot(self):
        return plotting.draw(self)
''',
    "plotting.py": "def draw(x):\n    return 'drawn'\n",
    "tagged.py": """\
class Tagged:
    def __init__(self, tag):
        self.tag = tag

    def __reduce_package__(self, exporter):
        return rebuild, (self.tag, exporter.get_unique_id())


def rebuild(importer, tag, number):
    return Tagged((tag, number, type(importer).__name__))
""",
}

EXPORT = """
import sys
sys.path.insert(0, {folder!r})
import {lib} as torch
from {lib}.package import PackageExporter
import network, tagged
torch.manual_seed(0)
net = network.Net()
shared = torch.arange(6.0)
with PackageExporter({path!r}) as exporter:
    exporter.intern(["network", "shapes.**", "tagged"])
    exporter.mock("plotting")
    exporter.save_module("shapes")
    exporter.save_pickle("model", "net.pkl", net)
    exporter.save_pickle("model", "views.pkl", [shared, shared[2:], torch.float16, torch.Size([2])])
    exporter.save_pickle("model", "tagged.pkl", tagged.Tagged("a"), pickle_protocol=4)
    exporter.save_text("notes", "about.txt", "caf\\u00e9")
    exporter.save_binary("notes", "raw.bin", bytes(range(7)))
    late = "from shapes.area import square\\nnine = square(3) / 2"
    exporter.save_source_string("extra.late", late)
print(net(torch.ones(1, 3)).tolist())
"""
IMPORT = """
import {lib} as torch
from {lib}.package import PackageImporter, is_from_package
importer = PackageImporter({path!r})
net = importer.load_pickle("model", "net.pkl")
print(net(torch.ones(1, 3)).tolist())
print(type(net).__module__ == importer.id() + ".network", is_from_package(net), net.steps.tolist())
try:
    net.plot()
except NotImplementedError:
    print("refused")
a, b, dtype, size = importer.load_pickle("model", "views.pkl")
a[2] = 7
print(b.tolist(), dtype == torch.float16, tuple(size))
print(importer.load_pickle("model", "tagged.pkl").tag)
print(ascii(importer.load_text("notes", "about.txt")), importer.load_binary("notes", "raw.bin"))
print(importer.import_module("extra.late").nine, importer.import_module("shapes").__name__)
print(importer.file_structure(exclude=[".data/**"]))
"""


def write_modules(folder):
    """Puts the modules into a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

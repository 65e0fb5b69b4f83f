"""The package's names for type checkers; at run time they are found when first asked for."""

# Names that Python functions share with operators: mypy takes the first meaning, others the last.
# mypy: ignore-errors
import builtins
from typing import Any

from facula import (
    amp as amp,
    autograd as autograd,
    cuda as cuda,
    distributions as distributions,
    fft as fft,
    functional as functional,
    library as library,
    linalg as linalg,
    nn as nn,
    ops as ops,
    optim as optim,
    overrides as overrides,
    random as random,
    return_types as return_types,
    serialization as serialization,
    special as special,
    storage as storage,
    utils as utils,
    version as version,
)
from facula.functional import *  # isort: skip
from facula._C import *
from facula._C import Generator as Generator
from facula._C import Tensor as Tensor
from facula._legacy import BFloat16Tensor as BFloat16Tensor
from facula._legacy import BoolTensor as BoolTensor
from facula._legacy import ByteTensor as ByteTensor
from facula._legacy import CharTensor as CharTensor
from facula._legacy import DoubleTensor as DoubleTensor
from facula._legacy import FloatTensor as FloatTensor
from facula._legacy import HalfTensor as HalfTensor
from facula._legacy import IntTensor as IntTensor
from facula._legacy import LongTensor as LongTensor
from facula._legacy import ShortTensor as ShortTensor
from facula._linalg_utils import eig as eig
from facula._linalg_utils import lstsq as lstsq
from facula._linalg_utils import matrix_rank as matrix_rank
from facula._linalg_utils import qr as qr
from facula._linalg_utils import solve as solve
from facula._linalg_utils import cholesky as cholesky
from facula._linalg_utils import symeig as symeig
from facula._operators.functions import *
from facula._tensor_str import get_printoptions as get_printoptions
from facula._tensor_str import set_printoptions as set_printoptions
from facula.amp import *
from facula.autograd.grad_mode import enable_grad as enable_grad
from facula.autograd.grad_mode import inference_mode as inference_mode
from facula.autograd.grad_mode import no_grad as no_grad
from facula.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from facula.functional import *
from facula.random import *
from facula.serialization import load as load
from facula.serialization import save as save
from facula.storage import TypedStorage as TypedStorage
from facula.utils.summary import summary as summary

__version__: builtins.str
e: builtins.float
pi: builtins.float
inf: builtins.float
nan: builtins.float
newaxis: None
default_generator: Generator

def __getattr__(name: builtins.str) -> Any: ...

"""Questions about the machine, and the instruction set that the environment asks for."""

import os
import subprocess
import sys

import facula.backends
import pytest

SETS = ("DEFAULT", "AVX2", "AVX512")


def capability(**environment):
    """What a fresh process says, and what it writes to stderr."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_CPU_CAPABILITY")}
    code = "import facula.backends; print(facula.backends.cpu.get_cpu_capability())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_the_instruction_set_has_pytorchs_name():
    assert facula.backends.cpu.get_cpu_capability() in SETS


@pytest.mark.parametrize("variable", ["FACULA_CPU_CAPABILITY", "ATEN_CPU_CAPABILITY"])
@pytest.mark.parametrize("wanted", SETS)
def test_the_environment_asks_for_a_set(variable, wanted):
    """It gets that one, or the best that there is."""
    best, _ = capability()
    expected = SETS[min(SETS.index(wanted), SETS.index(best))]
    assert capability(**{variable: wanted.lower()}) == (expected, "")


def test_an_unknown_set_is_told_of_and_not_used():
    found, text = capability(FACULA_CPU_CAPABILITY="sse9")
    assert found == capability()[0]
    assert "expected default, avx2 or avx512; got sse9" in text


def test_frozen_flags_are_set_by_their_context_managers_only():
    flags = facula.backends.cudnn
    before = flags.benchmark
    try:
        facula.backends.disable_global_flags()
        assert facula.backends.flags_frozen()
        with pytest.raises(RuntimeError, match="not allowed to set .*cudnn flags"):
            flags.benchmark = not before
        with flags.flags(benchmark=not before):
            assert flags.benchmark != before
        with getattr(facula.backends, "__allow_nonbracketed_mutation")():
            flags.benchmark = not before
        assert flags.benchmark != before and facula.backends.flags_frozen()
    finally:
        setattr(facula.backends, "__allow_nonbracketed_mutation_flag", True)
        flags.benchmark = before
    assert not facula.backends.flags_frozen()

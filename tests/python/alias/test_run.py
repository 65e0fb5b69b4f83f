"""`python -m facula run` and FACULA_AS_TORCH: ways to start a program that says `import torch`."""

import textwrap

import pytest
from alias.processes import HOME, SWITCHED_ON, run, run_code

SHOW = "import sys, torch; print(torch.__name__, torch.ones(2).sum().item(), sys.argv[1:])"


def test_a_script_gets_its_arguments_and_its_folder(tmp_path):
    (tmp_path / "beside.py").write_text("value = 5")
    script = tmp_path / "train.py"
    script.write_text(
        SHOW + "\nimport beside; print(beside.value, __name__, __file__ == sys.argv[0])"
    )
    out = run("-m", "facula", "run", str(script), "--lr", "1", "-m", "-h")
    assert out == "torch 2.0 ['--lr', '1', '-m', '-h']\n5 __main__ True\n"


def test_a_module_is_run_as_python_runs_it(tmp_path):
    package = tmp_path / "program"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(SHOW + "\nprint(__package__, __spec__.name)")
    out = run("-m", "facula", "run", "-m", "program", "-x", cwd=tmp_path)
    assert out == "torch 2.0 ['-x']\nprogram program.__main__\n"


def test_code_is_run_as_python_runs_it():
    assert run_code(SHOW, "a", "-c") == "torch 2.0 ['a', '-c']\n"


def test_a_folder_with_a_main_file_is_run(tmp_path):
    (tmp_path / "__main__.py").write_text(SHOW)
    assert run("-m", "facula", "run", str(tmp_path), "a") == "torch 2.0 ['a']\n"


def test_the_program_s_exit_status_is_the_process_s():
    run("-m", "facula", "run", "-c", "import torch, sys; sys.exit(7)", status=7)


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["missing.py"], "can't open file 'missing.py'"),
        (["-c"], "expected code after -c"),
        (["-m"], "expected a module after -m"),
    ],
)
def test_what_cannot_be_run_is_named(arguments, text):
    assert text in run("-m", "facula", "run", *arguments, status=1)


def test_a_python_that_ignores_the_environment_is_told_so(tmp_path):
    (tmp_path / "start.py").write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(HOME.parents[1])!r})
        from facula.__main__ import main
        main(["run", "-c", "pass"])
        """)
    )
    assert "-I, -E, -S" in run("-I", str(tmp_path / "start.py"), status=1)


def test_the_environment_switch_serves_any_python():
    assert run("-c", SHOW, "a", env=SWITCHED_ON) == "torch 2.0 ['a']\n"
    assert run("-m", "timeit", "-n1", "-r1", "import torch", env=SWITCHED_ON).startswith("1 loop")


@pytest.mark.parametrize("value", ["", "0"])
def test_without_the_switch_facula_keeps_its_name(value):
    code = "import sys, facula; print(facula.__name__, facula.float32, 'torch' in sys.modules)"
    environment = {**SWITCHED_ON, "FACULA_AS_TORCH": value}
    environment["PYTHONPATH"] += f":{HOME.parents[1]}"
    assert run("-c", code, env=environment) == "facula facula.float32 False\n"


def test_another_sitecustomize_is_still_run(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.marked = True")
    environment = {**SWITCHED_ON, "PYTHONPATH": f"{HOME}:{tmp_path}"}
    code = "import sys, torch; print(sys.marked, torch.__name__)"
    assert run("-c", code, env=environment) == "True torch\n"


def test_an_installed_torch_is_never_loaded(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('the other torch')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torch; print(torch.ones(1))"
    assert run_code(code) == "tensor([1.])\n"


def test_help_texts_name_the_ways_to_run():
    assert "run a program that says `import torch`" in run("-m", "facula", "--help")
    text = run("-m", "facula", "run", "--help")
    assert "FACULA_AS_TORCH=1" in text and "-m MODULE | -c CODE | SCRIPT" in text
    assert "FACULA_AS_TORCH" in run("-m", "facula", "env")
    assert run("-m", "facula", "--version").startswith("facula 0.")

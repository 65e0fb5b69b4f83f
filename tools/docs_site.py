#!/usr/bin/env python3
"""Makes the site of the documentation: puts its pages together and runs Sphinx over them.

    python tools/docs_site.py --sphinx build/docs-venv/bin/python       # make docs

Pages are those of the repository, in the places that they have there, so that their links hold; the
reference, from docstrings; and the measured speed, from the newest saved run of the bench.
"""

import argparse
import shutil
from pathlib import Path

import reference
import speed_page
from console import BUILD, ROOT, Failure, run_logged, run_main, say, shown

SOURCE, PAGES = BUILD / "docs" / "source", BUILD / "docs" / "html"
# Files and folders of the repository that are pages, or what pages show and link to.
COPIED = "docs examples ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md"
SUFFIXES = {".md", ".png", ".svg", ".py"}


def copy_pages():
    """Copies the repository's pages and pictures, and the site's own settings and first page."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    for name in COPIED.split():
        for path in [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*")):
            if path.suffix in SUFFIXES and "site" not in path.parts:
                target = SOURCE / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    for path in (ROOT / "docs" / "site").iterdir():
        shutil.copyfile(path, SOURCE / path.name)


def make(python):
    """Makes the site with the Sphinx of an environment; returns the numbers of its pages."""
    if not Path(python).exists():
        raise Failure(f"there is no {python}: python3 tools/setup.py --docs")
    copy_pages()
    pages, described, _ = reference.write(SOURCE / "reference")
    (SOURCE / "speed.md").write_text(speed_page.page(speed_page.newest()), encoding="utf-8")
    log = BUILD / "logs" / "docs.log"
    command = [python, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "2", SOURCE, PAGES]
    run_logged(command, log, "making the site")
    return pages, described


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sphinx", default=BUILD / "docs-venv" / "bin" / "python", metavar="PYTHON"
    )
    pages, described = make(parser.parse_args().sphinx)
    say(f"{shown(PAGES / 'index.html')}: a reference of {pages} modules and {described} names")
    return 0


if __name__ == "__main__":
    run_main(main)

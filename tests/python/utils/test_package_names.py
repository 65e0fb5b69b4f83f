"""Names of the package facula."""

from pathlib import Path

import facula


def test_shared_libraries_in_the_package_are_no_names_of_it():
    libraries = [file.stem for file in Path(facula.__file__).parent.glob("libfacula*")]
    assert libraries and not {*libraries} & {*dir(facula)}
    assert not any(hasattr(facula, name) for name in libraries)

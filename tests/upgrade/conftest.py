"""The program before this one."""

import pytest

from tests.support.missing_programs import skip_test
from tests.upgrade import older_program


@pytest.fixture(scope="session")
def older(tmp_path_factory):
    """The packages of the program before."""
    if not older_program.is_available():
        skip_test(f"this clone has no commit {older_program.COMMIT}")
    return older_program.build_older(tmp_path_factory.mktemp("older"))

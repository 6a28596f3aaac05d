"""The names that ``roost.app`` imports on first use."""

import subprocess
import sys

import pytest

from roost import app
from tests.support.fleets.products import environ


@pytest.mark.parametrize("name", app.__all__)
def test_exported_name_is_imported_on_first_use(name):
    assert getattr(app, name) is not None


def test_names_do_not_depend_on_the_order_of_their_imports():
    code = "from roost.app import open_reader, open_roost; print(open_roost.__name__, type(open_roost).__name__)"
    run = subprocess.run([sys.executable, "-c", code], env=environ(), capture_output=True, text=True, check=True)
    assert run.stdout == "open_roost function\n"


def test_import_of_the_package_loads_no_other_module_of_it():
    code = "import sys, roost.app; print([name for name in sys.modules if name.startswith('roost.')])"
    run = subprocess.run([sys.executable, "-c", code], env=environ(), capture_output=True, text=True, check=True)
    assert run.stdout == "['roost.app']\n"


def test_other_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'roost\.app' has no attribute 'nothing'"):
        app.nothing  # noqa: B018

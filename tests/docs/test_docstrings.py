"""The examples in docstrings of the product run, and print what they show."""

import doctest
import importlib

import pytest

from tests.tidy import repository

MODULES = [
    ".".join(path.with_suffix("").parts[1:])
    for path in repository.python_files()
    if path.parts[0] == "src" and ">>> " in repository.read(path)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_print_what_they_show(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0

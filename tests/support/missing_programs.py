"""Programs and modules that a test needs: without them it is skipped, but under CI, which installs them, it fails."""

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest


def skip_test(reason: str) -> NoReturn:
    """Skip a test that lacks a program; under CI, fail instead."""
    if "CI" in os.environ:
        pytest.fail(f"CI runs this test, but {reason}")
    pytest.skip(reason)


def require_module(name: str, *, extra: str) -> None:
    """Skip a test that lacks a module of an extra; under CI, fail instead."""
    if find_spec(name) is None:
        skip_test(f"the extra {extra} is not installed")

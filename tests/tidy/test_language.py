"""Limits for the language of the source. Never raise a limit. When a figure falls, lower its limit."""

import pytest

from tests.tidy import language
from tests.tidy.limits import FOLDER_MAX, PARTICIPLES_MAX, RELATIVE_MAX, SPEECH_MAX


def test_no_module_is_named_by_a_gerund_or_participle_alone():
    assert language.bare_modules() == []


def test_module_names_are_unique():
    assert language.repeated_modules() == {}


def test_number_of_functions_named_by_a_participle():
    assert len(language.participles()) <= PARTICIPLES_MAX


def test_share_of_relative_words_in_docstrings():
    share = language.words_per_hundred(language.RELATIVE)
    assert share <= RELATIVE_MAX, f"shorten docstrings of src/roost that have one of {sorted(language.RELATIVE)}"


def test_share_of_speech_words_in_docstrings():
    share = language.words_per_hundred(language.SPEECH)
    assert share <= SPEECH_MAX, f"rewrite docstrings of src/roost that have one of {sorted(language.SPEECH)}"


def test_number_of_modules_in_one_folder():
    full = {folder: count for folder, count in language.folder_sizes().items() if count > FOLDER_MAX}
    assert not full, f"more than {FOLDER_MAX} modules in a folder of src/roost: use a sub-package or another module"


@pytest.mark.parametrize(
    ("name", "expected"), [("told", True), ("_kept_for", True), ("feed", False), ("settle", False)]
)
def test_participles_are_recognized(name, expected):
    assert language.is_participle(name) is expected

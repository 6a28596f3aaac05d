"""Limits for the language of the source. Limits only fall: lower one when its figure falls."""

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
    assert language.words_per_hundred(language.RELATIVE) <= RELATIVE_MAX


def test_share_of_speech_words_in_docstrings():
    assert language.words_per_hundred(language.SPEECH) <= SPEECH_MAX


def test_number_of_modules_in_one_folder():
    assert max(language.folder_sizes().values()) <= FOLDER_MAX


@pytest.mark.parametrize(
    ("name", "expected"), [("told", True), ("_kept_for", True), ("feed", False), ("settle", False)]
)
def test_participles_are_recognized(name, expected):
    assert language.is_participle(name) is expected

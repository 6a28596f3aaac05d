"""The prose of documents and messages, measured. The limits only fall."""

from pathlib import Path

import pytest

from tests.tidy import identifiers, prose
from tests.tidy.limits import AVERAGE_MAX, IDENTIFIERS_MAX, SENTENCE_MAX


@pytest.mark.parametrize("page", prose.guides(), ids=str)
def test_guide_has_short_sentences_on_average(page):
    lengths = [prose.words(sentence) for sentence in prose.sentences(page)]
    assert sum(lengths) / len(lengths) <= AVERAGE_MAX


@pytest.mark.parametrize("page", prose.pages(), ids=str)
def test_page_has_no_long_sentence(page):
    assert [each for each in prose.sentences(page) if prose.words(each) > SENTENCE_MAX] == []


@pytest.mark.parametrize("page", prose.pages(), ids=str)
def test_page_has_no_word_of_the_dialect(page):
    assert prose.dialect(page) == []


def test_names_are_terms_of_the_field():
    assert len([*identifiers.definitions()]) <= IDENTIFIERS_MAX


def test_sentences_leave_out_code_tables_and_headings(tmp_path, monkeypatch):
    monkeypatch.setattr(prose.repository, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(
        "# A heading of some words\n\nOne sentence [with a link](x.md) here. And `code of many words` there.\n"
        "| a | table row |\n\n```text\nNo sentence of a block.\n```\n* An item of a list\n  that goes on.\n"
    )
    assert prose.sentences(Path("page.md")) == [
        "One sentence with a link here.",
        "And `code of many words` there.",
        "An item of a list that goes on.",
    ]
    assert [prose.words(each) for each in prose.sentences(Path("page.md"))] == [6, 3, 8]


def test_dialect_is_found_outside_of_quotations_and_code(tmp_path, monkeypatch):
    monkeypatch.setattr(prose.repository, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text('Plain words.\nWhat nobody wants.\nThe log has "somebody" and `nobody`.\n')
    assert prose.dialect(Path("page.md")) == ["page.md:2: What nobody wants."]

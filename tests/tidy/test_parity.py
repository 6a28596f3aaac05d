from collections import Counter

from tests.parity.table import PAGE, feature_tests, features, page

NUMBERS = [number for rows in features().values() for number in rows]


def test_every_feature_number_is_listed_once():
    expected = {f"S{number:03}" for number in range(1, 222)}
    assert Counter(NUMBERS) == Counter(expected)


def test_tests_and_feature_list_match():
    assert {each.feature for each in feature_tests()} == {*NUMBERS}


def test_document_lists_the_tests_of_each_feature():
    assert PAGE.read_text() == page(), "run `make parity`"

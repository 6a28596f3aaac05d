from collections import Counter

from tests.parity.table import PAGE, features, page, shown

NUMBERS = [number for rows in features().values() for number in rows]


def test_every_number_of_the_checklist_is_there_once():
    wanted = {f"S{number:03}" for number in range(1, 222)}
    assert Counter(NUMBERS) == Counter(wanted)


def test_tests_show_what_is_on_the_list_and_all_of_it():
    assert {each.feature for each in shown()} == {*NUMBERS}


def test_the_document_tells_which_tests():
    assert PAGE.read_text() == page(), "run `make parity`"

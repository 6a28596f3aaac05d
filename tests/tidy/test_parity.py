from collections import Counter

from tests.parity.table import PAGE, features, page, shown

NUMBERS = [number for rows in features().values() for number in rows]
# What is being built: tests may show it already, and the document has it when all of it is shown.
COMING = {f"S{number:03}" for number in range(108, 142)}


def test_every_number_of_the_checklist_is_there_once():
    wanted = {f"S{number:03}" for number in (*range(1, 108), *range(142, 222))}
    assert Counter(NUMBERS) == Counter(wanted)


def test_tests_show_what_is_on_the_list_and_all_of_it():
    assert {each.feature for each in shown()} - COMING == {*NUMBERS}


def test_the_document_tells_which_tests():
    assert PAGE.read_text() == page(), "run `make parity`"

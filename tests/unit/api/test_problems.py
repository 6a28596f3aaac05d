import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.problems import Problem, detail_of, problem_of
from roost.errors import StoreGone, Unavailable

PARTS = st.sampled_from(["<", ">", "<!--", "-->", "<!", "--", "-", "<br>", "<br/>", "a", "\n", " "])


def slowly(text):
    """Leave out the marks as the words say it."""
    text = re.sub(r"<br\s*/?>", "\n", text.replace("\n", " "))
    return re.sub(r"<!--.*?-->|<[^>]*>", "", text)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_marks_are_left_out_of_what_programs_read(text):
    assert detail_of(Problem(400, text, before="b")) == slowly(f"b<br /><br />\n{text}")


@pytest.mark.parametrize("part", ["<", "<!--", "<!-- >", "<!-- ><br>", "<!-->", "<br "])
def test_a_long_text_that_only_begins_marks_is_read_in_one_pass(part):
    """To look for the end of each to the end of the text would take hours."""
    assert detail_of(Problem(400, part * 200_000 + " -->"))


def test_clients_of_a_database_that_is_gone_come_back_at_different_times():
    waits = {problem_of(StoreGone("it is away")).headers["retry-after"] for _ in range(1000)}
    assert waits == set("12345")
    assert problem_of(Unavailable("later")).headers["retry-after"] == "1"

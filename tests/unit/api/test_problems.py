import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.problems import Problem, detail_of, problem_of
from roost.errors import StoreGone, Unavailable

PARTS = st.sampled_from(["<", ">", "<!--", "-->", "<!", "--", "-", "<br>", "<br/>", "a", "\n", " "])


def strip_markup(text):
    """Remove markup with plain regular expressions."""
    text = re.sub(r"<br\s*/?>", "\n", text.replace("\n", " "))
    return re.sub(r"<!--.*?-->|<[^>]*>", "", text)


@given(st.lists(PARTS, max_size=14).map("".join))
def test_markup_is_removed_from_the_detail(text):
    assert detail_of(Problem(400, text, preamble="b")) == strip_markup(f"b<br /><br />\n{text}")


@pytest.mark.parametrize("part", ["<", "<!--", "<!-- >", "<!-- ><br>", "<!-->", "<br "])
def test_long_text_of_unclosed_markup_is_read_in_one_pass(part):
    """A search for the end of each mark through the whole text would take hours."""
    assert detail_of(Problem(400, part * 200_000 + " -->"))


def test_retry_after_varies_while_the_database_is_gone():
    waits = {problem_of(StoreGone("it is away")).headers["retry-after"] for _ in range(1000)}
    assert waits == set("12345")
    assert problem_of(Unavailable("later")).headers["retry-after"] == "1"

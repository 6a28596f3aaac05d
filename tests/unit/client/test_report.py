"""The way of a report client over HTTP."""

from contextlib import closing

import pytest

from roost.client.report_http import ReportHttp
from roost.errors import BadSettings, PlacementGone
from roost.model.placement.placement_api import Answer
from tests.support.servers.scripted_server import scripted


def at(address):
    """Give the way to an address."""
    return closing(ReportHttp(address, headers={"x-auth-token": "t"}))


def test_a_question_is_asked_once_and_any_answer_is_one():
    refused = {"errors": [{"detail": "not you", "code": ""}]}
    with scripted((403, refused), (503, None), (200, b"<html>")) as (address, asked), at(address) as http:
        assert http.ask("GET", "/a?b=c", version="1.14") == Answer(403, refused)
        assert http.ask("PUT", "/x", {"y": 1}, version="1.36") == Answer(503, None)
        assert http.ask("GET", "/z", version="1.36") == Answer(200, None)
    assert asked == [("GET", "/below/a?b=c", None), ("PUT", "/below/x", {"y": 1}), ("GET", "/below/z", None)]


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again():
    with scripted((204, None), None, (204, None)) as (address, asked), at(address) as http:
        assert http.ask("PUT", "/x", version="1.36") == Answer(204, None, is_repeated=False)
        # What is not known is whether the second was carried out before the line was cut.
        assert http.ask("PUT", "/y", version="1.36") == Answer(204, None, is_repeated=True)
        assert [path for _, path, _ in asked] == ["/below/x", "/below/y", "/below/y"]


def test_a_new_connection_without_an_answer_is_given_up():
    with scripted(None) as (address, asked), at(address) as http:
        with pytest.raises(PlacementGone):
            http.ask("PUT", "/x", version="1.36")
        assert len(asked) == 1


def test_where_nothing_listens_nobody_answers():
    with scripted() as (address, _):
        pass
    with at(address) as http, pytest.raises(PlacementGone, match="refused"):
        http.ask("GET", "/", version="1.36")


@pytest.mark.parametrize(
    "address", ["", "host:80", "ftp://host", "http://user:secret@host", "http://[", "http://host:x"]
)
def test_an_address_that_is_none_names_its_setting(address):
    with pytest.raises(BadSettings, match=r"^agent\.placement_url: must be http"):
        ReportHttp(address, headers={}, setting="agent.placement_url")

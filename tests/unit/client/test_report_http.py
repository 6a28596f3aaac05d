"""The connection of a report client over HTTP."""

from contextlib import closing

import pytest

from roost.client.report_http import ReportHttp
from roost.errors import BadSettings, PlacementGone
from roost.model.placement.placement_api import Answer
from tests.support.servers.scripted_server import scripted_server


def connect(address):
    """Return a connection to an address, for a with block."""
    return closing(ReportHttp(address, headers={"x-auth-token": "t"}))


def test_request_is_sent_once_and_any_status_is_an_answer():
    refusal = {"errors": [{"detail": "not you", "code": ""}]}
    with (
        scripted_server((403, refusal), (503, None), (200, b"<html>")) as (address, requests),
        connect(address) as http,
    ):
        assert http.ask("GET", "/a?b=c", version="1.14") == Answer(403, refusal)
        assert http.ask("PUT", "/x", {"y": 1}, version="1.36") == Answer(503, None)
        assert http.ask("GET", "/z", version="1.36") == Answer(200, None)
    assert requests == [("GET", "/below/a?b=c", None), ("PUT", "/below/x", {"y": 1}), ("GET", "/below/z", None)]


def test_closed_connection_is_reopened_and_the_answer_marked_as_repeated():
    with scripted_server((204, None), None, (204, None)) as (address, requests), connect(address) as http:
        assert http.ask("PUT", "/x", version="1.36") == Answer(204, None, is_repeated=False)
        # It is unknown whether the server executed the second request before the connection broke.
        assert http.ask("PUT", "/y", version="1.36") == Answer(204, None, is_repeated=True)
        assert [path for _, path, _ in requests] == ["/below/x", "/below/y", "/below/y"]


def test_new_connection_without_an_answer_is_an_error():
    with scripted_server(None) as (address, requests), connect(address) as http:
        with pytest.raises(PlacementGone):
            http.ask("PUT", "/x", version="1.36")
        assert len(requests) == 1


def test_refused_connection_is_an_error():
    with scripted_server() as (address, _):
        pass
    with connect(address) as http, pytest.raises(PlacementGone, match="refused"):
        http.ask("GET", "/", version="1.36")


@pytest.mark.parametrize(
    "address", ["", "host:80", "ftp://host", "http://user:secret@host", "http://[", "http://host:x"]
)
def test_invalid_url_error_names_its_setting(address):
    with pytest.raises(BadSettings, match=r"^agent\.placement_url: must be http"):
        ReportHttp(address, headers={}, setting="agent.placement_url")

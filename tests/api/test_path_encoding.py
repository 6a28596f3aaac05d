"""Non-ASCII names in paths."""

from urllib.parse import quote

import pytest

from tests.support.servers.servers import ADMIN, serve


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serve(noun="up", folder=tmp_path_factory.mktemp("paths")) as server:
        yield server


@pytest.mark.parametrize("name", ["größe", "日本", "a b", "Ã¼"])
def test_path_names_are_decoded_as_utf_8(server, name):
    path = f"/v1/flavors/{quote(name)}"
    assert server.ask("PUT", path, {"vcpus": 1})[2]["name"] == name
    assert server.ask("GET", path)[2]["name"] == name
    assert server.ask("POST", "/v1/decisions", {"flavor": name})[0] == 201
    listed = server.ask("GET", "/v1/flavors")[2]["flavors"]
    assert name in [each["name"] for each in listed]
    assert server.ask("DELETE", path)[0] == 204


def test_path_that_is_not_utf_8_is_a_bad_request(server):
    status, headers, body = server.ask("PUT", "/v1/flavors/gr%F6%DFe", {"vcpus": 1})
    assert (status, headers["content-type"], body["detail"]) == (
        400,
        "application/problem+json",
        "The path is not UTF-8.",
    )


def test_placement_paths_are_decoded_as_latin_1(server):
    status, _, body = server.ask("GET", "/placement/traits/CUSTOM_%F6", headers=ADMIN)
    assert (status, "CUSTOM_ö" in str(body)) == (404, True)

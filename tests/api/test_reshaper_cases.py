"""The cases of ``reshaper.yaml``: a sequence of requests with the expected responses."""

import re
from pathlib import Path

import pytest
import yaml

METHODS = ("GET", "PUT", "POST", "DELETE")
CASES = yaml.safe_load(Path(__file__).with_name("reshaper.yaml").read_text(encoding="utf-8"))
KEYS = {*METHODS, "name", "data", "status", "request_headers", "response_strings", "response_json_paths"}


def value_at(document, path):
    """Return the value at a JSON path of names and indexes, or None."""
    for name, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        document = document[int(place)] if place else (document or {}).get(name)
    return document


@pytest.mark.shows("S135")
def test_each_case_gets_the_expected_response(api):
    for case in CASES["tests"]:
        assert case.keys() <= KEYS, case["name"]
        ((method, path),) = [(method, case[method]) for method in METHODS if method in case]
        headers = {**CASES["defaults"]["request_headers"], **case.get("request_headers", {})}
        response = api.ask(method, path, case.get("data"), headers=headers)
        assert response.status == case["status"], (case["name"], response.body)
        for text in case.get("response_strings", ()):
            assert text in response.text, case["name"]
        for where, value in case.get("response_json_paths", {}).items():
            assert value_at(response.json, where) == value, (case["name"], where, response.json)

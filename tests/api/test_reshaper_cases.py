"""The cases of ``reshaper.yaml``: one request after the other, each with what its answer must be."""

import re
from pathlib import Path

import pytest
import yaml

METHODS = ("GET", "PUT", "POST", "DELETE")
CASES = yaml.safe_load(Path(__file__).with_name("reshaper.yaml").read_text(encoding="utf-8"))
KNOWN = {*METHODS, "name", "data", "status", "request_headers", "response_strings", "response_json_paths"}


def found(document, path):
    """Return what is at a JSON path of names and places; None: nothing is."""
    for name, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        document = document[int(place)] if place else (document or {}).get(name)
    return document


@pytest.mark.shows("S135")
def test_each_case_is_answered_as_it_says(api):
    for case in CASES["tests"]:
        assert case.keys() <= KNOWN, case["name"]
        ((method, path),) = [(method, case[method]) for method in METHODS if method in case]
        headers = {**CASES["defaults"]["request_headers"], **case.get("request_headers", {})}
        answer = api.ask(method, path, case.get("data"), headers=headers)
        assert answer.status == case["status"], (case["name"], answer.body)
        for text in case.get("response_strings", ()):
            assert text in answer.text, case["name"]
        for where, value in case.get("response_json_paths", {}).items():
            assert found(answer.json, where) == value, (case["name"], where, answer.json)

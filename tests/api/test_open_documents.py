"""The page at /v1/docs shows the OpenAPI document, and loads nothing from elsewhere."""

import base64
import hashlib
import re

import pytest

from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api


@pytest.fixture(scope="module")
def own():
    with roost_api(fleet(1, vcpus=4)) as own:
        yield own


@pytest.fixture(scope="module")
def page(own):
    return own.get("/docs", headers={"x-auth-token": ""})


def test_page_needs_no_authentication(page):
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-length"] == str(len(page.body))
    assert page.body.startswith(b"<!doctype html>")


def test_other_methods_and_paths_are_not_open(own):
    assert own.post("/docs", headers={"x-auth-token": ""}).status == 401
    assert own.post("/docs").status == 404
    assert own.get("/docs/", headers={"x-auth-token": ""}).status == 401


def test_browser_runs_only_the_script_of_the_page(page):
    policy = dict(each.split(" ", 1) for each in page.headers["content-security-policy"].split("; "))
    assert policy.pop("default-src") == policy.pop("base-uri") == policy.pop("form-action") == "'none'"
    assert policy.pop("frame-ancestors") == "'none'"
    assert policy.pop("connect-src") == "'self'"
    text = page.body.decode()
    for kind in ("script", "style"):
        (inline,) = re.findall(f"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert policy.pop(f"{kind}-src") == f"'sha256-{digest}'"
        assert text.count(f"<{kind}") == 1
    assert policy == {}


def test_page_loads_only_documents_of_the_server(own, page):
    text = page.body.decode()
    assert re.findall(r"(?:src|href|url|action)\s*[=(]\s*[\"']([^\"']*)", text) == ["openapi.json", "errors", "#"]
    assert re.findall(r"fetch\(\"([^\"]*)\"\)", text) == ["openapi.json"]
    assert "//" not in re.sub(r"^ *// .*$", "", text, flags=re.MULTILINE)  # no address of another site
    for path in ("/openapi.json", "/errors"):
        assert own.get(path, headers={"x-auth-token": ""}).status == 200


def test_text_of_the_document_cannot_become_markup(page):
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval", "Function(", "style="):
        assert name not in page.body.decode()


def test_page_reads_fields_that_the_document_has(own):
    document = own.get("/openapi.json").json
    assert {"info", "tags", "paths", "components"} <= set(document)
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert all(
        {"tags", "summary", "description", "parameters", "responses", "operationId"} <= set(each) for each in operations
    )

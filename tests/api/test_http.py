import json

import pytest

from roost.api.http import Identity
from roost.api.placement.application import Application

UNKNOWN = "99999999-9999-4999-8999-999999999999"
LIST, ONE = "/resource_providers", f"/resource_providers/{UNKNOWN}"
VERSION = "openstack-api-version"
MISSING = "The resource could not be found."


def version_headers(response):
    return [name for name in (VERSION, "vary") if name in response.headers]


def test_error_document_format(api):
    response = api.get(ONE)
    assert response.headers["content-type"] == "application/json"
    assert response.json == {
        "errors": [
            {
                "status": 404,
                "title": "Not Found",
                "detail": f"{MISSING}\n\n No resource provider with uuid {UNKNOWN} found  ",
                "code": "placement.undefined_code",
                "request_id": response.headers["x-openstack-request-id"],
            }
        ]
    }


def test_error_codes_appear_in_version_1_23(api):
    assert "code" not in api.get(ONE, version="1.22").json["errors"][0]
    assert "code" in api.get(ONE, version="1.23").json["errors"][0]


def test_error_format_follows_the_accept_header(api):
    page = api.delete("/resource_providers/<b>&'é", headers={"accept": "text/html, application/json"})
    assert page.headers["content-type"] == "text/html; charset=UTF-8"
    assert page.body.decode() == (
        "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n"
        f"  {MISSING}<br /><br />\nNo resource provider with uuid &lt;b&gt;&amp;&#x27;&#233; found for delete\n\n\n"
        " </body>\n</html>"
    )
    text = api.delete("/resource_providers/<b>&'é", headers={"accept": "image/png"})
    assert text.headers["content-type"] == "text/plain; charset=UTF-8"
    # In plain text, anything that looks like a tag is removed.
    assert text.body.decode() == f"404 Not Found\n\n{MISSING}\n\n No resource provider with uuid &'é found for delete  "


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.2.3", "invalid literal for int() with base 10: '2.3'"),
        ("pony", "invalid literal for int() with base 10: 'pony'"),
    ],
)
def test_malformed_version_is_a_bad_request(api, version, reason):
    for path in ("/", LIST, "/none"):
        response = api.get(path, version=version)
        assert (response.status, response.text) == (
            400,
            f"Invalid microversion: invalid version string: {version}; {reason}",
        )
        assert version_headers(response) == []


def test_unsupported_version_error_names_the_supported_range(api):
    response = api.get(LIST, version="1.40")
    assert (response.status, version_headers(response)) == (406, [])
    (error,) = response.json["errors"]
    assert error.pop("request_id").startswith("req-")
    assert error == {
        "status": 406,
        "title": "Not Acceptable",
        "detail": "The resource could not be generated that was acceptable to your browser (content of type "
        "application/json. \n\n Invalid microversion: Unacceptable version header: 1.40",
        "max_version": "1.39",
        "min_version": "1.0",
    }


def test_version_headers_are_sent_once_the_route_is_known(api):
    assert version_headers(api.get(LIST)) == [VERSION, "vary"]
    assert version_headers(api.ask("PATCH", LIST)) == [VERSION, "vary"]
    for response in (
        api.get(ONE),
        api.get("/none"),
        api.get(LIST, headers={"x-auth-token": "bob"}),
        api.get(LIST, headers={"content-length": "x"}),
    ):
        assert version_headers(response) == [VERSION]
    assert api.get(LIST, version="latest").headers[VERSION] == "placement 1.39"
    assert api.get(LIST, headers={VERSION: "compute 2.1"}).headers[VERSION] == "placement 1.0"


def test_only_the_version_document_needs_no_authentication(api):
    api.application = Application(identify=lambda _: None, allows=lambda *_: True)
    assert api.get("/").status == 200
    assert api.get("").status == 200
    for path in ("//", LIST, "/none"):
        response = api.get(path, version="pony")
        assert (response.status, version_headers(response)) == (401, [])
        assert response.json == {
            "message": "This server could not verify that you are authorized to access the document you requested. "
            "Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how "
            "to supply the credentials required.<br /><br />\n\n\n",
            "code": "401 Unauthorized",
            "title": "Unauthorized",
        }


def test_version_document_links_have_no_host_or_prefix(api):
    versions = [
        {
            "id": "v1.0",
            "min_version": "1.0",
            "max_version": "1.39",
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
    for path, prefix in (("/", ""), ("", ""), ("", "/placement"), ("/", "/placement")):
        assert api.get(path, prefix=prefix).json == {"versions": versions}


def test_forbidden_response_names_the_policy(api):
    response = api.get(LIST, headers={"x-auth-token": "bob"})
    assert (response.status, response.text) == (
        403,
        "Policy does not allow placement:resource_providers:list to be performed.",
    )
    scoped = Identity(user_id="admin", roles=frozenset({"admin"}), is_system_scoped=True)
    api.application = Application(identify=lambda _: scoped, allows=lambda *_: False)
    assert api.get(LIST).text == "placement:resource_providers:list"


@pytest.mark.parametrize("path", ["/none", "/resource_providers/", "//resource_providers", f"{ONE}/none", f"{ONE}//"])
def test_unknown_paths_are_not_found(api, path):
    for method in ("GET", "PUT", "OPTIONS"):
        response = api.ask(method, path)
        assert (response.status, response.json["errors"][0]["detail"]) == (404, f"{MISSING}\n\n   ")


def test_wrong_method_error_lists_the_allowed_methods(api):
    for path, methods in (("/", "GET"), (LIST, "GET, POST"), (ONE, "GET, DELETE, PUT")):
        for method in ("OPTIONS", "PATCH", "get"):
            response = api.ask(method, path, headers={"x-auth-token": "bob"})
            assert (response.status, response.headers["allow"]) == (405, methods)
            assert response.json["errors"][0]["detail"] == (
                f"The method {method} is not allowed for this resource. \n\n "
                "The method specified is not allowed for this resource."
            )


def test_head_response_has_no_body(api):
    for path, status in ((LIST, 405), ("/none", 404)):
        response = api.ask("HEAD", path)
        assert (response.status, response.body, response.headers["content-length"]) == (status, b"", "0")
        assert response.headers["content-type"] == "text/html; charset=UTF-8"


@pytest.mark.parametrize(
    ("length", "content_type", "text"),
    [
        ("x", "text/plain", "content-length header must be an integer"),
        ("5.0", "text/plain", "content-length header must be an integer"),
        ("5", "", "content-type header required when content-length > 0"),
    ],
)
def test_content_length_and_type_are_checked_on_every_path(api, length, content_type, text):
    for path in ("/", LIST, "/none"):
        response = api.get(
            path, headers={"content-length": length, "content-type": content_type, "x-auth-token": "bob"}
        )
        assert (response.status, response.text) == (400, text)


@pytest.mark.parametrize("length", ["", "0", "-1"])
def test_empty_body_needs_no_content_type(api, length):
    assert api.get(LIST, headers={"content-length": length}).status == 200


@pytest.mark.parametrize(
    ("content_type", "media_type"), [(None, "None"), ("", "None"), ("text/<b>plain", "text/plain"), ("a;b", "a")]
)
def test_content_type_is_checked_before_authorization(api, content_type, media_type):
    headers = {"x-auth-token": "bob"} | ({} if content_type is None else {"content-type": content_type})
    response = api.post(LIST, headers=headers)
    assert response.status == 415
    shown_type = "a;b" if content_type == "a;b" else media_type
    assert response.json["errors"][0]["detail"] == (
        f"The request media type {shown_type} is not supported by this server. \n\n "
        f"The media type {media_type} is not supported, use application/json"
    )


def test_json_content_type_may_have_parameters(api):
    assert api.post(LIST, b'{"name": "one"}', headers={"content-type": "application/json; charset=x"}).status == 200


def test_client_that_accepts_no_json_gets_406(api):
    response = api.get(ONE, headers={"accept": "text/html", "x-auth-token": "bob"})
    assert response.status == 406
    assert (
        b"acceptable to your browser\n(content of type text/html. <br /><br />\nOnly application/json" in response.body
    )
    assert api.get("/", headers={"accept": "text/html"}).status == 200
    assert api.post(LIST, {"name": "one"}, headers={"accept": "text/html"}).status == 200


def test_route_of_a_later_version_is_not_found(api):
    response = api.get("/traits", version="1.5", headers={"accept": "application/json, text/html;q=0"})
    assert (response.status, version_headers(response)) == (404, [VERSION, "vary"])


def test_internal_error_is_logged_but_not_sent(api, capfd):
    def break_down(*_):
        raise ZeroDivisionError("secret")

    api.application = Application(identify=lambda _: Identity(user_id="admin"), allows=break_down)
    response = api.get(LIST)
    assert (response.status, response.text, version_headers(response)) == (500, "", [VERSION, "vary"])
    assert b"secret" not in response.body
    event = json.loads(capfd.readouterr().err)
    assert (event["event"], event["request_id"]) == ("fault", response.headers["x-openstack-request-id"])
    assert "secret" in event["traceback"]

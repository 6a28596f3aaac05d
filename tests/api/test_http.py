import json

import pytest

from roost.api.http import Identity
from roost.api.placement.application import Application

UNKNOWN = "99999999-9999-4999-8999-999999999999"
LIST, ONE = "/resource_providers", f"/resource_providers/{UNKNOWN}"
VERSION = "openstack-api-version"
MISSING = "The resource could not be found."


def versions_told(answer):
    return [name for name in (VERSION, "vary") if name in answer.headers]


def test_an_error_is_told_in_this_form(api):
    answer = api.get(ONE)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "errors": [
            {
                "status": 404,
                "title": "Not Found",
                "detail": f"{MISSING}\n\n No resource provider with uuid {UNKNOWN} found  ",
                "code": "placement.undefined_code",
                "request_id": answer.headers["x-openstack-request-id"],
            }
        ]
    }


def test_codes_came_with_1_23(api):
    assert "code" not in api.get(ONE, version="1.22").json["errors"][0]
    assert "code" in api.get(ONE, version="1.23").json["errors"][0]


def test_the_form_of_an_error_is_what_the_client_likes_best(api):
    page = api.delete("/resource_providers/<b>&'é", headers={"accept": "text/html, application/json"})
    assert page.headers["content-type"] == "text/html; charset=UTF-8"
    assert page.body.decode() == (
        "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n"
        f"  {MISSING}<br /><br />\nNo resource provider with uuid &lt;b&gt;&amp;&#x27;&#233; found for delete\n\n\n"
        " </body>\n</html>"
    )
    text = api.delete("/resource_providers/<b>&'é", headers={"accept": "image/png"})
    assert text.headers["content-type"] == "text/plain; charset=UTF-8"
    # Where there are no marks to be told from, what looks like one goes.
    assert text.body.decode() == f"404 Not Found\n\n{MISSING}\n\n No resource provider with uuid &'é found for delete  "


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.2.3", "invalid literal for int() with base 10: '2.3'"),
        ("pony", "invalid literal for int() with base 10: 'pony'"),
    ],
)
def test_what_is_no_version_is_a_bad_request(api, version, reason):
    for path in ("/", LIST, "/none"):
        answer = api.get(path, version=version)
        assert (answer.status, answer.text) == (
            400,
            f"Invalid microversion: invalid version string: {version}; {reason}",
        )
        assert versions_told(answer) == []


def test_a_version_that_there_is_not_is_told_with_those_that_there_are(api):
    answer = api.get(LIST, version="1.40")
    assert (answer.status, versions_told(answer)) == (406, [])
    (error,) = answer.json["errors"]
    assert error.pop("request_id").startswith("req-")
    assert error == {
        "status": 406,
        "title": "Not Acceptable",
        "detail": "The resource could not be generated that was acceptable to your browser (content of type "
        "application/json. \n\n Invalid microversion: Unacceptable version header: 1.40",
        "max_version": "1.39",
        "min_version": "1.0",
    }


def test_versions_are_told_by_those_answers_that_know_them(api):
    assert versions_told(api.get(LIST)) == [VERSION, "vary"]
    assert versions_told(api.ask("PATCH", LIST)) == [VERSION, "vary"]
    for answer in (
        api.get(ONE),
        api.get("/none"),
        api.get(LIST, headers={"x-auth-token": "bob"}),
        api.get(LIST, headers={"content-length": "x"}),
    ):
        assert versions_told(answer) == [VERSION]
    assert api.get(LIST, version="latest").headers[VERSION] == "placement 1.39"
    assert api.get(LIST, headers={VERSION: "compute 2.1"}).headers[VERSION] == "placement 1.0"


def test_only_the_list_of_versions_is_open_to_everybody(api):
    api.application = Application(identify=lambda _: None, allows=lambda *_: True)
    assert api.get("/").status == 200
    assert api.get("").status == 200
    for path in ("//", LIST, "/none"):
        answer = api.get(path, version="pony")
        assert (answer.status, versions_told(answer)) == (401, [])
        assert answer.json == {
            "message": "This server could not verify that you are authorized to access the document you requested. "
            "Either you supplied the wrong credentials (e.g., bad password), or your browser does not understand how "
            "to supply the credentials required.<br /><br />\n\n\n",
            "code": "401 Unauthorized",
            "title": "Unauthorized",
        }


def test_the_list_of_versions_does_not_say_where_it_is(api):
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


def test_what_a_policy_forbids_is_told_by_its_name(api):
    answer = api.get(LIST, headers={"x-auth-token": "bob"})
    assert (answer.status, answer.text) == (
        403,
        "Policy does not allow placement:resource_providers:list to be performed.",
    )
    scoped = Identity(user_id="admin", roles=frozenset({"admin"}), is_system_scoped=True)
    api.application = Application(identify=lambda _: scoped, allows=lambda *_: False)
    assert api.get(LIST).text == "placement:resource_providers:list"


@pytest.mark.parametrize("path", ["/none", "/resource_providers/", "//resource_providers", f"{ONE}/none", f"{ONE}//"])
def test_there_is_nothing_elsewhere(api, path):
    for method in ("GET", "PUT", "OPTIONS"):
        answer = api.ask(method, path)
        assert (answer.status, answer.json["errors"][0]["detail"]) == (404, f"{MISSING}\n\n   ")


def test_a_method_that_is_not_there_is_told_with_those_that_are(api):
    for path, methods in (("/", "GET"), (LIST, "GET, POST"), (ONE, "GET, DELETE, PUT")):
        for method in ("OPTIONS", "PATCH", "get"):
            answer = api.ask(method, path, headers={"x-auth-token": "bob"})
            assert (answer.status, answer.headers["allow"]) == (405, methods)
            assert answer.json["errors"][0]["detail"] == (
                f"The method {method} is not allowed for this resource. \n\n "
                "The method specified is not allowed for this resource."
            )


def test_a_head_has_no_body(api):
    for path, status in ((LIST, 405), ("/none", 404)):
        answer = api.ask("HEAD", path)
        assert (answer.status, answer.body, answer.headers["content-length"]) == (status, b"", "0")
        assert answer.headers["content-type"] == "text/html; charset=UTF-8"


@pytest.mark.parametrize(
    ("length", "declared", "text"),
    [
        ("x", "text/plain", "content-length header must be an integer"),
        ("5.0", "text/plain", "content-length header must be an integer"),
        ("5", "", "content-type header required when content-length > 0"),
    ],
)
def test_the_length_of_a_body_must_make_sense_anywhere(api, length, declared, text):
    for path in ("/", LIST, "/none"):
        answer = api.get(path, headers={"content-length": length, "content-type": declared, "x-auth-token": "bob"})
        assert (answer.status, answer.text) == (400, text)


@pytest.mark.parametrize("length", ["", "0", "-1"])
def test_a_body_of_no_length_need_not_be_declared(api, length):
    assert api.get(LIST, headers={"content-length": length}).status == 200


@pytest.mark.parametrize(
    ("declared", "media_type"), [(None, "None"), ("", "None"), ("text/<b>plain", "text/plain"), ("a;b", "a")]
)
def test_a_body_must_be_declared_json_before_anybody_asks_who_sends_it(api, declared, media_type):
    headers = {"x-auth-token": "bob"} | ({} if declared is None else {"content-type": declared})
    answer = api.post(LIST, headers=headers)
    assert answer.status == 415
    sent = "a;b" if declared == "a;b" else media_type
    assert answer.json["errors"][0]["detail"] == (
        f"The request media type {sent} is not supported by this server. \n\n "
        f"The media type {media_type} is not supported, use application/json"
    )


def test_json_may_be_declared_with_parameters(api):
    assert api.post(LIST, b'{"name": "one"}', headers={"content-type": "application/json; charset=x"}).status == 200


def test_who_reads_no_json_gets_none_shown(api):
    answer = api.get(ONE, headers={"accept": "text/html", "x-auth-token": "bob"})
    assert answer.status == 406
    assert b"acceptable to your browser\n(content of type text/html. <br /><br />\nOnly application/json" in answer.body
    assert api.get("/", headers={"accept": "text/html"}).status == 200
    assert api.post(LIST, {"name": "one"}, headers={"accept": "text/html"}).status == 200


def test_a_route_is_missing_before_its_version_whatever_is_accepted(api):
    answer = api.get("/traits", version="1.5", headers={"accept": "application/json, text/html;q=0"})
    assert (answer.status, versions_told(answer)) == (404, [VERSION, "vary"])


def test_what_nobody_meant_is_logged_and_told_without_its_story(api, capfd):
    def break_down(*_):
        raise ZeroDivisionError("secret")

    api.application = Application(identify=lambda _: Identity(user_id="admin"), allows=break_down)
    answer = api.get(LIST)
    assert (answer.status, answer.text, versions_told(answer)) == (500, "", [VERSION, "vary"])
    assert b"secret" not in answer.body
    told = json.loads(capfd.readouterr().err)
    assert (told["event"], told["request_id"]) == ("fault", answer.headers["x-openstack-request-id"])
    assert "secret" in told["traceback"]

def test_a_provider_is_created_and_shown(api):
    created = api.post("/resource_providers", {"name": "one"})
    assert created.status == 200
    uuid = created.json["uuid"]
    assert created.headers["location"] == f"http://localhost/resource_providers/{uuid}"
    shown = api.get(f"/resource_providers/{uuid}")
    assert shown.json == created.json
    assert shown.headers["cache-control"] == "no-cache"
    assert api.get("/resource_providers").json == {"resource_providers": [shown.json]}


def test_a_name_is_taken_once(api):
    assert api.post("/resource_providers", {"name": "one"}, version="1.19").status == 201
    again = api.post("/resource_providers", {"name": "one"})
    assert (again.status, again.code) == (409, "placement.duplicate_name")
    assert again.text == "Conflicting resource provider name: one already exists."


def test_a_body_that_is_no_json_is_told_so(api):
    answer = api.post("/resource_providers", b'{"name')
    assert answer.text == "Malformed JSON: Unterminated string starting at: line 1 column 2 (char 1)"


def test_a_method_that_is_not_there(api):
    answer = api.delete("/resource_providers")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")


def test_nobody_may_ask_anything_but_the_versions(api):
    assert api.get("/", headers={}).status == 200
    assert api.get("/resource_providers", headers={"x-auth-token": "bob"}).status == 403

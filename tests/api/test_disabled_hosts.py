"""Time and user of a disabled host."""

ALICE = {"x-auth-token": "alice:ops", "x-roles": "admin"}
BOB = {"x-auth-token": "bob:ops", "x-roles": "admin"}


def test_disabled_host_has_the_time_and_the_user_until_it_is_enabled(own):
    def shown():
        host = own.get("/hosts/host-0").json
        return host["disabled_at_s"], host["disabled_by"], host["disabled_reason"]

    def change(body, headers):
        assert own.ask("PATCH", "/services/host-0", body, headers=headers).status == 200

    assert shown() == (None, "", "")
    change({"disabled": True, "disabled_reason": "fan"}, ALICE)
    at_s, *rest = shown()
    assert rest == ["alice", "fan"]
    (record,) = own.get("/changes?object=host-0").json["changes"]
    assert abs(at_s - record["at_s"]) < 60
    # Another reason does not change when, and by which user, it was disabled.
    change({"disabled": True, "disabled_reason": "disk"}, BOB)
    assert shown() == (at_s, "alice", "disk")
    change({"disabled": False}, BOB)
    assert shown() == (None, "", "")


def test_report_of_an_agent_keeps_the_time_and_the_user(own):
    run = "00000000-0000-4000-8000-000000000001"
    assert own.put("/agents/host-0", {"run": run, "driver": "fake", "nodes": []}).status == 200
    own.ask("PATCH", "/services/host-0", {"disabled": True}, headers=ALICE)
    assert own.put("/agents/host-0/nodes/host-0", {"host_ip": "10.0.0.9", "disabled_by": "mallory"}).status == 204
    host = own.get("/hosts/host-0").json
    assert (host["disabled"], host["disabled_by"], host["facts"]["host_ip"]) == (True, "alice", "10.0.0.9")

"""The server of ``roost demo --serve``: a nearly full fleet, with traffic."""

import http.client
import json
import random

from roost.app import open_roost
from roost.simulator.demo_server import DemoServer
from roost.simulator.traces.filling_requests import fill
from roost.simulator.traces.generated_fleet import generate_fleet


def get(server, path):
    """Return the body of a GET."""
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)
    try:
        connection.request("GET", path, headers={"x-auth-token": "admin"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_fleet_is_filled_and_gets_traffic(tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(generate_fleet(20, rng=random.Random("fleet"), groups=[]))
        progress = list(fill(roost, rng=random.Random("filling")))
        used, capacity = roost.utilisation()["MEMORY_MB"]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert 0.7 < used / capacity <= 1
    with DemoServer(tmp_path, listen="127.0.0.1:0") as server:
        before = len(get(server, "/v1/decisions?limit=200")["decisions"])
        server.send_traffic(rng=random.Random("traffic"), requests=12)
        newest = get(server, "/v1/decisions?limit=12")["decisions"]
        assert before > 0
        assert len(newest) == 12
        assert {each["outcome"] for each in newest} <= {"granted", "refused"}
        assert any(each["outcome"] == "granted" for each in newest)

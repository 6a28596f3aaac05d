import re

from tests.support.agents.http_agents import play_agents


def test_host_is_shown_in_sections_with_its_instances(server, command):
    with play_agents(server):
        assert command("instance", "create", "web", "--flavor", "vcpus=1,memory_mb=16", "--wait")[0] == 0
        assert command("host", "set", "host-0", "--disable", "--reason", "the disk fails")[0] == 0
        text = command("host", "show", "host-0")[1]
        other = command("host", "show", "host-1")[1]
        assert command("instance", "delete", "web", "--wait")[0] == 0
    assert "{" not in text
    assert re.search(r"^state +disabled, up$", text, re.MULTILINE)
    assert re.search(r"^disabled reason +the disk fails$", text, re.MULTILINE)
    assert re.search(r"^disabled +20[0-9-]+ [0-9:]+Z, (now|\d+ s ago)$", text, re.MULTILINE), text
    assert re.search(r"^disabled by +\w+$", text, re.MULTILINE)
    assert "disabled" not in other
    assert re.search(r"^  class +total +reserved +capacity +used +free +used share$", text, re.MULTILINE)
    assert re.search(r"^  VCPU +4 +0 +\d+ +1 +\d+ +\d+%$", text, re.MULTILINE)
    assert re.search(r"^  web +ACTIVE ", text, re.MULTILINE)
    assert "web" not in other

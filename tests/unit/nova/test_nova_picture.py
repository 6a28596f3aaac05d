import msgspec

from roost.engine.columns.host_columns import Hosts
from roost.model.host import Aggregate, HostFacts
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaAggregate, NovaInstance
from roost.nova.nova_picture import NovaPicture
from roost.observe import log

NODE = ComputeNode(uuid="n1", host="a", node="a.domain", cell="c1", facts=HostFacts(), is_mapped=True, is_ready=True)


def picture_of(*changes, now_s=100.0):
    picture = NovaPicture()
    for each in changes:
        picture.add(each, now_s=now_s)
    return picture


def test_node_is_a_host_of_its_service_in_its_cell():
    picture = picture_of(FleetChanges(computes=(NODE,)))
    spec = picture.host_of("n1")
    assert (spec.provider_uuid, spec.host, spec.node) == ("n1", "a", "a.domain")
    assert spec.facts == HostFacts(cell="c1")
    assert list(picture.due_nodes) == ["n1"]
    assert picture.is_usable("n1")


def test_unmapped_and_silent_nodes_count_as_disabled_with_a_reason():
    for field, word in (("is_mapped", "discover_hosts"), ("is_ready", "not reported")):
        picture = picture_of(FleetChanges(computes=(msgspec.structs.replace(NODE, **{field: False}),)))
        facts = picture.host_of("n1").facts
        assert facts.is_disabled
        assert word in facts.disabled_reason
        assert not picture.is_usable("n1")


def test_deleted_node_disables_its_host_until_it_returns():
    picture = picture_of(FleetChanges(computes=(NODE,)), FleetChanges(gone=("n1",)))
    assert picture.host_of("n1") is None
    hosts = Hosts()
    hosts.put(1, provider_row=0, host="a", node="a.domain", facts=HostFacts(cell="c1"), version=0)
    gone = picture.host_after_deletion("n1", hosts, 0)
    assert (gone.host, gone.facts.is_disabled, gone.facts.disabled_reason) == ("a", True, "deleted in Nova")
    picture.add(FleetChanges(computes=(NODE,)), now_s=101.0)
    assert picture.host_after_deletion("n1", hosts, 0) is None
    assert not picture.host_of("n1").facts.is_disabled


def test_hosts_of_a_silent_cell_have_reported_last_when_it_fell_silent():
    picture = picture_of(FleetChanges(computes=(NODE, msgspec.structs.replace(NODE, uuid="n2", cell="c2"))))
    picture.due_nodes.clear()
    picture.add(FleetChanges(silent_cells={"c1": "timed out"}), now_s=200.0)
    picture.add(FleetChanges(silent_cells={"c1": "timed out"}), now_s=230.0)
    assert list(picture.due_nodes) == ["n1"]
    assert picture.host_of("n1").facts.reported_at_s == 200.0
    assert picture.host_of("n2").facts.reported_at_s is None
    picture.due_nodes.clear()
    picture.add(FleetChanges(), now_s=260.0)
    assert list(picture.due_nodes) == ["n1"]
    assert picture.host_of("n1").facts.reported_at_s is None


def test_dead_service_in_a_silent_cell_keeps_its_last_report():
    dead = msgspec.structs.replace(NODE, facts=HostFacts(reported_at_s=50.0))
    picture = picture_of(FleetChanges(computes=(dead,), silent_cells={"c1": "timed out"}))
    assert picture.host_of("n1").facts.reported_at_s == 50.0


def test_deleted_aggregate_loses_its_name_and_metadata():
    one, two = (NovaAggregate(id=number, uuid=f"g{number}", name="g", metadata={"k": "v"}) for number in (1, 2))
    picture = picture_of(FleetChanges(aggregates=(one, two)))
    assert picture.due_aggregates["g1"] == Aggregate(uuid="g1", name="g", metadata={"k": "v"})
    picture.due_aggregates.clear()
    picture.add(FleetChanges(aggregates=(two,)), now_s=101.0)
    assert picture.due_aggregates["g1"] == Aggregate(uuid="g1")
    picture.due_aggregates.clear()
    picture.add(FleetChanges(aggregates=None), now_s=102.0)
    assert picture.due_aggregates == {}


def test_deleted_instance_is_no_longer_due():
    instance = NovaInstance(uuid="i", host="a", node="a", cell="c1", project_id="p", user_id="u")
    picture = picture_of(FleetChanges(instances=(instance,)))
    assert picture.due_instances == {"i": instance}
    picture.add(FleetChanges(gone_instances=("i",)), now_s=101.0)
    assert picture.due_instances == {}


class Attempts:
    """Attempts to place one instance, once a second."""

    def __init__(self):
        self.instance = NovaInstance(uuid="i", host="h", node="h", cell="c", project_id="p", user_id="u")
        self.picture, self.now_s = NovaPicture(), 100.0
        self.times = []

    def work(self, until_s, *, is_placed=False, **changes):
        """Read changes, then nothing until a time; return the times of the attempts."""
        self.times.clear()
        while self.now_s < until_s:
            self.picture.add(FleetChanges(**changes), now_s=self.now_s)
            changes = {}
            if self.picture.due_instances:
                tried = list(self.picture.due_instances.values())
                self.picture.due_instances.clear()
                self.picture.note_attempt(tried, [] if is_placed else tried, now_s=self.now_s)
                self.times.append(self.now_s - 100.0)
            self.now_s += 1.0
        return list(self.times)


def test_instance_without_its_host_is_tried_less_and_less_often():
    attempts = Attempts()
    assert attempts.work(2500.0, instances=(attempts.instance,)) == [0, 10, 30, 70, 150, 310, 630, 1230, 1830]


def test_changed_instance_and_new_host_start_again():
    attempts = Attempts()
    attempts.work(500.0, instances=(attempts.instance,))
    assert attempts.work(515.0, instances=(attempts.instance,)) == [400, 410]
    attempts.work(1200.0)
    attempts.picture.retry_soon()
    assert attempts.work(1225.0) == [1100, 1120]


def test_gone_instance_is_not_tried_again():
    attempts = Attempts()
    attempts.work(105.0, instances=(attempts.instance,))
    assert attempts.work(1000.0, gone_instances=("i",)) == []


def test_wait_and_its_end_are_one_line_each(monkeypatch):
    lines = []
    monkeypatch.setattr(log, "event", lambda name, **fields: lines.append((name, fields)))
    attempts = Attempts()
    attempts.work(105.0, instances=(attempts.instance,))
    assert lines == []
    attempts.work(1000.0)
    assert lines == [("nova_instances_wait", {"count": 1, "instance": "i"})]
    attempts.work(2000.0, is_placed=True)
    attempts.work(3000.0, is_placed=True)
    assert lines[1:] == [("nova_instances_are_placed", {})]


def test_clock_that_was_set_back_does_not_delay_attempts():
    attempts = Attempts()
    attempts.work(1000.0, instances=(attempts.instance,))
    attempts.now_s = 100.0
    assert attempts.work(105.0) == [0]

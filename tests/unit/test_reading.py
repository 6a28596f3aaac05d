"""A read-only database: it can be open beside its server, and is never written."""

import pytest

from roost.app import open_reader, open_roost
from roost.errors import StoreBroken, Unavailable
from tests.support.fleets.products import fleet, request, settings_for


def test_reader_sees_commits_of_the_server_and_writes_nothing(tmp_path):
    with open_roost(data=tmp_path) as server:
        server.install(fleet(2, vcpus=4))
        decision = server.decide(request())
        with open_reader(None, tmp_path, environ={}) as reader:
            assert reader.utilisation() == server.utilisation()
            assert reader.decision(decision.uuid) == decision
            assert [flavor.name for flavor in reader.flavors()] == ["1 cores"]
            assert reader.decide(request(), dry_run=True).is_granted
            assert reader.prune() == 0
            with pytest.raises(Unavailable, match="reading only"):
                reader.decide(request())
        assert len(server.decisions()) == 1
        assert server.decide(request()).is_granted


def test_a_reader_creates_no_database(tmp_path):
    with pytest.raises(StoreBroken, match="does not exist"):
        open_reader(None, tmp_path / "absent", environ={})
    assert list(tmp_path.iterdir()) == []


def test_reader_of_postgresql_sees_commits_of_others(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    with open_reader(config, None, environ={}) as reader:  # No server has used it yet.
        assert reader.capacity(request()).count == 0
    with open_roost(config, environ={}) as server:
        server.install(fleet(2, vcpus=4))
        with open_reader(config, None, environ={}) as reader:
            assert reader.capacity(request()).count == 8
            server.decide(request())
            assert reader.capacity(request()).count == 7
            with pytest.raises(Unavailable, match="reading only"):
                reader.decide(request())


def test_a_reader_of_postgresql_creates_no_tables(postgres_server, tmp_path):
    for _ in range(2):
        with pytest.raises(StoreBroken, match="is empty: create its tables"):
            open_reader(settings_for(postgres_server, tmp_path), None, environ={})

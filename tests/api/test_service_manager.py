"""Servers, conductors and agents report to systemd when they are ready."""

import socket

import pytest

from tests.support.servers.clusters import AgentsProgram, ConductorProgram, Program, ServerProgram

pytestmark = pytest.mark.long


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """The socket of a service manager, which started the programs of this test."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def programs(folder, database):
    """Yield a program of each kind, with an option for several processes."""
    settings = f'[store]\nurl = "{database}"\n'
    server = ServerProgram(folder=folder, settings=settings)
    yield server
    yield ServerProgram("--workers", "2", folder=folder, settings=settings, name="workers")
    yield ConductorProgram(folder=folder, settings=settings)
    yield Program(
        "placement",
        "--database",
        database,
        "--listen",
        "127.0.0.1:0",
        "--data",
        folder,
        folder=folder,
        log="placement.log",
    )
    yield AgentsProgram(server.address, folder=folder, guests=folder / "guests", host="host-1", options={})


def test_each_program_reports_once_that_it_is_ready(manager, postgres_url, tmp_path):
    for program in programs(tmp_path, postgres_url):
        program.start()
        try:
            assert manager.recv(64) == b"READY=1", program.words
        finally:
            program.kill()
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(64)

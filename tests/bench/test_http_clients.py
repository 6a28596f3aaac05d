"""The benchmark of clients over HTTP runs at a small scale. Speed is not tested."""

import sys

from bench import http_clients


def test_each_way_makes_its_decisions(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--hosts", "200", "--requests", "128", "--turns", "1"])
    http_clients.main()
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == list(http_clients.WAYS)


def test_profile_is_divided_by_the_innermost_known_file():
    lines = [
        "main (a/roost/api/asgi.py:1);commit (a/roost/store/sqlite/store.py:2);execute (sqlite.c:3) 6",
        "main (a/roost/api/asgi.py:1);answer (a/roost/api/v1/application.py:2) 3",
        "run (asyncio/runners.py:1) 1",
    ]
    assert http_clients.shares_of("\n".join(lines)) == {
        "store: commit": 0.6,
        "application: identity, route, policy, decoding": 0.3,
        http_clients.OTHER: 0.1,
    }

"""Start and stop of a server, and invalid options."""

import signal
import socket
from contextlib import closing
from http.client import HTTPConnection

import pytest

from tests.support.servers.servers import ADMIN, read_all, refused_start, serve

HEAD = b"".join(f"{name}: {value}\r\n".encode() for name, value in ADMIN.items())


def test_stopped_server_exits_cleanly_and_keeps_its_data(tmp_path):
    with serve(folder=tmp_path) as server:
        assert server.ask("POST", "/resource_providers", {"name": "one"})[0] == 200
        assert server.stop() == 0
    assert (tmp_path / "roost.db").exists()
    with serve(folder=tmp_path) as server:
        shown = server.ask("GET", "/resource_providers")[2]
        assert [each["name"] for each in shown["resource_providers"]] == ["one"]
        assert server.stop(signal.SIGINT) == 0


def test_request_in_flight_is_completed_before_shutdown(tmp_path):
    body = b'{"name": "late"}'
    with serve(folder=tmp_path) as server, server.connect() as client:
        client.sendall(
            b"POST /resource_providers HTTP/1.1\r\ncontent-type: application/json\r\nhost: localhost\r\n" + HEAD
        )
        client.sendall(b"content-length: %d\r\n\r\n" % len(body))
        server.ask("GET", "/")  # The request of the other connection has been read by now.
        server.tell_to_stop()
        client.sendall(body)
        assert read_all(client).startswith(b"HTTP/1.1 200")
        assert server.process.wait(timeout=30) == 0


def test_idle_client_gets_a_last_response_from_a_stopping_server(tmp_path):
    with serve(folder=tmp_path) as server, closing(HTTPConnection("127.0.0.1", server.port)) as client:
        for is_last in (False, True):
            client.request("GET", "/traits", headers=ADMIN)
            answer = client.getresponse()
            answer.read()
            assert (answer.status, answer.will_close) == (200, is_last)
            if not is_last:
                server.tell_to_stop()
        assert server.process.wait(timeout=30) == 0


def test_stop_timeout_ends_unfinished_requests(tmp_path):
    with serve(settings="stop_timeout_s = 1", folder=tmp_path) as server, server.connect() as client:
        client.sendall(b"POST /resource_providers HTTP/1.1\r\ncontent-length: 5\r\n" + HEAD + b"\r\n")
        server.ask("GET", "/")
        assert server.stop() == 0


def test_second_signal_ends_the_server_at_once(tmp_path):
    with serve(folder=tmp_path) as server, server.connect() as client:
        client.sendall(b"POST /resource_providers HTTP/1.1\r\ncontent-length: 5\r\n" + HEAD + b"\r\n")
        server.ask("GET", "/")
        server.tell_to_stop()
        assert server.stop(signal.SIGTERM) == 128 + signal.SIGTERM


def test_links_and_locations_include_the_prefix(tmp_path):
    with serve("--prefix", "/placement", folder=tmp_path) as server:
        status, headers, body = server.ask("POST", "/placement/resource_providers", {"name": "one"})
        assert status == 200
        path = f"/placement/resource_providers/{body['uuid']}"
        assert headers["location"] == f"http://127.0.0.1:{server.port}{path}"
        assert body["links"][0]["href"] == path
        assert server.ask("GET", "/placement", headers={})[2]["versions"][0]["max_version"] == "1.39"
        assert server.ask("GET", "/resource_providers")[0] == 404
        assert server.ask("GET", "/placementx")[0] == 404


def test_version_document_ends_its_connection_and_other_responses_do_not(tmp_path):
    with serve(folder=tmp_path) as server, closing(HTTPConnection("127.0.0.1", server.port)) as client:
        for path, is_last in (("/resource_classes", False), ("/traits", False), ("/", True)):
            client.request("GET", path, headers=ADMIN)
            answer = client.getresponse()
            assert (answer.status, answer.will_close) == (200, is_last)
            answer.read()


def test_health_and_metrics_may_have_a_port_of_their_own(tmp_path):
    with serve("--metrics-listen", "127.0.0.1:0", folder=tmp_path) as server:
        server.ask("POST", "/resource_providers", {"name": "one"})
        assert server.watch("/healthz") == (200, "ok\n")
        assert server.watch("/")[0] == 404
        assert server.ask("POST", "/metrics", b"", headers={}, port=server.metrics_port)[0] == 405
        status, text = server.watch("/metrics")
        assert status == 200
        assert 'roost_requests_total{method="POST",route="/placement/resource_providers",status="200"} 1.0' in text
        assert server.ask("GET", "/metrics")[0] == 404


def test_request_log_contains_no_secrets(tmp_path):
    with serve(settings="log_requests = true", folder=tmp_path) as server:
        headers = {"x-auth-token": "s3cret:p", "x-roles": "admin"}
        _, response_headers, _ = server.ask("GET", "/resource_providers?name=hidden", headers=headers)
        server.stop()
    line = next(line for line in server.errors if "request" in line)
    assert response_headers["x-openstack-request-id"] in line
    assert '"status":200' in line
    assert "hidden" not in line


@pytest.mark.parametrize(
    ("arguments", "settings", "exit_code", "sentence"),
    [
        ([], 'auth_strategy = "tokens"', 3, "placement.tokens_file: must be set"),
        ([], 'auth_strategy = "keystone"', 3, "placement.keystone_file: must be set"),
        (["--database", "oracle://u:secret@h/d"], "", 3, "is neither a path nor a URL of postgresql, mysql or sqlite"),
        (["--database", "mysql+mysqldb://u:secret@h/d"], "", 3, "write mysql://"),
        (["--database", "postgresql:/u:secret@h/d"], "", 3, "write postgresql://USER:PASSWORD@HOST/DATABASE"),
        (["--database", "mysql//u:secret@h/d"], "", 3, "write mysql://USER:PASSWORD@HOST/DATABASE"),
        (["--database", "mysql://u:secret@127.0.0.1:1/d"], "", 7, "MariaDB"),
        (["--database", "postgresql:///d?host=/nowhere"], "", 7, "PostgreSQL"),
        (["--database", "/dev/null/all.db"], "", 7, "all.db"),
    ],
)
def test_unusable_settings_are_one_line_of_error(tmp_path, arguments, settings, exit_code, sentence):
    code, message = refused_start("--listen", "127.0.0.1:0", *arguments, folder=tmp_path, settings=settings)
    assert (code, message.count("\n")) == (exit_code, 1), message
    assert sentence in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (["--listen", "0.0.0.0:0"], "", "noauth2 authenticates no client"),
        (["--listen", "here"], "", "placement.listen: must be HOST:PORT, got 'here'"),
        (["--listen", "localhost:70000"], "", "must be HOST:PORT"),
        (["--workers", "2"], "", "must be 1 on SQLite"),
        (["--workers", "0"], "", "placement.workers: must be 1 or more, got 0"),
        (["--prefix", "x/"], "", "placement.prefix: must begin with /"),
        ([], 'auth_strategy = "none"', "auth_strategy: must be noauth2 or tokens or keystone"),
        ([], 'policy_file = "nowhere.yaml"', "nowhere.yaml: does not exist"),
    ],
)
def test_invalid_options_are_refused_before_startup(run, tmp_path, arguments, settings, sentence):
    config = tmp_path / "roost.toml"
    config.write_text(f"[placement]\n{settings}\n")
    with socket.create_server(("127.0.0.1", 0)) as used_port:
        listen = f"127.0.0.1:{used_port.getsockname()[1]}"
        # The last of repeated options is used.
        code, _, message = run("placement", "--config", config, "--data", tmp_path, "--listen", listen, *arguments)
    assert (code, message.count("\n")) == (4 if "nowhere" in sentence else 3, 1), message
    assert sentence in message


def test_port_in_use_is_an_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as used_port:
        code, message = refused_start("--listen", f"127.0.0.1:{used_port.getsockname()[1]}", folder=tmp_path)
    assert (code, "cannot listen on" in message) == (1, True)


def test_insecure_listen_option_allows_public_noauth2(tmp_path):
    with serve("--allow-insecure-listen", listen="0.0.0.0:0", folder=tmp_path) as server:
        assert server.ask("GET", "/resource_providers")[0] == 200


def test_database_in_use_is_not_served_again(tmp_path):
    with serve(folder=tmp_path):
        code, message = refused_start("--listen", "127.0.0.1:0", folder=tmp_path)
    assert (code, "served by another process" in message) == (7, True)

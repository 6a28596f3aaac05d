"""TLS over real sockets: what the server shows, and what it wants to see."""

import http.client
import ssl
import subprocess
from contextlib import closing

import pytest

from tests.support.fleets.products import roost
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.servers.servers import ADMIN, serve

pytestmark = [needs_openssl, pytest.mark.long]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server_files(authority):
    return authority.issue("server")


def ask(server, context, path, *, headers=ADMIN):
    """Ask by TLS; return the status and the body."""
    with closing(http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize(("noun", "path"), [("up", "/placement/traits"), ("placement", "/traits")])
def test_a_server_with_a_certificate_speaks_tls_alone(tmp_path, authority, server_files, noun, path):
    cert, key = server_files
    with serve("--tls-cert", cert, "--tls-key", key, noun=noun, folder=tmp_path) as server:
        assert ask(server, authority.trusting(), path)[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server, ssl.create_default_context(), path)
        assert server.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n") == b""
        assert server.stop() == 0


def test_a_client_that_never_says_hello_is_closed(tmp_path, server_files):
    cert, key = server_files
    with serve("--tls-cert", cert, "--tls-key", key, folder=tmp_path, settings="header_timeout_s = 0.5") as server:
        assert server.raw() == b""  # asyncio alone waits 60 s, longer than this client


def test_links_are_those_of_https(tmp_path, authority, server_files):
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(path.read_bytes() for path in server_files))
    with serve(noun="up", folder=tmp_path, settings=f'tls_cert = "{both}"') as server:
        context = authority.trusting()
        with closing(http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)) as connection:
            body = b'{"flavor": {"vcpus": 1}}'
            headers = {"x-auth-token": "admin", "content-type": "application/json"}
            connection.request("POST", "/v1/decisions", body=body, headers=headers)
            answer = connection.getresponse()
            answer.read()
        assert answer.status == 201
        assert answer.headers["location"].startswith(f"https://127.0.0.1:{server.port}/v1/decisions/")


def test_clients_show_a_certificate_where_one_is_wanted(tmp_path, authority, server_files):
    cert, key = server_files
    own, stranger = authority.issue("client"), Authority(tmp_path, "other").issue("stranger")
    files = ("--tls-cert", cert, "--tls-key", key, "--ca", authority.cert)
    with serve(*files, "--metrics-listen", "127.0.0.1:0", folder=tmp_path) as server:
        assert ask(server, authority.trusting(*own), "/traits")[0] == 200
        for shown in ((), stranger):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                ask(server, authority.trusting(*shown), "/traits")
        assert server.watch("/healthz") == (200, "ok\n")


def test_workers_share_a_certificate(tmp_path, authority, server_files, postgres_url):
    cert, key = server_files
    arguments = ("--workers", "2", "--database", postgres_url, "--tls-cert", cert, "--tls-key", key)
    with serve(*arguments, noun="up", folder=tmp_path) as server:
        assert [ask(server, authority.trusting(), "/healthz")[0] for _ in range(4)] == [200] * 4
        assert server.stop() == 0


@pytest.fixture(scope="module")
def wrong(authority, tmp_path_factory):
    """A folder of files that are not what they should be."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "text").write_text("no certificate")
    cert, key = authority.issue("held")
    (folder / "cert").write_bytes(cert.read_bytes())
    (folder / "key").write_bytes(key.read_bytes())
    (folder / "other").write_bytes(authority.issue("else")[1].read_bytes())
    locked = ("openssl", "ec", "-in", str(key), "-aes256", "-passout", "pass:secret", "-out", str(folder / "locked"))
    subprocess.run(locked, check=True, capture_output=True, timeout=60)
    return folder


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--tls-cert", "absent"), "placement.tls_cert: absent cannot be read: No such file or directory"),
        (("--tls-cert", "text"), "placement.tls_cert: text holds no certificate"),
        (("--tls-cert", "cert"), "placement.tls_key: cert holds no usable private key"),
        (("--tls-cert", "cert", "--tls-key", "gone"), "placement.tls_key: gone cannot be read: No such file"),
        (("--tls-cert", "cert", "--tls-key", "text"), "placement.tls_key: text holds no usable private key"),
        (("--tls-cert", "cert", "--tls-key", "other"), "placement.tls_key: other is not the key of cert"),
        (("--tls-cert", "cert", "--tls-key", "locked"), "placement.tls_key: locked is encrypted; a server needs a key"),
        (("--tls-cert", "cert", "--tls-key", "key", "--ca", "text"), "placement.tls_ca: text holds no certificate"),
        (("--tls-cert", "cert", "--tls-key", "key", "--ca", "gone"), "placement.tls_ca: gone cannot be read: No such"),
        (("--ca", "cert"), "placement.tls_ca: is of no use without tls_cert"),
        (("--tls-key", "key"), "placement.tls_key: is of no use without tls_cert"),
    ],
)
@pytest.mark.parametrize("noun", ["up", "placement"])
def test_a_wrong_file_is_named_in_a_sentence(wrong, tmp_path, noun, words, told):
    ran = roost(noun, "--listen", "127.0.0.1:0", "--data", tmp_path, *words, cwd=wrong)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (3, "", 1)
    assert told in ran.stderr


def test_tokens_go_over_plain_http_to_other_machines_only_where_that_is_said(tmp_path):
    token = roost("token", "create", "joe", "--role", "admin", "--file", "tokens.toml", cwd=tmp_path).stdout.strip()
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    (tmp_path / "roost.toml").write_text(f"[placement]\n{settings}\n")
    for noun in ("up", "placement"):
        ran = roost(noun, "--listen", "0.0.0.0:0", "--data", tmp_path, cwd=tmp_path)
        assert (ran.returncode, ran.stderr.count("\n")) == (3, 1)
        assert "tokens would travel unencrypted: give --tls-cert and --tls-key, or --allow-plain" in ran.stderr
    with serve("--allow-plain-http", noun="up", folder=tmp_path, settings=settings, listen="0.0.0.0:0") as server:
        assert server.ask("GET", "/v1/instances", headers={"x-auth-token": token})[0] == 200

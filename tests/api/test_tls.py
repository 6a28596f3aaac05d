"""TLS over real sockets: certificates of servers and clients."""

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
    """Send a request over TLS; return the status and the body."""
    with closing(http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=30)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize(("noun", "path"), [("up", "/placement/traits"), ("placement", "/traits")])
def test_server_with_a_certificate_accepts_tls_only(tmp_path, authority, server_files, noun, path):
    cert, key = server_files
    with serve("--tls-cert", cert, "--tls-key", key, noun=noun, folder=tmp_path) as server:
        assert ask(server, authority.trusting(), path)[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server, ssl.create_default_context(), path)
        assert server.raw(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n") == b""
        assert server.stop() == 0


def test_connection_without_a_tls_hello_is_closed(tmp_path, server_files):
    cert, key = server_files
    with serve("--tls-cert", cert, "--tls-key", key, folder=tmp_path, settings="header_timeout_s = 0.5") as server:
        assert server.raw() == b""  # asyncio alone waits 60 s, longer than this client


def test_location_headers_use_https(tmp_path, authority, server_files):
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


def test_client_certificates_are_required_with_a_ca(tmp_path, authority, server_files):
    cert, key = server_files
    client_files, unknown_files = authority.issue("client"), Authority(tmp_path, "other").issue("stranger")
    files = ("--tls-cert", cert, "--tls-key", key, "--ca", authority.cert)
    with serve(*files, "--metrics-listen", "127.0.0.1:0", folder=tmp_path) as server:
        assert ask(server, authority.trusting(*client_files), "/traits")[0] == 200
        for certificate in ((), unknown_files):
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                ask(server, authority.trusting(*certificate), "/traits")
        assert server.watch("/healthz") == (200, "ok\n")


def test_workers_share_a_certificate(tmp_path, authority, server_files, postgres_url):
    cert, key = server_files
    arguments = ("--workers", "2", "--database", postgres_url, "--tls-cert", cert, "--tls-key", key)
    with serve(*arguments, noun="up", folder=tmp_path) as server:
        assert [ask(server, authority.trusting(), "/healthz")[0] for _ in range(4)] == [200] * 4
        assert server.stop() == 0


@pytest.fixture(scope="module")
def wrong_files(authority, tmp_path_factory):
    """A folder of unusable certificate and key files."""
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
    ("options", "message"),
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
def test_error_for_a_wrong_file_names_it(wrong_files, tmp_path, noun, options, message):
    result = roost(noun, "--listen", "127.0.0.1:0", "--data", tmp_path, *options, cwd=wrong_files)
    code = 4 if "cannot be read" in message else 3
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert message in result.stderr


def test_tokens_over_public_plain_http_need_an_option(tmp_path):
    token = roost("token", "create", "joe", "--role", "admin", "--file", "tokens.toml", cwd=tmp_path).stdout.strip()
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    (tmp_path / "roost.toml").write_text(f"[placement]\n{settings}\n")
    for noun in ("up", "placement"):
        result = roost(noun, "--listen", "0.0.0.0:0", "--data", tmp_path, cwd=tmp_path)
        assert (result.returncode, result.stderr.count("\n")) == (3, 1)
        assert "tokens would travel unencrypted: give --tls-cert and --tls-key, or --allow-plain" in result.stderr
    with serve("--allow-plain-http", noun="up", folder=tmp_path, settings=settings, listen="0.0.0.0:0") as server:
        assert server.ask("GET", "/v1/instances", headers={"x-auth-token": token})[0] == 200

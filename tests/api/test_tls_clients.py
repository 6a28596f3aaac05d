"""Commands and agents that cannot use TLS with their server: one sentence with the cause and the remedy."""

import json
import ssl
import subprocess

import pytest

from roost.client.outage_text import outage_sentence
from tests.support.fleets.products import command, environ, roost
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.servers.servers import serve

pytestmark = [needs_openssl, pytest.mark.long]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def ports(authority, tmp_path_factory):
    """Return the ports of a server with TLS, whose certificate is for 127.0.0.1, and of one without."""
    cert, key = authority.issue("server")
    folder, other = tmp_path_factory.mktemp("tls"), tmp_path_factory.mktemp("plain")
    with (
        serve("--tls-cert", cert, "--tls-key", key, noun="up", folder=folder) as tls,
        serve(noun="up", folder=other) as plain,
    ):
        yield {"tls": tls.port, "plain": plain.port}


MISTAKES = [
    ("http://127.0.0.1", "tls", True, "its port uses TLS; begin the URL with https://"),
    (
        "https://127.0.0.1",
        "plain",
        True,
        "its port does not use TLS; begin the URL with http://, or name the port for https",
    ),
    (
        "https://127.0.0.1",
        "tls",
        False,
        (
            "this machine does not trust the CA of its certificate (unable to get local issuer certificate); "
            "name the file of its CA in the environment variable SSL_CERT_FILE"
        ),
    ),
    (
        "https://localhost",
        "tls",
        True,
        "its certificate is not for localhost; use a name of the certificate in the URL, or replace it",
    ),
]


@pytest.mark.parametrize(("server", "port", "is_trusted", "problem"), MISTAKES)
@pytest.mark.parametrize("words", [("host", "list"), ("events", "--count", "1")], ids=" ".join)
def test_command_describes_a_mistake_of_tls(tmp_path, authority, ports, server, port, is_trusted, problem, words):
    url = f"{server}:{ports[port]}"
    trust = {"SSL_CERT_FILE": str(authority.cert)} if is_trusted else {}
    result = roost(*words, "--url", url, cwd=tmp_path, **trust)
    assert (result.returncode, result.stderr) == (7, f"roost: {url} cannot be used: {problem}\n")


@pytest.mark.parametrize(("server", "port", "is_trusted", "problem"), MISTAKES)
def test_agent_logs_a_mistake_of_tls(tmp_path, authority, ports, server, port, is_trusted, problem):
    url = f"{server}:{ports[port]}"
    trust = {"SSL_CERT_FILE": str(authority.cert)} if is_trusted else {}
    words = ("agent", "--server", url, "--driver", "fake", "--host", "a", "--state-dir", tmp_path)
    with subprocess.Popen(
        command(*words), cwd=tmp_path, env=environ(**trust), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        events = (json.loads(line) for line in agent.stderr)
        away = next(event for event in events if event["event"] == "server_is_away")
        agent.terminate()
        agent.communicate(timeout=60)
    assert (away["server"], away["problem"]) == (url, problem)


def test_command_uses_a_server_whose_ca_it_trusts(tmp_path, authority, ports):
    words = ("host", "list", "--url", f"https://127.0.0.1:{ports['tls']}")
    assert roost(*words, cwd=tmp_path, SSL_CERT_FILE=str(authority.cert)).returncode == 0


@pytest.mark.parametrize(("code", "remedy"), [(10, "renew it"), (9, "check the clocks"), (23, "replace it")])
def test_other_problems_of_a_certificate_have_a_remedy(code, remedy):
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_code, error.verify_message = code, "the reason"
    assert remedy in outage_sentence(error, "https://a:1")


def test_closed_connection_of_a_plain_server_is_no_mistake_of_tls(ports):
    from http.client import RemoteDisconnected

    sentence = outage_sentence(RemoteDisconnected("closed"), f"http://127.0.0.1:{ports['plain']}", advice="; try again")
    assert sentence == f"http://127.0.0.1:{ports['plain']} does not answer: closed; try again"

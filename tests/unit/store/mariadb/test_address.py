import ssl

import pytest

from roost.errors import BadSettings
from roost.store.mariadb.address import Host, read_url


@pytest.mark.parametrize(
    ("url", "hosts", "database"),
    [
        ("mysql://u:p@db/roost", (Host("db", 3306),), "roost"),
        ("mysql+pymysql://u:p@db1:3307,db2/roost?charset=utf8", (Host("db1", 3307), Host("db2", 3306)), "roost"),
        ("mariadb://u:p@[::1]:3308/r%2Fo", (Host("::1", 3308),), "r/o"),
        ("mysql://u:p@localhost/roost?unix_socket=/run/m.sock", (Host("localhost", 3306, "/run/m.sock"),), "roost"),
        ("mysql://u:p@/roost", (Host("localhost", 3306),), "roost"),
    ],
)
def test_hosts_are_read_in_order(url, hosts, database):
    found = read_url(url)
    assert (found.hosts, found.database, found.user, found.password) == (hosts, database, "u", "p")


def test_user_and_password_are_unquoted():
    found = read_url("mysql://a%40b:se%3Acret%25@db/roost")
    assert (found.user, found.password) == ("a@b", "se:cret%")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://u:secret@db:http/roost", "must have ports 1..65535"),
        ("mysql://u:secret@a,b:99999/roost", "must have ports 1..65535"),
        ("mysql://u:secret/1@db/roost", "in a password, write / as %2F"),
        ("mysql://u:secret#1@db/roost", "in a password, write / as %2F, # as %23"),
        ("mysql://u:a?secret=1@db/roost", "in a password, write / as %2F, # as %23, ? as %3F"),
        ("mysql://u:secret@db", "must name a database"),
        ("mysql://u:secret@db/roost?nonsense=1", "has an unknown parameter 'nonsense'"),
        ("mysql://u:secret@db/roost?ssl_ca=/nowhere", "names certificates that cannot be read"),
        ("mysql://u:secret@[db/roost", "is malformed"),
    ],
)
def test_malformed_url_is_refused_without_its_password(url, problem):
    with pytest.raises(BadSettings) as caught:
        read_url(url)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "mode"),
    [
        ("", None),
        ("?charset=utf8", None),
        ("?ssl_verify_cert=true", ssl.CERT_REQUIRED),
        ("?ssl_verify_cert=false", ssl.CERT_NONE),
        (f"?ssl_ca={ssl.get_default_verify_paths().openssl_cafile}&ssl_verify_cert=0", ssl.CERT_NONE),
    ],
)
def test_each_parameter_of_tls_turns_it_on(parameters, mode):
    tls = read_url(f"mysql://u:p@db/roost{parameters}").tls
    assert (None if tls is None else tls.verify_mode) == mode
    assert tls is None or tls.check_hostname == (mode == ssl.CERT_REQUIRED)

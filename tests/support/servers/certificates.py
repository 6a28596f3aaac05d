"""A certificate authority for tests, created with the openssl command."""

import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl command")


class Authority:
    """A CA in a folder, and the certificates that it issues."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder, self.name = folder, name
        self.cert = folder / f"{name}.pem"
        self._openssl(
            "req",
            "-x509",
            *_new_key_options(folder / f"{name}.key"),
            "-out",
            self.cert,
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )

    def issue(self, name: str, *, names: Sequence[str] = ()) -> tuple[Path, Path]:
        """Issue a certificate for this machine, and for DNS names; return the files of the certificate and its key."""
        cert, key, csr = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        self._openssl("req", "-new", *_new_key_options(key), "-out", csr, "-subj", f"/CN={name}")
        extensions = self.folder / f"{name}.ext"
        alternatives = ",".join(["IP:127.0.0.1", *(f"DNS:{each}" for each in names)])
        extensions.write_text(f"subjectAltName={alternatives}\nauthorityKeyIdentifier=keyid\n")
        self._openssl(
            "x509",
            "-req",
            "-in",
            csr,
            "-CA",
            self.cert,
            "-CAkey",
            self.folder / f"{self.name}.key",
            "-days",
            "2",
            "-CAcreateserial",
            "-extfile",
            extensions,
            "-out",
            cert,
        )
        return cert, key

    def trusting(self, *shown: Path) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts this CA and presents a certificate, if given."""
        context = ssl.create_default_context(cafile=str(self.cert))
        if shown:
            context.load_cert_chain(*shown)
        return context

    def _openssl(self, *words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


def _new_key_options(path: Path) -> tuple[object, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path

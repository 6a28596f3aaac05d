"""A certificate authority for tests, made by the openssl command."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl command")


class Authority:
    """A CA in a folder, and what it vouches for."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder, self.name = folder, name
        self.cert = folder / f"{name}.pem"
        self._openssl(
            "req",
            "-x509",
            *_key(folder / f"{name}.key"),
            "-out",
            self.cert,
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the files of a new certificate for this machine, and of its key."""
        cert, key, asked = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        self._openssl("req", "-new", *_key(key), "-out", asked, "-subj", f"/CN={name}")
        said = self.folder / f"{name}.ext"
        said.write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
        self._openssl(
            "x509",
            "-req",
            "-in",
            asked,
            "-CA",
            self.cert,
            "-CAkey",
            self.folder / f"{self.name}.key",
            "-days",
            "2",
            "-CAcreateserial",
            "-extfile",
            said,
            "-out",
            cert,
        )
        return cert, key

    def trusting(self, *shown: Path) -> ssl.SSLContext:
        """Return what a client needs that trusts this CA, and shows a certificate if there is one."""
        context = ssl.create_default_context(cafile=str(self.cert))
        if shown:
            context.load_cert_chain(*shown)
        return context

    def _openssl(self, *words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


def _key(path: Path) -> tuple[object, ...]:
    return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path

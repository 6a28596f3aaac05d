"""Sealed cookies of browser sessions: cookie and key together hold a token, and each alone reveals nothing.

.. code-block:: text

    cookie = base64url(version | nonce | ciphertext | tag)

    ciphertext = (expiry | length | token | zeros) XOR SHAKE-256(HMAC(key, "keystream") | nonce)
    tag        = HMAC(HMAC(key, "tag"), version | nonce | ciphertext)

The zeros fill up whole blocks, to hide the length. HMAC is HMAC-SHA256. Decision 0037 has reasons.
"""

import base64
import hashlib
import hmac

import msgspec

KEY_BYTES, NONCE_BYTES = 32, 16
# Four blocks, in base64url and with all attributes, fit into the 4,096 bytes that browsers keep of a cookie.
_BLOCK_BYTES = 720
_BLOCKS_MAX = 4
_VERSION = b"\x01"
_TAG_BYTES = 32
_EXPIRY_BYTES, _LENGTH_BYTES = 8, 2
_HEAD_BYTES = _EXPIRY_BYTES + _LENGTH_BYTES
_FRAME_BYTES = len(_VERSION) + NONCE_BYTES + _TAG_BYTES
TOKEN_BYTES_MAX = _BLOCKS_MAX * _BLOCK_BYTES - _HEAD_BYTES
_RAW_SIZES = frozenset(_FRAME_BYTES + blocks * _BLOCK_BYTES for blocks in range(1, _BLOCKS_MAX + 1))
_COOKIE_MAX = -(-max(_RAW_SIZES) * 4 // 3)
_PURPOSE = b"roost browser session 1: "


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a cookie."""

    token: str
    expires_at_s: int  # seconds since the epoch


def seal(token: str, key: bytes, *, expires_at_s: int, nonce: bytes) -> str:
    """Return the cookie of a token.

    Args:
        token: characters of Latin-1, at most ``TOKEN_BYTES_MAX``.
        key: ``KEY_BYTES`` random bytes, for this cookie alone.
        expires_at_s: seconds since the epoch, >= 0.
        nonce: ``NONCE_BYTES`` random bytes.
    """
    text = token.encode("latin-1")
    assert len(key) == KEY_BYTES, len(key)
    assert len(nonce) == NONCE_BYTES, len(nonce)
    assert len(text) <= TOKEN_BYTES_MAX, len(text)
    plain = expires_at_s.to_bytes(_EXPIRY_BYTES) + len(text).to_bytes(_LENGTH_BYTES) + text
    plain += bytes(-len(plain) % _BLOCK_BYTES)
    body = _VERSION + nonce + _mask(plain, key, nonce)
    return encode_base64url(body + _tag_of(body, key))


def unseal(cookie: str, key: bytes, *, now_s: float) -> Session | None:
    """Return the content of a cookie; None: the key does not match, the cookie is changed, or the session has expired.

    Args:
        now_s: seconds since the epoch.
    """
    raw = decode_base64url(cookie) if len(cookie) <= _COOKIE_MAX else None
    if raw is None or len(raw) not in _RAW_SIZES or len(key) != KEY_BYTES:
        return None
    body, tag = raw[:-_TAG_BYTES], raw[-_TAG_BYTES:]
    if not body.startswith(_VERSION) or not hmac.compare_digest(_tag_of(body, key), tag):
        return None
    nonce, ciphertext = body[len(_VERSION) :][:NONCE_BYTES], body[len(_VERSION) + NONCE_BYTES :]
    plain = _mask(ciphertext, key, nonce)
    expires_at_s = int.from_bytes(plain[:_EXPIRY_BYTES])
    length = int.from_bytes(plain[_EXPIRY_BYTES:_HEAD_BYTES])
    if now_s >= expires_at_s or length > len(plain) - _HEAD_BYTES:
        return None
    return Session(token=plain[_HEAD_BYTES:][:length].decode("latin-1"), expires_at_s=expires_at_s)


def encode_base64url(data: bytes) -> str:
    """Return bytes in the alphabet for URLs, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64url(text: str) -> bytes | None:
    """Return the bytes of a text from ``encode_base64url``; None: no such text.

    Each value has one text; the decoder of the standard library also accepts others.
    """
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if encode_base64url(data) == text else None


def _mask(data: bytes, key: bytes, nonce: bytes) -> bytes:
    """Encrypt or decrypt."""
    stream = hashlib.shake_256(_derive(key, b"keystream") + nonce).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


def _tag_of(body: bytes, key: bytes) -> bytes:
    return hmac.digest(_derive(key, b"tag"), body, "sha256")


def _derive(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + purpose, "sha256")

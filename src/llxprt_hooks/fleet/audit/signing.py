"""Signatures of the audit trail: Ed25519, with the keys that NATS calls NKeys.

nkeys is imported when a key is used. It comes with the extra ``nats``.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from llxprt_hooks._support.text import from_extra

Sign = Callable[[bytes], bytes]
IsSigned = Callable[[bytes, bytes], bool]
"""Whether a text has a signature: text, signature."""

_PUBLIC_BYTES: Final = 35
"""The prefix, the key, and a checksum of two bytes."""


class SigningKeyError(OSError):
    """A signing key cannot be used. The message has no part of it."""


def new_key(file: Path) -> str:
    """Write the seed of a new key to a file that only its user can read. Return the public key. Raises ``OSError``."""
    nkeys = _nkeys()
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, bytes(seed) + b"\n")
    finally:
        os.close(descriptor)
    return str(nkeys.from_seed(bytearray(seed)).public_key.decode())


def signer(file: Path) -> Sign:
    """Return a function that signs with the seed in a file. Raises ``SigningKeyError``."""
    nkeys = _nkeys()
    try:
        if file.stat().st_mode & 0o077:
            raise SigningKeyError(f"others can read the signing key {file}: fix it with `chmod 600`")
        pair = nkeys.from_seed(bytearray(file.read_bytes().strip()))
    except SigningKeyError:
        raise
    except OSError as error:
        raise SigningKeyError(f"the signing key {file} cannot be read: {error.strerror}") from error
    except Exception as error:  # nkeys raises different ones for each part of a seed
        raise SigningKeyError(f"{file} does not contain the seed of an NKey") from error
    return lambda text: bytes(pair.sign(text))


def signature_check(public: str) -> IsSigned:
    """Return a function that checks signatures with a public key. Raises ``ValueError``."""
    nkeys = _nkeys()
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    try:
        raw = base64.b32decode(public)
    except ValueError:
        raw = b""
    if len(raw) != _PUBLIC_BYTES or nkeys.crc16(bytearray(raw[:-2])).to_bytes(2, "little") != raw[-2:]:
        raise ValueError(f"expected a public key such as `llxprt-hooks log keygen` prints, found {public!r:.80}")
    key = VerifyKey(raw[1:-2])

    def is_signed(text: bytes, signature: bytes) -> bool:
        try:
            key.verify(text, signature)
        except (BadSignatureError, ValueError):
            return False
        return True

    return is_signed


def _nkeys() -> Any:
    with from_extra("nats", "a signed audit trail"):
        import nkeys  # type: ignore[import-untyped]
    return nkeys

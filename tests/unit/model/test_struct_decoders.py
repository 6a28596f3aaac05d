"""Tests of decoders that exist before threads start."""

import subprocess
import sys
import textwrap

import msgspec

from roost.model.struct_decoders import find_structs, prepare_decoders

_RACE = """
    import sys
    import threading
    from typing import Annotated, Literal

    import msgspec

    from roost.model.struct_decoders import prepare_decoders

    sys.setswitchinterval(1e-6)
    count = Annotated[int, msgspec.Meta(ge=0)] | None | Literal["a", "b"]
    values = {f"field{number}": number for number in range(20)}
    for number in range(300):
        kind = msgspec.defstruct(f"Kind{number}", [(name, count, None) for name in values])
        if "prepare" in sys.argv:
            prepare_decoders()
        barrier = threading.Barrier(2)

        def convert():
            barrier.wait()
            assert msgspec.convert(values, kind).field7 == 7

        threads = [threading.Thread(target=convert) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""


class _Outer(msgspec.Struct):
    inner: "_Inner"


class _Inner(msgspec.Struct):
    number: int


class _Derived(_Inner):
    text: str


class _NoDecoder(msgspec.Struct):
    either: _Outer | _Inner


def test_two_threads_may_be_the_first_to_decode_a_prepared_struct():
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_RACE), "prepare"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_all_structs_are_found_once():
    found = list(find_structs())
    assert {_Outer, _Inner, _Derived, _NoDecoder} <= set(found)
    assert len(found) == len(set(found))


def test_second_call_prepares_new_structs_only():
    prepare_decoders()
    assert prepare_decoders() == 0
    kind = msgspec.defstruct("New", [("number", int)])
    assert prepare_decoders() == 1
    assert msgspec.convert({"number": 1}, kind).number == 1

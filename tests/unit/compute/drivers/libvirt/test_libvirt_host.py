import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.compute.drivers.libvirt.host import (
    Encryption,
    cpu_traits,
    divide_cpus,
    list_cpu_traits,
    read_capabilities,
    read_encryption,
    read_processors,
)
from roost.errors import BadSettings, DriverNotReady
from roost.model.devices.numa import MemoryPages, NumaCell
from tests.support.agents import libvirt_xml

TWO = (
    libvirt_xml.cell(0, {0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5"}, huge=512),
    libvirt_xml.cell(1, {2: "2,6", 3: "", 6: "2,6"}, memory_mb=1024),
)


def told(*cells, **more):
    return read_capabilities(libvirt_xml.capabilities(cells, **more))


def test_memory_nodes_have_processors_threads_memory_and_pages():
    assert told(*TWO).cells == (
        NumaCell(
            id=0,
            cpus=(0, 1, 4, 5),
            memory_mb=65_536,
            siblings=((0, 4), (1, 5)),
            socket=0,
            mempages=(MemoryPages(size_kb=4, total=65_536 * 256), MemoryPages(size_kb=2048, total=512)),
        ),
        NumaCell(
            id=1,
            cpus=(2, 6),
            memory_mb=1024,
            siblings=((2, 6),),
            socket=1,
            mempages=(MemoryPages(size_kb=4, total=1024 * 256),),
        ),
    )


def test_a_host_without_threads_tells_no_siblings():
    assert told(libvirt_xml.cell(0, {0: "0", 1: "1"})).cells[0].siblings == ()


def test_guests_run_under_kvm_where_that_is_there():
    assert told().domain_type() == "kvm"
    assert told().domain_type("qemu") == "qemu"
    assert told(kvm=False).domain_type() == "qemu"
    assert told().kinds == (("x86_64", "qemu", "hvm"), ("x86_64", "kvm", "hvm"), ("aarch64", "qemu", "hvm"))
    assert told(*TWO).cpu_info["topology"] == {"sockets": 2, "cores": 2, "threads": 2, "cells": 2}


def test_a_host_that_runs_none_of_its_own_kind_says_so():
    text = libvirt_xml.capabilities().replace("<arch name='x86_64'>", "<arch name='s390x'>")
    with pytest.raises(BadSettings, match="runs no guests of its architecture, x86_64"):
        read_capabilities(text).domain_type()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<capabilities><host>", "what cannot be understood"),
        ("<capabilities/>", "which processors the host has"),
        (libvirt_xml.capabilities(TWO).replace("size='4'>", "size='x'>"), "cannot be understood: invalid literal"),
    ],
)
def test_what_cannot_be_understood_is_asked_again(text, problem):
    with pytest.raises(DriverNotReady, match=problem):
        read_capabilities(text)


@pytest.mark.parametrize(
    ("feature", "traits"),
    [
        ("avx2", {"HW_CPU_X86_AVX2"}),
        ("sse4.2", {"HW_CPU_X86_SSE42"}),
        ("pni", {"HW_CPU_X86_SSE3"}),
        ("fma", {"HW_CPU_X86_FMA3"}),
        ("aes", {"HW_CPU_X86_AESNI"}),
        ("sha-ni", {"HW_CPU_X86_SHA"}),
        ("rtm", {"HW_CPU_X86_TSX"}),
        ("vaes", {"HW_CPU_X86_AVX512VAES"}),
        ("avx512-vpopcntdq", {"HW_CPU_X86_AVX512VPOPCNTDQ"}),
        ("amx-bf16", {"HW_CPU_X86_AMXBF16"}),
        ("vmx", {"HW_CPU_X86_VMX", "HW_CPU_X86_INTEL_VMX"}),
        ("ssbd", {"HW_CPU_X86_INTEL_SSBD"}),
        ("md-clear", {"HW_CPU_X86_INTEL_MD_CLEAR"}),
        ("umip", set()),
    ],
)
def test_features_are_traits(feature, traits):
    assert cpu_traits(told(features=(feature,))) == traits
    assert traits <= list_cpu_traits()


def test_traits_name_the_vendor_and_threads():
    amd = told(*TWO, vendor="AMD", features=("svm", "amd-ssbd"))
    assert cpu_traits(amd) == {
        "HW_CPU_X86_SVM",
        "HW_CPU_X86_AMD_SVM",
        "HW_CPU_X86_AMD_SSBD",
        "HW_CPU_HYPERTHREADING",
    }


def test_processors_are_shared_unless_said_otherwise():
    cells = told(*TWO).cells
    assert divide_cpus(cells, shared=None, dedicated=None) == cells
    parts = divide_cpus(cells, shared=frozenset({0, 4}), dedicated=frozenset({1, 5, 2}))
    assert [(each.cpus, each.pcpus) for each in parts] == [((0, 4), (1, 5)), ((), (2,))]
    parts = divide_cpus(cells, shared=None, dedicated=frozenset({1}))
    assert [(each.cpus, each.pcpus) for each in parts] == [((), (1,)), ((), ())]


def test_processors_that_are_not_there_or_are_both_are_refused():
    cells = told(*TWO).cells
    with pytest.raises(BadSettings, match="option cpu_shared_set: the host has no processor 3, 9"):
        divide_cpus(cells, shared=frozenset({0, 3, 9}), dedicated=None)
    with pytest.raises(BadSettings, match="option cpu_dedicated_set: cpu_shared_set has 0, too"):
        divide_cpus(cells, shared=frozenset({0, 1}), dedicated=frozenset({0, 2}))


def test_a_set_of_processors_is_read():
    assert read_processors("0-3, ^2,8") == {0, 1, 3, 8}
    assert read_processors("^0-1,0-3") == {2, 3}
    for text in ("", "a", "3-1", "-1", "1-", "1,,2", "^", "0-999999"):
        with pytest.raises(ValueError, match=r"names no processors|ends before it begins"):
            read_processors(text)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_set_of_processors_that_is_written_out_is_read_back(numbers):
    assert read_processors(",".join(map(str, numbers))) == numbers


def test_a_host_encrypts_the_memory_of_as_many_guests_as_it_says():
    told = libvirt_xml.domain_capabilities()
    assert read_encryption(told) == Encryption(contexts=15, bit=47, reduced_bits=1)


@pytest.mark.parametrize(
    "told", [{"is_supported": False}, {"contexts": None}, {"contexts": 0}], ids=["not supported", "not told", "none"]
)
def test_a_host_that_does_not_say_for_how_many_guests_encrypts_none(told):
    assert read_encryption(libvirt_xml.domain_capabilities(**told)) is None
    assert read_encryption("<domainCapabilities><features/></domainCapabilities>") is None


def test_encryption_that_makes_no_sense_is_told():
    with pytest.raises(DriverNotReady, match="libvirt tells of encryption what cannot be understood"):
        read_encryption(libvirt_xml.domain_capabilities(told="many"))

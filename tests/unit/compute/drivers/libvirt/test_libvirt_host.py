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


def capabilities_of(*cells, **more):
    return read_capabilities(libvirt_xml.capabilities(cells, **more))


def test_numa_cells_have_cpus_siblings_memory_and_pages():
    assert capabilities_of(*TWO).cells == (
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


def test_host_without_hyperthreading_has_no_siblings():
    assert capabilities_of(libvirt_xml.cell(0, {0: "0", 1: "1"})).cells[0].siblings == ()


def test_domain_type_is_kvm_where_available():
    assert capabilities_of().domain_type() == "kvm"
    assert capabilities_of().domain_type("qemu") == "qemu"
    assert capabilities_of(kvm=False).domain_type() == "qemu"
    assert capabilities_of().kinds == (("x86_64", "qemu", "hvm"), ("x86_64", "kvm", "hvm"), ("aarch64", "qemu", "hvm"))
    assert capabilities_of(*TWO).cpu_info["topology"] == {"sockets": 2, "cores": 2, "threads": 2, "cells": 2}


def test_host_without_guests_of_its_architecture_is_a_clear_error():
    text = libvirt_xml.capabilities().replace("<arch name='x86_64'>", "<arch name='s390x'>")
    with pytest.raises(BadSettings, match="runs no guests of its architecture, x86_64"):
        read_capabilities(text).domain_type()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<capabilities><host>", "malformed XML"),
        ("<capabilities/>", "does not report the processors of the host"),
        (libvirt_xml.capabilities(TWO).replace("size='4'>", "size='x'>"), "malformed capabilities: invalid literal"),
    ],
)
def test_malformed_capabilities_are_driver_not_ready(text, problem):
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
def test_cpu_features_map_to_traits(feature, traits):
    assert cpu_traits(capabilities_of(features=(feature,))) == traits
    assert traits <= list_cpu_traits()


def test_traits_include_vendor_and_hyperthreading():
    amd = capabilities_of(*TWO, vendor="AMD", features=("svm", "amd-ssbd"))
    assert cpu_traits(amd) == {
        "HW_CPU_X86_SVM",
        "HW_CPU_X86_AMD_SVM",
        "HW_CPU_X86_AMD_SSBD",
        "HW_CPU_HYPERTHREADING",
    }


def test_cpus_are_shared_unless_configured_otherwise():
    cells = capabilities_of(*TWO).cells
    assert divide_cpus(cells, shared=None, dedicated=None) == cells
    parts = divide_cpus(cells, shared=frozenset({0, 4}), dedicated=frozenset({1, 5, 2}))
    assert [(each.cpus, each.pcpus) for each in parts] == [((0, 4), (1, 5)), ((), (2,))]
    parts = divide_cpus(cells, shared=None, dedicated=frozenset({1}))
    assert [(each.cpus, each.pcpus) for each in parts] == [((), (1,)), ((), ())]


def test_missing_or_doubly_assigned_cpus_are_refused():
    cells = capabilities_of(*TWO).cells
    with pytest.raises(BadSettings, match="option cpu_shared_set: the host has no processor 3, 9"):
        divide_cpus(cells, shared=frozenset({0, 3, 9}), dedicated=None)
    with pytest.raises(BadSettings, match="option cpu_dedicated_set: cpu_shared_set also has 0"):
        divide_cpus(cells, shared=frozenset({0, 1}), dedicated=frozenset({0, 2}))


def test_cpu_sets_are_parsed():
    assert read_processors("0-3, ^2,8") == {0, 1, 3, 8}
    assert read_processors("^0-1,0-3") == {2, 3}
    for text in ("", "a", "3-1", "-1", "1-", "1,,2", "^", "0-999999"):
        with pytest.raises(ValueError, match=r"is not a set of processors|ends before it begins"):
            read_processors(text)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpu_set_round_trips(numbers):
    assert read_processors(",".join(map(str, numbers))) == numbers


def test_encryption_contexts_are_read_from_domain_capabilities():
    xml = libvirt_xml.domain_capabilities()
    assert read_encryption(xml) == Encryption(contexts=15, bit=47, reduced_bits=1)


@pytest.mark.parametrize(
    "fields", [{"is_supported": False}, {"contexts": None}, {"contexts": 0}], ids=["not supported", "unknown", "none"]
)
def test_host_without_encryption_contexts_encrypts_nothing(fields):
    assert read_encryption(libvirt_xml.domain_capabilities(**fields)) is None
    assert read_encryption("<domainCapabilities><features/></domainCapabilities>") is None


def test_malformed_encryption_is_a_clear_error():
    with pytest.raises(DriverNotReady, match="libvirt returned malformed encryption capabilities"):
        read_encryption(libvirt_xml.domain_capabilities(told="many"))

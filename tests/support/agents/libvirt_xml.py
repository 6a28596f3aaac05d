"""libvirt's XML descriptions of large hosts: capabilities and node devices."""


def capabilities(cells=(), *, model="Cascadelake-Server", features=("avx512f", "vmx"), vendor="Intel", kvm=True):
    """Return the capabilities of a host; ``cells`` is the XML of its memory nodes."""
    named = "".join(f"<feature name='{each}'/>" for each in features)
    kinds = "<domain type='qemu'/>" + "<domain type='kvm'/>" * kvm
    return f"""
<capabilities>
  <host>
    <uuid>5a1f0f0e-5d3c-4a4e-9b57-0b0f4a1f7d11</uuid>
    <cpu>
      <arch>x86_64</arch><model>{model}</model><vendor>{vendor}</vendor>
      <topology sockets='2' dies='1' cores='2' threads='2'/>
      {named}
      <pages unit='KiB' size='4'/>
    </cpu>
    <topology><cells num='{len(cells)}'>{"".join(cells)}</cells></topology>
  </host>
  <guest>
    <os_type>hvm</os_type>
    <arch name='x86_64'><wordsize>64</wordsize>{kinds}</arch>
  </guest>
  <guest><os_type>hvm</os_type><arch name='aarch64'><domain type='qemu'/></arch></guest>
</capabilities>"""


def cell(number, processors, *, memory_mb=65_536, huge=0):
    """Return a memory node; ``processors`` maps each number to its siblings, or to "" if it is offline."""
    listed = "".join(
        f"<cpu id='{each}' socket_id='{number}' die_id='0' core_id='0' siblings='{siblings}'/>"
        if siblings
        else f"<cpu id='{each}'/>"
        for each, siblings in processors.items()
    )
    return f"""
<cell id='{number}'>
  <memory unit='KiB'>{memory_mb * 1024}</memory>
  <pages unit='KiB' size='4'>{memory_mb * 256}</pages>
  <pages unit='KiB' size='2048'>{huge}</pages>
  <cpus num='{len(processors)}'>{listed}</cpus>
</cell>"""


def pci(address, vendor, product, *, numa=None, parent=None, functions=0, types=()):
    """Return a PCI device; ``types`` has pairs of a type of mediated devices and the number still available."""
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    more = f"<numa node='{numa}'/>" if numa is not None else ""
    if parent:
        above = "domain='0x{}' bus='0x{}' slot='0x{}' function='0x{}'".format(*parent.replace(".", ":").split(":"))
        more += f"<capability type='phys_function'><address {above}/></capability>"
    if functions:
        more += f"<capability type='virt_functions' maxCount='{functions}'/>"
    if types:
        listed = "".join(
            f"<type id='{kind}'><name>GRID</name><deviceAPI>vfio-pci</deviceAPI>"
            f"<availableInstances>{count}</availableInstances></type>"
            for kind, count in types
        )
        more += f"<capability type='mdev_types'>{listed}</capability>"
    return f"""
<device>
  <name>{name_of(address)}</name>
  <parent>computer</parent>
  <capability type='pci'>
    <class>0x030000</class>
    <domain>{int(domain, 16)}</domain><bus>{int(bus, 16)}</bus>
    <slot>{int(slot, 16)}</slot><function>{int(function, 16)}</function>
    <product id='0x{product}'>a card</product><vendor id='0x{vendor}'>a maker</vendor>
    {more}
  </capability>
</device>"""


def name_of(address):
    """Return libvirt's name of a PCI device."""
    return "pci_" + address.replace(":", "_").replace(".", "_")


def mdev(uuid, gpu, kind, *, is_told=True):
    """Return a mediated device on the device ``gpu``. Older versions of libvirt omit the uuid: ``is_told=False``."""
    told = f"<uuid>{uuid}</uuid>" if is_told else ""
    return f"""
<device>
  <name>mdev_{uuid.replace("-", "_")}{"" if is_told else "_0000_06_00_0"}</name>
  <parent>{gpu}</parent>
  <capability type='mdev'><type id='{kind}'/>{told}<iommuGroup number='0'/></capability>
</device>"""


def domain_capabilities(*, contexts=15, is_supported=True, told="47"):
    """Return the domain capabilities of a host with or without encrypted guest memory."""
    counts = f"<maxGuests>{contexts}</maxGuests><maxESGuests>0</maxESGuests>" if contexts is not None else ""
    inside = f"<cbitpos>{told}</cbitpos><reducedPhysBits>1</reducedPhysBits>{counts}"
    sev = f"<sev supported='{'yes' if is_supported else 'no'}'>{inside}</sev>"
    return f"<domainCapabilities><arch>x86_64</arch><features>{sev}</features></domainCapabilities>"

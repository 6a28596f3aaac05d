"""The libvirt driver. Read ``driver`` first.

``driver``: the driver.
``link``: the connection to libvirt.
``host``: capabilities of a host.
``domain_xml``: guests as XML.
``devices``: PCI devices and vGPUs.
``disks``: files of guests.
``providers``: provider tree of a host.
``options``: options of the driver.
``build_errors``: errors of builds, and their undoing.
"""

"""The libvirt driver: guests as domains, disks in a folder."""

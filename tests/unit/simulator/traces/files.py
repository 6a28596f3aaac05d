"""Small traces that tests write, and the published traces if they are available."""

import os
from pathlib import Path

import pytest

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,32000,131072,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,460,,LS,Running,0,50,0\n"
    "p1,6000,0,2,1000,P100|V100M16,LS,Running,10,10,\n"
    "p2,8000,30517,0,0,,BE,Pending,50,99,\n"
)
VMS = (
    "vmId,tenantId,cores,ram,vmTypeId,starttime,endtime\n"
    "7,70,200.0,28.0,0,-1497.0,inf\n8,71,42.0,7.0,0,0.5,2\n9,71,8,7,0,2,3.25\n"
)
HOSTS = "CPU1,RAM1,CPU2,RAM2\n16,32,32,64\n34,68,0,0\n"
RACKS = "host_id,rack_id\nhost-0,0.0\nhost-1,1.0\nhost-2,1.0\n"
SEQUENCE = (
    "flavor_vcpus,flavor_ram,numa,strategy,group,domain\n"
    "8,16,1,fault_domain,0,1\n"
    "8,16,1,fault_domain,0,2\n"
    "5,9,2,anti-affinity,0,\n"
    "2,4,1,,,\n"
    "2,4,1,affinity,3,\n"
)


def write(folder: Path, **texts: str) -> list[Path]:
    """Write each text to a file of its name, and return the paths in order."""
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.csv"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def real(*names: str) -> list[Path]:
    """Return files of the published traces, or skip the test."""
    folder = os.environ.get("ROOST_TRACES")
    if not folder:
        pytest.skip("ROOST_TRACES names no folder with the published traces (openb, cospot, huawei)")
    paths = [Path(folder, name) for name in names]
    absent = [str(path) for path in paths if not path.is_file()]
    if absent:
        pytest.skip(f"not there: {', '.join(absent)}")
    return paths

"""Small lists of nodes and pods for the lab's tests."""

NODES = "sn,cpu_milli,memory_mib,gpu,model\nb,32000,131072,2,T4\na,16000,65536,4,G2\nc,8000,32768,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p3,1000,1024,1,1500,\n"
    "p0,4000,4096,1,500,T4||G2\n"
    "p1,2000,2048,2,1000,\n"
    "p2,500,512,0,900,T4\n"
)


def write(folder, **texts):
    """Write each text to a file of its name, and return the paths in order."""
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text(text, encoding="utf-8")
    return paths

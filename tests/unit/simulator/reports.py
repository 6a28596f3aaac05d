"""A replay report with a value in every field."""

from roost.simulator.report import ClassUse, RefusedReason, ReplayReport

REPORT = ReplayReport(
    workload="pods",
    notes=("one VCPU is 1/1000 of a core",),
    hosts=1_523,
    providers=7_735,
    requests=8_152,
    placed=8_000,
    refused=152,
    instances_placed=8_000,
    instances_alive=35,
    refused_reasons=[RefusedReason(reason=f"lack thing {n}", count=40 - n, example="") for n in range(12)],
    decision_us_p50=181.6,
    decision_us_p99=1_402.2,
    decisions_per_s=5_120.4,
    work_s=1.592,
    install_s=0.25,
    classes=[
        ClassUse(
            resource_class="VCPU",
            capacity=107_018_000,
            used=1_000,
            peak=53_509_000,
            typical=8_000,
            stranded_share=0.125,
        ),
        ClassUse(resource_class="PGPU", capacity=12, used=0, peak=0, typical=None, stranded_share=None),
    ],
    gpu_fragmentation=0.0457,
)

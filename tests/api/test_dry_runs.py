"""A dry run says what reality then is, bit for bit, and a stored decision replays to itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asking import asking_own
from tests.worlds import aggregate, group, host, joined

FLEET = joined(
    aggregate("zone-a", availability_zone="a"), aggregate("fast", ssd="true"),
    *(host(f"h{n}", aggregates=["zone-a"][: n % 2] + ["fast"][: n % 3 == 0], VCPU=4 + n % 3, MEMORY_MB=64)
      for n in range(7)),
    group("apart", "anti-affinity"), group("near", "affinity"),
)  # fmt: skip
# What is of one answer alone.
OWN = {"uuid": "", "decided_at_s": 0.0, "dry_run": False, "seed": 0, "position": 0}

REQUESTS = st.fixed_dictionaries(
    {
        "flavor": st.fixed_dictionaries(
            {"name": st.sampled_from(["one", "two"]), "vcpus": st.integers(0, 5), "memory_mb": st.integers(0, 40)}
        )
    },
    optional={
        "count": st.integers(1, 4),
        "group": st.sampled_from(["apart", "near"]),
        "availability_zone": st.sampled_from(["a", "nova", "none"]),
        "ignore_hosts": st.lists(st.sampled_from(["h0", "h1", "h5"]), max_size=2),
        "force_hosts": st.lists(st.sampled_from(["h2", "h3"]), max_size=1),
        "hints": st.dictionaries(st.just("different_cell"), st.just("x")),
    },
)


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=8))
def test_a_dry_run_is_reality_before_it_happens(requests):
    with asking_own(FLEET) as own:
        for request in requests:
            dry, real = (own.post("/decisions", {**request, "dry_run": is_dry}) for is_dry in (True, False))
            if real.status != 201:
                assert (dry.status, dry.json["detail"]) == (real.status, real.json["detail"])
                continue
            assert told(dry.json) == told(real.json)
            assert own.post(f"/decisions/{real.json['uuid']}/replay", {}).json["is_same"]


def told(decision):
    """Give what a decision says but for what every one has of its own."""
    picks = [{**pick, "instance_uuid": None} for pick in decision["picks"]]
    return {**decision, **OWN, "picks": picks}

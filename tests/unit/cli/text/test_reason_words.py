"""Reasons of refusals in the words of operators."""

import pytest

from roost.cli.text.reason_words import reason_words, refusal_words

ZONE_RULE = "map_az_to_placement_aggregate"


@pytest.mark.parametrize(
    ("reason", "rule", "zone", "words"),
    [
        ("are not in the requested tree", "search", "", "are not the requested host"),
        ("have forbidden trait COMPUTE_STATUS_DISABLED", "compute_status_filter", "", "are disabled"),
        ("have forbidden trait CUSTOM_A", "search", "", "have forbidden trait CUSTOM_A"),
        ("are not in the requested aggregates", ZONE_RULE, "east", "are outside availability zone east"),
        ("are in a forbidden aggregate", ZONE_RULE, "nova", "are outside availability zone nova"),
        ("are not in the requested aggregates", ZONE_RULE, None, "are outside the requested availability zone"),
        ("are not in the requested aggregates", "require_tenant_aggregate", "", "are not in the requested aggregates"),
        ("is not in the requested aggregates", "", "", "is outside the requested zone or aggregates"),
    ],
)
def test_reason_has_the_words_of_operators(reason, rule, zone, words):
    assert reason_words(reason, rule=rule, zone=zone) == words
    assert reason_words(words, rule=rule, zone=zone) == words


def test_line_of_a_refusal_names_the_zone_by_its_rule():
    text = "0 of 4 hosts: 2 are not in the requested aggregates, 1 is not in the requested tree, 1 lacks 1 VCPU or more"
    stages = [
        (ZONE_RULE, 2, "are not in the requested aggregates"),
        ("search", 1, "are not in the requested tree"),
        ("search", 1, "lack 1 VCPU or more"),
    ]
    assert refusal_words(text, stages, zone="east") == (
        "0 of 4 hosts: 2 are outside availability zone east, 1 is not the requested host, 1 lacks 1 VCPU or more"
    )

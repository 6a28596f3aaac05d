import pytest

from roost.cli.event_types import check_types
from roost.errors import BadRequest


@pytest.mark.parametrize(
    "text", ["instance.", "inst", "instance.spawn.built", "scheduler.", "agent.gone", "host.disable", "operation.build"]
)
def test_prefix_of_a_known_type_is_accepted(text):
    check_types((text,))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("nosuch", "types begin with agent, aggregate"),
        ("instance.spwan.built", "no event has the type 'instance.spwan.built'"),
        ("agent.gon3", "did you mean 'agent.gone'?"),
    ],
)
def test_unknown_type_is_refused_with_a_hint(text, hint):
    with pytest.raises(BadRequest) as error:
        check_types((text,))
    assert hint in str(error.value)


def test_unknown_type_is_refused_before_the_server_is_reached(run):
    code, _, error = run("events", "--type", "nosuch", "--url", "http://127.0.0.1:1")
    assert (code, error.startswith("roost: --type: no event has the type 'nosuch'")) == (2, True)

import math

import pytest

from roost.compute.drivers.fake.script import FakeNode, Fault, Script
from roost.compute.inventory.monitors import Monitors
from roost.errors import BadSettings
from tests.support.agents.driver_doubles import fake

NODE = "host-a"


def times(user, kernel, idle, iowait):
    return {
        "cpu.user.time": user,
        "cpu.kernel.time": kernel,
        "cpu.idle.time": idle,
        "cpu.iowait.time": iowait,
    }


def measuring(*faults, **metrics):
    return fake(Script(node=(FakeNode(metrics=metrics),), fault=faults))


def test_all_names_come_of_frequency_and_times():
    monitors = Monitors(["cpu.virt_driver"])
    told = times(10.0, 20.0, 60.0, 10.0) | {"cpu.frequency": 2400.0}
    assert monitors.metrics(measuring(**told), NODE) == told | {
        "cpu.user.percent": 0.1,
        "cpu.kernel.percent": 0.2,
        "cpu.idle.percent": 0.6,
        "cpu.iowait.percent": 0.1,
        "cpu.percent": 0.4,
    }


def test_shares_are_those_of_the_time_since_it_was_asked_before():
    monitors = Monitors(["cpu.virt_driver"])
    monitors.metrics(measuring(**times(10.0, 20.0, 60.0, 10.0)), NODE)
    later = monitors.metrics(measuring(**times(20.0, 20.0, 60.0, 40.0)), NODE)
    assert [later[f"cpu.{kind}percent"] for kind in ("user.", "kernel.", "idle.", "iowait.", "")] == [
        0.25,
        0.0,
        0.0,
        0.75,
        1.0,
    ]


def test_a_host_that_was_started_anew_counts_from_the_start():
    monitors = Monitors(["cpu.virt_driver"])
    monitors.metrics(measuring(**times(100.0, 100.0, 100.0, 100.0)), NODE)
    later = monitors.metrics(measuring(**times(1.0, 0.0, 3.0, 0.0)), NODE)
    assert (later["cpu.user.percent"], later["cpu.percent"]) == (0.25, 0.25)


def test_nodes_have_readings_of_their_own():
    measured = {"a": times(1.0, 0.0, 1.0, 0.0), "b": times(9.0, 0.0, 1.0, 0.0)}
    driver = fake(Script(node=tuple(FakeNode(name=name, metrics=told) for name, told in measured.items())))
    monitors = Monitors(["cpu.virt_driver"])
    assert [monitors.metrics(driver, node)["cpu.percent"] for node in ("a", "b")] == [0.5, 0.9]
    assert "cpu.percent" not in monitors.metrics(driver, "a")  # No time went by.


def test_what_the_driver_tells_itself_is_taken_and_what_is_no_number_or_not_of_the_processor_is_not():
    told = {
        "cpu.percent": 0.75,
        "cpu.frequency": float("nan"),
        "disk.io": 7.0,
        "cpu.large": 1e39,
        "cpu.endless": -math.inf,
        "cpu.\0": 1.0,
    }
    assert Monitors(["cpu.virt_driver"]).metrics(measuring(**told), NODE) == {"cpu.percent": 0.75}
    whole = Monitors(["virt_driver"]).metrics(measuring(**told, **times(1.0, 1.0, 1.0, 1.0)), NODE)
    assert (whole["cpu.percent"], whole["cpu.idle.percent"]) == (0.75, 0.25)


def test_without_monitors_nothing_is_asked():
    assert (
        Monitors([]).metrics(measuring(Fault(action="metrics", kind="crash"), **times(1.0, 1.0, 1.0, 1.0)), NODE) == {}
    )


def test_a_driver_that_cannot_tell_is_logged_and_goes_on(capfd):
    driver = measuring(Fault(action="metrics", kind="crash", times=1), **{"cpu.percent": 0.5})
    monitors = Monitors(["cpu.virt_driver"])
    assert monitors.metrics(driver, NODE) == {}
    assert "metrics of host-a" in capfd.readouterr().err
    assert monitors.metrics(driver, NODE) == {"cpu.percent": 0.5}


def test_a_monitor_that_there_is_not_is_named():
    with pytest.raises(BadSettings, match=r"^compute_monitors: there is no monitor numa_mem_bw.virt_driver, only cpu"):
        Monitors(["cpu.virt_driver", "numa_mem_bw.virt_driver"])

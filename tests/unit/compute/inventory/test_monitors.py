import math

import pytest

from roost.compute.drivers.fake.script import FakeNode, Fault, Script
from roost.compute.inventory.monitors import Monitors
from roost.errors import BadSettings
from tests.support.agents.driver_doubles import fake_driver

NODE = "host-a"


def times(user, kernel, idle, iowait):
    return {
        "cpu.user.time": user,
        "cpu.kernel.time": kernel,
        "cpu.idle.time": idle,
        "cpu.iowait.time": iowait,
    }


def driver_with_metrics(*faults, **metrics):
    return fake_driver(Script(node=(FakeNode(metrics=metrics),), fault=faults))


def test_percentages_are_derived_from_cpu_times():
    monitors = Monitors(["cpu.virt_driver"])
    readings = times(10.0, 20.0, 60.0, 10.0) | {"cpu.frequency": 2400.0}
    assert monitors.metrics(driver_with_metrics(**readings), NODE) == readings | {
        "cpu.user.percent": 0.1,
        "cpu.kernel.percent": 0.2,
        "cpu.idle.percent": 0.6,
        "cpu.iowait.percent": 0.1,
        "cpu.percent": 0.4,
    }


def test_percentages_cover_the_time_since_the_last_reading():
    monitors = Monitors(["cpu.virt_driver"])
    monitors.metrics(driver_with_metrics(**times(10.0, 20.0, 60.0, 10.0)), NODE)
    later = monitors.metrics(driver_with_metrics(**times(20.0, 20.0, 60.0, 40.0)), NODE)
    assert [later[f"cpu.{kind}percent"] for kind in ("user.", "kernel.", "idle.", "iowait.", "")] == [
        0.25,
        0.0,
        0.0,
        0.75,
        1.0,
    ]


def test_percentages_start_over_after_a_host_reboot():
    monitors = Monitors(["cpu.virt_driver"])
    monitors.metrics(driver_with_metrics(**times(100.0, 100.0, 100.0, 100.0)), NODE)
    later = monitors.metrics(driver_with_metrics(**times(1.0, 0.0, 3.0, 0.0)), NODE)
    assert (later["cpu.user.percent"], later["cpu.percent"]) == (0.25, 0.25)


def test_nodes_have_separate_readings():
    metrics_by_node = {"a": times(1.0, 0.0, 1.0, 0.0), "b": times(9.0, 0.0, 1.0, 0.0)}
    driver = fake_driver(
        Script(node=tuple(FakeNode(name=name, metrics=readings) for name, readings in metrics_by_node.items()))
    )
    monitors = Monitors(["cpu.virt_driver"])
    assert [monitors.metrics(driver, node)["cpu.percent"] for node in ("a", "b")] == [0.5, 0.9]
    assert "cpu.percent" not in monitors.metrics(driver, "a")  # The CPU times have not changed.


def test_driver_percentages_win_and_invalid_metrics_are_dropped():
    readings = {
        "cpu.percent": 0.75,
        "cpu.frequency": float("nan"),
        "disk.io": 7.0,
        "cpu.large": 1e39,
        "cpu.endless": -math.inf,
        "cpu.\0": 1.0,
    }
    assert Monitors(["cpu.virt_driver"]).metrics(driver_with_metrics(**readings), NODE) == {"cpu.percent": 0.75}
    whole = Monitors(["virt_driver"]).metrics(driver_with_metrics(**readings, **times(1.0, 1.0, 1.0, 1.0)), NODE)
    assert (whole["cpu.percent"], whole["cpu.idle.percent"]) == (0.75, 0.25)


def test_without_monitors_the_driver_is_not_called():
    assert (
        Monitors([]).metrics(
            driver_with_metrics(Fault(action="metrics", kind="crash"), **times(1.0, 1.0, 1.0, 1.0)), NODE
        )
        == {}
    )


def test_failing_driver_metrics_are_logged_and_retried(capfd):
    driver = driver_with_metrics(Fault(action="metrics", kind="crash", times=1), **{"cpu.percent": 0.5})
    monitors = Monitors(["cpu.virt_driver"])
    assert monitors.metrics(driver, NODE) == {}
    assert "metrics of host-a" in capfd.readouterr().err
    assert monitors.metrics(driver, NODE) == {"cpu.percent": 0.5}


def test_unknown_monitor_is_a_clear_error():
    with pytest.raises(BadSettings, match=r"^compute_monitors: there is no monitor numa_mem_bw.virt_driver, only cpu"):
        Monitors(["cpu.virt_driver", "numa_mem_bw.virt_driver"])

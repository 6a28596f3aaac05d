import itertools

import pytest

from roost.errors import BadFile, BadRequest
from roost.simulator.traces.formats import open_workload
from roost.simulator.workload import Options
from tests.unit.simulator.traces.files import HOSTS, NODES, PODS, RACKS, SEQUENCE, VMS, write


def test_files_are_recognised_by_their_headers_in_any_order(tmp_path):
    paths = write(tmp_path, a=HOSTS, b=RACKS, sequence=SEQUENCE)
    names = {open_workload(order, Options()).name for order in itertools.permutations(paths)}
    assert names == {"sequence"}


def test_an_unknown_header_lists_the_formats(tmp_path):
    with pytest.raises(BadFile, match=r"known formats: openb \(nodes, pods\), cospot") as caught:
        open_workload(write(tmp_path, a="colour,shape\nred,round\n"), Options())
    assert caught.value.line == 1


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(BadFile, match="column gpu is missing"):
        open_workload(write(tmp_path, a="sn,cpu_milli,memory_mib,model\nn,1,1,T4\n", b=PODS), Options())
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time\np,1,1,0,0,0\n"
    with pytest.raises(BadFile, match="column deletion_time is missing"):
        open_workload(write(tmp_path, a=NODES, b=pods), Options())


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([], "name the files"),
        ([NODES], r"openb also needs a file of pods \(name, cpu_milli"),
        ([NODES, NODES], "are both nodes of openb"),
        ([NODES, VMS], "is a file of cospot, the files before it are of openb"),
        ([VMS], "--hosts COUNTxCORESc/RAMm"),
    ],
)
def test_files_that_do_not_form_one_trace_are_refused(tmp_path, texts, problem):
    paths = write(tmp_path, **{f"file{index}": text for index, text in enumerate(texts)})
    with pytest.raises(BadRequest, match=problem):
        open_workload(paths, Options())


def test_hosts_option_is_refused_for_a_trace_with_hosts(tmp_path):
    with pytest.raises(BadRequest, match="leave --hosts out"):
        open_workload(write(tmp_path, a=NODES, b=PODS), Options(hosts=("1x1c/1m",)))


def test_a_limit_below_one_is_refused():
    with pytest.raises(BadRequest, match="1 request or more"):
        Options(limit=0)

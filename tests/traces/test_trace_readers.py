"""Every reader: a file of two rows, and the two jobs it must become."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from trace_support import told

from dovetail.model.errors import UserError
from dovetail.traces import BUILTIN, reader
from dovetail.traces.loader import load
from dovetail.traces.source import Source
from dovetail.traces.writer import write

File = Callable[..., str]


class Counted(io.StringIO):
    """Text that counts the lines it has given."""

    given = 0

    def __next__(self) -> str:
        self.given += 1
        return super().__next__()


def tabs(*lines: str) -> str:
    """Lines with their columns separated by ` | `, as a tab-separated file."""
    return "".join(line.replace(" | ", "\t") + "\n" for line in lines)


def attempt(start: str, end: str, *gpus: int) -> dict[str, object]:
    detail = [{"ip": f"m{n}", "gpus": [f"gpu{i}" for i in range(k)]} for n, k in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


PHILLY_LOG = json.dumps(
    [
        {
            "status": "Pass",
            "vc": "a1",
            "jobid": "application_1",
            "attempts": [
                attempt("2017-10-01 00:01:00", "2017-10-01 00:02:00", 8, 4),
                attempt("2017-10-01 00:05:00", "2017-10-01 00:05:30", 8, 4),
            ],
            "submitted_time": "2017-10-01 00:00:00",
            "user": "u1",
        },
        {
            "status": "Killed",
            "vc": "a2",
            "jobid": "application_2",
            "attempts": [attempt("2017-10-01 00:01:00", "2017-10-01 00:01:10", 1)],
            "submitted_time": "2017-10-01 00:00:50",
            "user": "u2",
        },
    ],
    indent=1,
)

#: format -> a file of two rows, and its jobs
FIXTURES: dict[str, tuple[str, list[str]]] = {
    "native": (
        "job_id,submit_time,gpus,duration,tenant,user,cpus,memory_gb,replicas,gpu_type,gpu_milli,"
        "gpu_memory_mib,priority,deadline,estimate,model,group,resumable,retries,outcome,breaks\n"
        "a,0,8,60,org/team,ann,24,62.5,2,V100|A100,,,2,90,50,bert,nightly,false,1,failed,10;20.5\n"
        "b,1.5,1,30,,,,,,,250,4096,,,,,,,,,\n",
        [
            "a @0 2x4/12000c/32000M[V100|A100] +60 tenant=org/team user=ann model=bert"
            " priority=2 deadline=90 estimate=50 group=nightly resumable=False retries=1"
            " breaks=10;20.5 failed",
            "b @1.5 1*250m/4096G +30",
        ],
    ),
    "philly": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-09 06:13:03,2951.0,4,11804.0,6214e9\n",
        ["1 @0 4 +2951 tenant=6214e9", "0 @2932 1 +66 tenant=11cb48"],
    ),
    "philly_json": (
        PHILLY_LOG,
        [
            "application_1 @0 12 +90 tenant=a1 user=u1 retries=1 breaks=60",
            "application_2 @50 1 +10 tenant=a2 user=u2 cancelled",
        ],
    ),
    "helios": (
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
        "queue\n"
        "17,u1,vc1,16,64,2,TIMEOUT,2020-04-01 00:00:00,2020-04-01 00:00:09,"
        "2020-04-01 00:01:09,60,9\n"
        "18,u2,vc2,0,4,1,COMPLETED,2020-04-01 00:00:20,2020-04-01 00:00:20,"
        "2020-04-01 00:00:25,5,0\n",
        ["17 @0 16/4000c +60 tenant=vc1 user=u1 failed", "18 @20 0/4000c +5 tenant=vc2 user=u2"],
    ),
    "sacct": (
        "JobIDRaw|User|Account|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocTRES\n"
        "17|u1|vision|COMPLETED|2026-10-01T00:00:00|2026-10-01T00:00:30|60|120|"
        "billing=8,cpu=8,gres/gpu:v100=2,gres/gpu=2,mem=32G,node=1\n"
        "18|u2|nlp|CANCELLED by 1000|2026-10-01T00:00:20|2026-10-01T00:00:21|5|UNLIMITED|"
        "billing=4,cpu=4,mem=500M,node=1\n"
        "19|u2|nlp|CANCELLED by 1000|2026-10-01T00:00:20|None|0|60|\n"
        "20|u2|nlp|RUNNING|2026-10-01T00:00:20|2026-10-01T00:00:21|9|60|cpu=1,mem=1G,node=1\n",
        [
            "17 @0 2/4000c/16384M +60 tenant=vision user=u1 estimate=7200",
            "18 @20 0/4000c/500M +5 tenant=nlp user=u2 cancelled",
        ],
    ),
    "acme": (
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
        "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
        "x1,u1,2,16,256,500,100,pretrain,CANCELLED,2023-03-01 08:00:00+08:00,,,,,600,5,9600\n"
        "x2,u2,1,1,8,,,eval,COMPLETED,2023-03-01 00:01:00+00:00,,,,,30,5,30\n",
        [
            "x1 @0 16/16000c/64000M +600 user=u1 group=pretrain cancelled",
            "x2 @60 1/8000c +30 user=u2 group=eval",
        ],
    ),
    "pai": (
        "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user,group,wait_time,"
        "user_dur,user_gpu_dur,group_dur,group_gpu_dur\n"
        "1,2,0,6.0,0.5,T4,100.0,u1,g1,3,90,91,92,93\n"
        "2,3,60,12.0,2.0,,200.0,u2,g2,3,190,191,192,\n",
        [
            "1 @0 2*500m/6000c[T4] +100 user=u1 estimate=93 group=g1",
            "2 @60 3x2/12000c +200 user=u2 estimate=192 group=g2",
        ],
    ),
    "openb": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\n"
        "pod-0,6000,12288,1,460,T4|P100,LS,Running,0,100,10\n"
        "pod-1,64000,1024,8,1000,,BE,Pending,5,30,\n",
        ["pod-0 @0 1*460m/6000c/12288M[T4|P100] +90", "pod-1 @5 1x8/64000c/1024M +25 cancelled"],
    ),
    "tiresias": (
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "0,1,0,606,vgg19,164,30\n"
        "1,8,30,133,vgg11,147,23\n",
        ["0 @0 1 +164 model=vgg19", "1 @30 8 +147 model=vgg11"],
    ),
    "muri": (
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
        "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"
        "0,1,0,5853,dqn,128,2868500,46122000,490,446,8,0,1\n"
        "1,8,20000,8787,vgg16,16,4472000,201694000,509,435,8,0.5,0\n",
        ["0 @0 1 +2868.5 model=dqn priority=1", "1 @20 8 +4472 model=vgg16"],
    ),
    "gavel": (
        tabs(
            "A3C | run --x | rl | --max-steps | 1 | 16280 | 1 | gns | 1 | -1.000000 | 3142 | 0",
            "CycleGAN | run | gan | --n | 1 | 2059 | 2 | gns | 5 | 1.200000 | 6480 | 2",
        ),
        [
            "0 @0 1 +3142 model=A3C priority=1",
            "1 @2 2 +6480 model=CycleGAN priority=5 deadline=7778",
        ],
    ),
    "synergy": (
        "job_id,arrival_s,gpus,model,task,iterations,iter_time_s,duration_proportional_s,"
        "best_cpus_total,best_mem_gb_total,best_speedup_after_caps\n"
        "0,8.0,1,alexnet,image,23349,0.6,14009.4,12,125.0,2.94\n"
        "1,126.0,4,gnmt,language,26435,0.12,3172.2,1,20,1\n",
        ["0 @8 1 +14009.4 model=alexnet", "1 @126 4 +3172.2 model=gnmt"],
    ),
}

every_reader = pytest.mark.parametrize("name", BUILTIN)


def fixture_of(name: str) -> tuple[str, list[str]]:
    if name not in FIXTURES:
        pytest.fail(f"give {name} a file of two rows and its jobs in FIXTURES")
    return FIXTURES[name]


@every_reader
def test_a_reader_makes_the_jobs_of_its_two_rows(name: str, file: File) -> None:
    text, jobs = fixture_of(name)
    assert [told(job) for job in load(file(text), format=name).jobs] == jobs


@every_reader
def test_a_format_is_recognised_from_its_first_line(name: str, file: File) -> None:
    assert load(file(fixture_of(name)[0])).format == name


@every_reader
def test_a_packed_file_is_read_like_a_plain_one(name: str, file: File, tmp_path: Path) -> None:
    text = fixture_of(name)[0]
    packed = tmp_path / "packed"  # told by its bytes, not by its name
    packed.write_bytes(gzip.compress(text.encode()))
    assert load(str(packed)).jobs == load(file(text)).jobs


@every_reader
def test_the_native_format_holds_what_a_reader_says(name: str, file: File, tmp_path: Path) -> None:
    trace = load(file(fixture_of(name)[0]))
    out = str(tmp_path / "out.csv")
    assert write(trace, out) == 2
    again = load(out)
    assert (again.jobs, again.origin) == (trace.jobs, trace.origin)


@every_reader
def test_jobs_are_numbered_and_counted(name: str, file: File) -> None:
    trace = load(file(fixture_of(name)[0]))
    assert [job.spec.id for job in trace.jobs] == [0, 1]
    assert trace.count == 2


# The text of a JSON list is held, though its jobs are not.
@pytest.mark.parametrize("name", [name for name in BUILTIN if name != "philly_json"])
def test_a_reader_gives_the_first_job_before_it_reads_the_last(name: str) -> None:
    *lines, last = fixture_of(name)[0].splitlines(keepends=True)
    text = Counted("".join([*lines, *[last] * 5000]))
    assert next(iter(reader(name)(Source("jobs.csv", text))))
    assert text.given <= 1001


# ---- what single formats promise -------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimate", "declared"),
    [("", 93), ("group_dur", 92), ("user_gpu_dur", 91), ("user_dur", 90)],
)
def test_pai_takes_the_prediction_that_is_named(estimate: str, declared: int, file: File) -> None:
    parameters = f":estimate={estimate}" if estimate else ""
    jobs = load(file(FIXTURES["pai"][0]), format=f"pai{parameters}").jobs
    assert next(iter(jobs)).spec.estimate == declared


def test_pai_refuses_a_prediction_it_does_not_know(file: File) -> None:
    with pytest.raises(UserError, match=r"pai:estimate=user_dura: no such column; did you mean"):
        load(file(FIXTURES["pai"][0]), format="pai:estimate=user_dura")


def test_pai_reads_the_file_without_estimates(file: File) -> None:
    text = (
        "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user\n"
        "1,1,0,6,0,CPU,100,u1\n2,1,0,6,1.5,V100,100,u1\n"
    )
    assert [told(job) for job in load(file(text)).jobs] == [
        "1 @0 0/6000c +100 user=u1",
        "2 @0 1x2/6000c[V100] +100 user=u1",
    ]


@pytest.mark.parametrize("name", ["pai", "openb"])
def test_types_can_be_ignored(name: str, file: File) -> None:
    jobs = load(file(FIXTURES[name][0]), format=f"{name}:types=false").jobs
    assert not any(job.spec.request.alternatives[0].types for job in jobs)


RATES = {
    "v100": {"('A3C', 2)": {"null": 4.0}, "('A3C', 1)": {"null": 8.0}, "('LM', 2)": {"null": 0}},
    "k80": {"('A3C', 2)": {"null": 1.0}},
}
TEN = tabs("A3C | run | rl | -n | 1 | 100 | 2 | 1 | -1.0 | 7")
SEVEN = tabs("A3C | run | -n | 1 | 100 | 7.0 | 2")


@pytest.mark.parametrize(
    ("text", "parameters", "job"),
    [
        (TEN, "", "0 @7 2 +25 model=A3C priority=1"),
        (TEN, ",reference=k80", "0 @7 2 +100 model=A3C priority=1"),
        (SEVEN, "", "0 @7 2 +12.5 model=A3C priority=1"),  # steps of the old form: one GPU's
    ],
)
def test_gavel_divides_steps_by_throughput(
    text: str, parameters: str, job: str, file: File
) -> None:
    rates = file(json.dumps(RATES), "rates.json")
    trace = load(file(text), format=f"gavel:throughputs={rates}{parameters}")
    assert [told(each) for each in trace.jobs] == [job]


def test_gavel_says_what_to_pass_where_steps_cannot_be_turned_into_time(file: File) -> None:
    with pytest.raises(UserError, match=r"jobs.csv: .* --format gavel:throughputs=FILE"):
        load(file(TEN))


@pytest.mark.parametrize(
    ("text", "rates", "parameters", "complaint"),
    [
        (TEN, "{", "", r"rates.json:1: Expecting property name"),
        (TEN, "{}", "", r"rates.json: no throughputs of 'v100'"),
        (TEN, json.dumps(RATES), ",reference=v10", r"no throughputs of 'v10'; did you mean 'v100'"),
        (TEN.replace("A3C", "A4C"), json.dumps(RATES), "", r"csv:1: no throughput of 'A4C' on 2"),
        (TEN.replace("A3C", "LM"), json.dumps(RATES), "", r"csv:1: 'LM' on 2 GPUs does not run on"),
        (TEN.replace("100", "x"), json.dumps(RATES), "", r"csv:1: total_steps is 'x': it must be"),
        (TEN + "A3C\trun\n", json.dumps(RATES), "", r"csv:2: 2 fields; a row has 7, 10 or 12"),
    ],
)
def test_gavel_complains_in_one_sentence(
    text: str, rates: str, parameters: str, complaint: str, file: File
) -> None:
    path = file(rates, "rates.json")
    with pytest.raises(UserError, match=complaint):
        load(file(text), format=f"gavel:throughputs={path}{parameters}")


def test_philly_jobs_that_never_ran_are_left_out_and_counted(file: File) -> None:
    waiting = {"status": "Killed", "vc": "a", "jobid": "j3", "user": "u"}
    waiting |= {"submitted_time": "2017-10-01 00:00:00", "attempts": []}
    unknown = waiting | {"jobid": "j4", "attempts": [attempt("None", "None", 1)]}
    empty = waiting | {"jobid": "j5"}
    empty["attempts"] = [attempt("2017-10-01 00:00:00", "2017-10-01 00:00:09")]
    records = [*json.loads(PHILLY_LOG), waiting, unknown, empty]
    trace = load(file(json.dumps(records)))
    assert trace.count == 2
    assert trace.notices == [
        "2 rows left out: jobs that never ran",
        "1 row left out: jobs without a recorded GPU",
    ]


def test_philly_jobs_with_one_id_are_told_even_on_one_line(file: File) -> None:
    twice = json.dumps(json.loads(PHILLY_LOG)[:1] * 2)
    with pytest.raises(UserError, match=r"csv:1: job id application_1 is already used on line 1"):
        load(file(twice))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ('"Pass", "vc"', "jobs.csv:1: not JSON"),
        ('"submitted_time": "None"', "jobs.csv:2: must be seconds"),
        ('"submitted": "2017-10-01"', "jobs.csv:2: the job has no usable 'submitted_time'"),
    ],
)
def test_philly_log_complaints_name_the_line(change: str, complaint: str, file: File) -> None:
    good = '"submitted_time": "2017-10-01 00:00:00"'
    text = PHILLY_LOG.replace(good, change, 1)
    text = "[{" + change + "]" if "vc" in change else text
    with pytest.raises(UserError, match=complaint):
        load(file(text))


def test_openb_pods_may_not_end_before_they_begin(file: File) -> None:
    text = FIXTURES["openb"][0].replace(",100,10\n", ",100,101\n")
    with pytest.raises(UserError, match=r"csv:2: deletion_time is 100, before the pod began"):
        load(file(text))


def test_openb_machines_become_nodes(file: File) -> None:
    from dovetail.model.node import Node
    from dovetail.traces.openb import nodes

    text = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,1024,0,\n"
    assert nodes(file(text)) == [
        Node("n0", 2, 64000, 262144, "P100"),
        Node("n1", 0, 96000, 1024, "cpu"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sn,gpu\nn0,2\n", "there is no column 'cpu_milli'; the columns are: sn, gpu"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,2,-3,T4\n", "csv:2: an amount must be a whole"),
    ],
)
def test_a_bad_list_of_machines_is_refused(text: str, complaint: str, file: File) -> None:
    from dovetail.traces.openb import nodes

    with pytest.raises(UserError, match=complaint):
        nodes(file(text))


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ("gpus,replicas\na,0,1,6,4", "gpus is 6: it must be a multiple of replicas"),
        ("gpus,replicas\na,0,1,6,0", "replicas is '0': it must be 1 or more"),
        (
            "gpus,replicas,gpu_milli\na,0,1,6,3,500",
            "gpu_milli is 500: a replica with a share has one GPU",
        ),
        ("gpus,gpu_milli\na,0,1,1,1001", "gpu_milli is '1001': it must be from 1 to 1000"),
        ("gpus,resumable\na,0,1,1,maybe", "resumable is 'maybe': it must be true or false"),
        ("gpus,outcome\na,0,1,1,lost", "outcome is 'lost': it must be finished, failed or"),
        ("gpus,breaks\na,0,1,1,3;x", "breaks is '3;x': it must be a number of seconds"),
        ("gpus\n,0,1,1", "job_id is '': it must not be empty"),
    ],
)
def test_native_cells_are_checked(cells: str, complaint: str, file: File) -> None:
    with pytest.raises(UserError, match=f"jobs.csv:2: {complaint}"):
        load(file(f"job_id,submit_time,duration,{cells}\n"))

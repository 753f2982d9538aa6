"""The per-job file, read back with the standard library."""

import csv
import gzip

import pytest
from synthetic_runs import job, random_run, run

from dovetail.metrics.jobs_csv import write_jobs
from dovetail.metrics.summary import summarise
from dovetail.model.job import Status

HEADER = (
    "job_id,submit,first_start,end,jct,wait,run_time,work,gpus,tenant,user,outcome,"
    "preemptions,failures,deadline,reason"
)


def read(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_says_what_happened_and_leaves_empty_what_did_not(tmp_path):
    rows = [
        job(1, 5, None, 5, gpus=8, status=Status.REJECTED, reason="asks for 8, has 4"),
        job(0, 0, 10, 30.5, held=15, work=12, tenant="org/a", user="ann", preemptions=2),
        job(2, 6, 40, held=5, work=99, status=Status.RUNNING, share=500, deadline=70.0),
    ]
    write_jobs(run(rows, end=45.0), tmp_path / "jobs.csv")
    text = (tmp_path / "jobs.csv").read_text(encoding="utf-8")
    assert text.splitlines() == [
        HEADER,
        "j0,0,10,30.5,30.5,15.5,15,12,1.0,org/a,ann,finished,2,0,,",
        'j1,5,,5.0,,,0,0,8.0,,,rejected,0,0,,"asks for 8, has 4"',
        "j2,6,40,,,,5,99,0.5,,,running,0,0,70,",
    ]


def test_rows_are_in_submit_order_and_ties_go_by_number(tmp_path):
    rows = [job(2, 7, 7, 8), job(1, 7, 7, 9), job(0, 3, 3, 20)]
    write_jobs(run(rows), tmp_path / "jobs.csv")
    assert [row["job_id"] for row in read(tmp_path / "jobs.csv")] == ["j0", "j1", "j2"]


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz"])
def test_what_is_written_reads_back_and_averages_to_the_result(tmp_path, name):
    made = random_run(500, seed=1)
    write_jobs(made, tmp_path / name)
    rows = read(tmp_path / name)
    assert len(rows) == 500
    result = summarise(made)
    for column in ("jct", "wait"):
        mean = sum(float(row[column]) for row in rows) / len(rows)
        assert mean == pytest.approx(result[column]["mean"])


def test_the_same_run_gives_the_same_compressed_bytes(tmp_path):
    made = random_run(50, seed=1)
    write_jobs(made, tmp_path / "a.gz")
    write_jobs(made, tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_names_with_commas_quotes_and_line_breaks_survive(tmp_path):
    name = 'a, "b"\nc'
    write_jobs(run([job(0, 0, 0, 1, name=name, user="ä")]), tmp_path / "jobs.csv")
    (row,) = read(tmp_path / "jobs.csv")
    assert (row["job_id"], row["user"]) == (name, "ä")


def test_a_run_without_jobs_is_a_header(tmp_path):
    write_jobs(run([]), tmp_path / "jobs.csv")
    assert (tmp_path / "jobs.csv").read_text(encoding="utf-8") == HEADER + "\n"

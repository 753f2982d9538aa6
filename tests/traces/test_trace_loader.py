"""From rows to a trace: order, numbers, dates, intervals, and one sentence for each mistake."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from trace_support import told

from dovetail.core import registry
from dovetail.model.errors import UserError
from dovetail.traces.loader import load
from dovetail.traces.moments import moment, written

File = Callable[..., str]

HEADER = "job_id,submit_time,gpus,duration\n"
DATED = (
    HEADER
    + "a,2017-10-01,1,5\n"
    + "b,2017-10-02T12:00:00,1,5\n"
    + "c,2017-10-03 00:00:00+02:00,1,5\n"
)


def names(text: str, **options: str | None) -> list[str]:
    return [job.spec.name for job in load(text, **options).jobs]  # type: ignore[arg-type]


# ---- order -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        ("10,0,1,1\n9,0,1,1\n", ["9", "10"]),  # numbers compare as numbers
        ("j10,0,1,1\nj9,0,1,1\n", ["j10", "j9"]),  # text as text
        ("10,0,1,1\nj9,0,1,1\n9,0,1,1\n", ["10", "9", "j9"]),  # one word makes all of them text
        ("1,5,1,1\n2,4,1,1\n", ["2", "1"]),  # submission comes first
    ],
)
def test_jobs_are_ordered_by_submission_then_id(rows: str, order: list[str], file: File) -> None:
    trace = load(file(HEADER + rows))
    assert [job.spec.name for job in trace.jobs] == order
    assert [job.spec.id for job in trace.jobs] == list(range(len(order)))


def test_rows_without_ids_keep_their_order_and_are_called_by_it(file: File) -> None:
    row = "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    trace = load(file("timestamp,duration,num_gpus,gpu_time,cluster\n" + row * 11))
    assert [job.spec.name for job in trace.jobs] == [str(number) for number in range(11)]
    assert trace.notices == []


def test_sorting_a_file_is_told(file: File) -> None:
    assert load(file(HEADER + "1,5,1,1\n2,4,1,1\n")).notices == [
        "the file was not in submit order; its jobs were sorted"
    ]


def test_a_trace_can_be_gone_through_twice(file: File) -> None:
    trace = load(file(HEADER + "1,5,1,1\n"))
    assert list(trace.jobs) == list(trace.jobs) != []


# ---- time ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("12.5", 12.5),
        ("20171001", 20171001),  # a number, not a date
        ("2017-10-01", 1506816000),
        ("2017-10-01 00:00:01", 1506816001),
        ("2017-10-01T00:00:01Z", 1506816001),
        ("2017-10-01T02:00:01.5+02:00", 1506816001.5),
    ],
)
def test_a_moment_is_seconds_or_a_date(text: str, seconds: float) -> None:
    assert moment(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "2017-13-01", "2017-10-01 25:00"])
def test_a_moment_that_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="must be seconds, 0 or more, or a date like"):
        moment(text)


def test_dates_are_written_so_that_they_are_read_back() -> None:
    assert [moment(written(at)) for at in (1506816000.0, 1506816001.25)] == [
        1506816000.0,
        1506816001.25,
    ]


def test_a_dated_trace_starts_at_second_0_and_keeps_its_date(file: File) -> None:
    trace = load(file(DATED))
    assert [told(job) for job in trace.jobs] == ["a @0 1 +5", "b @129600 1 +5", "c @165600 1 +5"]
    assert trace.origin == datetime(2017, 10, 1, tzinfo=UTC)


def test_a_trace_in_seconds_keeps_its_own_time(file: File) -> None:
    trace = load(file(HEADER + "a,100,1,5\n"))
    assert [told(job) for job in trace.jobs] == ["a @100 1 +5"]
    assert trace.origin is None


def test_posix_seconds_are_dates(file: File) -> None:
    trace = load(file(HEADER + "a,1506816000,1,5\n"))
    assert [told(job) for job in trace.jobs] == ["a @0 1 +5"]
    assert trace.origin == datetime(2017, 10, 1, tzinfo=UTC)


def test_deadlines_move_with_the_dates(file: File) -> None:
    text = "job_id,submit_time,gpus,duration,deadline\na,2017-10-01,1,5,2017-10-01T00:01:00\n"
    assert [told(job) for job in load(file(text)).jobs] == ["a @0 1 +5 deadline=60"]


@pytest.mark.parametrize(
    ("start", "stop", "kept"),
    [
        ("2017-10-01", None, "abc"),
        ("2017-10-01T00:00:01", None, "bc"),
        (None, "2017-10-02T12:00:00", "ab"),  # the bound itself belongs to the interval
        (None, "2017-10-02T11:59:59", "a"),
        ("2017-10-02", "2017-10-02T21:59:59", "b"),
        ("2017-10-02T14:00:00+02:00", None, "bc"),  # zones are honoured
        ("129600", None, "bc"),  # seconds count from the first job
        ("1506816001", None, "bc"),  # unless they are POSIX seconds
    ],
)
def test_an_interval_of_dates(start: str | None, stop: str | None, kept: str, file: File) -> None:
    assert "".join(names(file(DATED), start=start, stop=stop)) == kept


def test_an_interval_is_numbered_from_0_and_starts_at_its_first_job(file: File) -> None:
    trace = load(file(DATED), start="2017-10-02")
    assert [(job.spec.id, told(job)) for job in trace.jobs] == [
        (0, "b @0 1 +5"),
        (1, "c @36000 1 +5"),
    ]
    assert trace.origin == datetime(2017, 10, 2, 12, tzinfo=UTC)
    assert trace.count == 2


@pytest.mark.parametrize(
    ("start", "stop", "kept"),
    [("10", None, "bc"), (None, "10", "ab"), ("10", "10", "b"), ("5", "19.5", "b")],
)
def test_an_interval_of_seconds(start: str | None, stop: str | None, kept: str, file: File) -> None:
    path = file(HEADER + "a,0,1,5\nb,10,1,5\nc,20,1,5\n")
    assert "".join(names(path, start=start, stop=stop)) == kept


@pytest.mark.parametrize(
    ("text", "start", "complaint"),
    [
        (DATED, "2018-01-01", "no job .* goes from 2017-10-01T00:00:00 to 2017-10-02T22:00:00"),
        (DATED, "yesterday", "--from yesterday: it must be seconds, 0 or more, or a date"),
        (HEADER + "a,0,1,5\n", "2018-01-01", "--from 2018-01-01: the trace has no dates"),
        (HEADER + "a,0,1,5\n", "6", "no job .* goes from 0 s to 0 s"),
    ],
)
def test_a_wrong_interval_is_refused(text: str, start: str, complaint: str, file: File) -> None:
    with pytest.raises(UserError, match=complaint):
        load(file(text), start=start)


# ---- rows that are wrong ---------------------------------------------------------------------

BAD_ROWS = [
    ("b,x,1,5", "submit_time is 'x': it must be seconds"),
    ("b,-1,1,5", "submit_time is '-1': it must be seconds, 0 or more"),
    ("b,nan,1,5", "submit_time is 'nan': it must be"),
    ("b,inf,1,5", "submit_time is 'inf': it must be"),
    ("b,1960-01-01,1,5", "the job is submitted at -315619200.0: it must be 0 or later"),
    ("b,0,one,5", "gpus is 'one': it must be a number"),
    ("b,0,-1,5", "gpus is '-1': it must be a whole number, 0 or more"),
    ("b,0,1.5,5", "gpus is '1.5': it must be a whole number"),
    ("b,0,inf,5", "gpus is 'inf': it must be a finite number"),
    ("b,0,1,x", "duration is 'x': it must be a number of seconds, 0 or more"),
    ("b,0,1,-5", "duration is '-5': it must be"),
    ("b,0,1,nan", "duration is 'nan': it must be"),
    ("b,0,1,inf", "duration is 'inf': it must be"),
    ("b,0,1,", "duration is '': it must be"),
    ("b,0,1", "duration is missing: 3 fields for 4 columns"),
    ("a,0,1,5", "job id a is already used on line 2"),
]


@pytest.mark.parametrize(("row", "complaint"), BAD_ROWS)
def test_a_bad_row_is_named_with_its_line(row: str, complaint: str, file: File) -> None:
    path = file(HEADER + "a,0,1,5\n\n" + row + "\nc,0,1,5\n")  # an empty line is no row
    with pytest.raises(UserError, match=f"jobs.csv:4: {complaint}"):
        load(path)


@pytest.mark.parametrize(("row", "complaint"), BAD_ROWS)
def test_a_bad_row_can_be_skipped(row: str, complaint: str, file: File) -> None:
    trace = load(file(HEADER + "a,0,1,5\n" + row + "\nc,0,1,5\n"), skip_bad=True)
    assert [job.spec.name for job in trace.jobs] == ["a", "c"]
    (notice,) = trace.notices
    assert notice.startswith("1 bad row skipped, first: ")
    assert f"jobs.csv:3: {complaint}" in notice


def test_a_cell_of_two_lines_does_not_shift_the_lines_after_it(file: File) -> None:
    with pytest.raises(UserError, match=r"jobs.csv:4: duration is 'x'"):
        load(file(HEADER + '"a\nb",0,1,5\nc,0,1,x\n'))


def test_a_bad_row_far_down_is_named_with_its_line(file: File) -> None:
    rows = "".join(f"{number},{number},1,5\n" for number in range(2500))
    with pytest.raises(UserError, match=r"jobs.csv:2502: gpus is 'x'"):
        load(file(HEADER + rows + "a,0,x,5\n"))


def test_many_bad_rows_are_one_notice(file: File) -> None:
    trace = load(file(HEADER + "a,0,1,5\n" + "b,0,1,x\n" * 12), skip_bad=True)
    (notice,) = trace.notices
    assert notice.startswith("12 bad rows skipped, first: ")
    assert "jobs.csv:3: duration is 'x'" in notice


def test_a_length_of_0_is_legal(file: File) -> None:
    assert [told(job) for job in load(file(HEADER + "a,0,1,0\n")).jobs] == ["a @0 1 +0"]


def test_a_job_may_ask_for_cpu_alone_or_for_nothing(file: File) -> None:
    trace = load(file("job_id,submit_time,gpus,duration,cpus\na,0,0,5,2\nb,0,0,5,\nc,0,0,5,0\n"))
    assert [told(job) for job in trace.jobs] == ["a @0 0/2000c +5", "b @0 0 +5", "c @0 0/0c +5"]
    assert trace.notices == ["2 jobs ask for neither GPU nor CPU and will hold nothing"]


# ---- files that are wrong --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (HEADER.encode(), "has no jobs, only a header"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "is not a text file"),
        (b"\0\0\0\0", "is not a text file"),
        (HEADER.encode() + b"a,0,1,\xff\xfe\n", "is not a text file"),
        (gzip.compress(HEADER.encode() * 999, mtime=0)[:40], "is cut short or damaged"),
        (gzip.compress(HEADER.encode(), mtime=0)[:-4], "is cut short or damaged"),
        (b"\x1f\x8b", "is cut short or damaged"),
        (b"when,who\n1,2\n", r"no known trace format has the columns when, who; .* --format: nat"),
        (
            b"job_id,submit_time,gpus\n1,2,3\n",
            r".*columns job_id, submit_time, gpus \(nearest is native, which needs 'duration' too",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_refused(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"jobs\.csv:? {complaint}"):
        load(str(path))


def test_all_rows_bad_is_told_as_such(file: File) -> None:
    with pytest.raises(UserError, match=r"has no jobs \(1 bad row skipped, first: .*jobs.csv:2"):
        load(file(HEADER + "a,0,1,x\n"), skip_bad=True)


def test_a_missing_column_is_named_with_those_found(file: File) -> None:
    text = "there is no column 'duration'; the columns are: job_id, submit_time, gpus, length"
    with pytest.raises(UserError, match=text):
        load(file("job_id,submit_time,gpus,length\na,0,1,5\n"), format="native")


def test_a_missing_file_offers_its_neighbour(file: File, tmp_path: Path) -> None:
    file(DATED, "trace.csv")
    with pytest.raises(UserError, match=r"trcae.csv: no such file; did you mean .*trace.csv\?"):
        load(str(tmp_path / "trcae.csv"))
    with pytest.raises(UserError, match=r"no such file; there is no directory .*nowhere either"):
        load(str(tmp_path / "nowhere" / "trace.csv"))


def test_a_directory_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a directory; name a file in it"):
        load(str(tmp_path))


def test_a_byte_order_mark_and_spaces_after_commas_do_no_harm(file: File) -> None:
    text = "\ufeffjob_id, submit_time, gpus, duration\r\na, 2017-10-01, 1, 5\r\n"
    assert [told(job) for job in load(file(text)).jobs] == ["a @0 1 +5"]


# ---- formats ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "complaint"),
    [
        ("phily", "unknown trace format 'phily'; did you mean 'philly'?"),
        ("zzz", "unknown trace format 'zzz'; there are: acme, gavel, helios"),
        ("philly:vc=1", "philly has no parameter 'vc'; it takes none"),
        ("gavel:throughput=x", "gavel has no parameter 'throughput'; did you mean 'throughputs'?"),
        ("nowhere.py:read", "nowhere.py: no such file"),
    ],
)
def test_a_wrong_format_is_refused(format: str, complaint: str, file: File) -> None:
    with pytest.raises(UserError) as refusal:
        load(file(DATED), format=format)
    assert complaint in str(refusal.value)


READER = """
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob


def read(source):
    for line in source:
        name, submit, gpus, seconds = line.split()
        yield TraceJob(JobSpec(0, name, float(submit), gang(int(gpus))), float(seconds))
"""


def test_a_plain_generator_is_a_reader(file: File) -> None:
    reader = file(READER, "mine.py")
    trace = load(file("b 1 2 3\na 0 1 2\n", "log.txt"), format=f"{reader}:read")
    assert [told(job) for job in trace.jobs] == ["a @0 1 +2", "b @1 2 +3"]


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize(
    ("row", "complaint"),
    [("a 0 one 2", "the row cannot be read: invalid literal"), ("a 0", "the row cannot be read")],
)
def test_a_row_that_a_plain_generator_cannot_read_is_named(
    row: str, complaint: str, skip_bad: bool, file: File
) -> None:
    reader = file(READER, "mine.py")
    with pytest.raises(UserError, match=f"log.txt:2: {complaint}"):
        load(file(f"b 1 2 3\n{row}\n", "log.txt"), format=f"{reader}:read", skip_bad=skip_bad)


@pytest.mark.parametrize("row", ["a nan 1 2", "a -1 1 2", "a 0 1 -2", "a 0 1 inf", "b 2 1 2"])
def test_what_a_plain_generator_lets_through_is_checked(row: str, file: File) -> None:
    reader = file(READER, "mine.py")
    with pytest.raises(UserError, match=r"log.txt:2: (the job|job id)"):
        load(file(f"b 1 2 3\n{row}\n", "log.txt"), format=f"{reader}:read")


def test_a_function_has_no_parameters(file: File) -> None:
    reader = file(READER, "mine.py")
    with pytest.raises(UserError, match="is a function and takes no parameters"):
        load(file("b 1 2 3\n"), format=f"{reader}:read:x=1")


def test_an_installed_package_can_bring_a_format(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.traces.tiresias import Tiresias

    class Mine(Tiresias):
        columns = {**Tiresias.columns, "flavour": str}  # noqa: RUF012
        marks = ()

        def job(self, *cells: object) -> object:  # type: ignore[override]
            return super().job(*cells[:-1])

    class Entry:
        name = "mine"

        def load(self) -> type[Mine]:
            return Mine

    def installed(group: str) -> list[Entry]:
        return [Entry()] if group == "dovetail.traces" else []

    monkeypatch.setattr(registry, "entry_points", installed)
    text = "job_id,num_gpu,submit_time,model_name,duration,flavour\n1,2,0,vgg,60,sweet\n"
    trace = load(file(text))
    assert (trace.format, [told(job) for job in trace.jobs]) == ("mine", ["1 @0 2 +60 model=vgg"])

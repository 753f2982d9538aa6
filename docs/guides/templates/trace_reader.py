"""A reader for the log of your own cluster. Copy this file, change the columns, and run

dovetail trace inspect log.csv --format trace_reader.py:MyCluster
"""

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.moments import moment
from dovetail.traces.table import Maybe, Table, count, label, seconds


class MyCluster(Table):
    columns: ClassVar = {
        "id": label,  # text that must be there
        "queued_at": moment,  # a date, or seconds
        "cards": count,  # a whole number
        "ran_for": seconds,
        "team": Maybe(str, ""),  # may be missing
    }

    def job(self, name, submit, gpus, work, team):
        return TraceJob(JobSpec(0, name, submit, gang(gpus), tenant=team), work)


def read_lines(source):
    """The same without a header: `id queued_at cards ran_for`, one job a line."""
    for line in source:
        name, submit, gpus, work = line.split()
        yield TraceJob(JobSpec(0, name, moment(submit), gang(count(gpus))), seconds(work))

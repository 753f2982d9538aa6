"""A job that takes so many seconds in all, over as many attempts as it needs."""

import os
import signal
import sys
import time

KEPT = os.environ["DOVETAIL_JOB_DIR"] + "/slept"
TOTAL = float(sys.argv[1])


def before() -> float:
    if not os.path.exists(KEPT):
        return 0.0
    with open(KEPT) as file:
        return float(file.read())


def save(seconds: float) -> None:
    with open(KEPT + ".new", "w") as file:
        file.write(str(seconds))
    os.replace(KEPT + ".new", KEPT)


def main() -> None:
    begin, slept = time.monotonic(), before()

    def stop(*_: object) -> None:
        save(min(TOTAL, slept + time.monotonic() - begin))
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    time.sleep(max(0.0, TOTAL - slept))
    save(TOTAL)


main()

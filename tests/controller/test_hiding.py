"""What of commands and environments is shown."""

from __future__ import annotations

import shlex
import time

import pytest

from dovetail.controller.hiding import is_secret, redacted, split


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("train.py --lr 0.1", "train.py --lr 0.1"),
        ("x --api-key abc y", "x --api-key *** y"),
        ("x --api-key=abc y", "x --api-key=*** y"),
        ("x '--password=a b'", "x --password=***"),
        ("x --token --next", "x --token --next"),
        ("env WANDB_API_KEY=abc train", "env WANDB_API_KEY=*** train"),
        ("sh -c 'export MY_TOKEN=abc; run'", "sh -c 'export MY_TOKEN=***; run'"),
        ("""sh -c 'cd x; HF_TOKEN="a b" run'""", "sh -c 'cd x; HF_TOKEN=*** run'"),
        ("sh -c 'HF_TOKEN=a run'", "sh -c HF_TOKEN=***"),
        ("pull https://me:abc@host/x", "pull https://me:***@host/x"),
        ("pull https://host:80/x", "pull https://host:80/x"),
        ("--secret", "--secret"),
    ],
)
def test_commands_without_their_secrets(command: str, shown: str) -> None:
    once = redacted(shlex.split(command))
    assert once == tuple(shlex.split(shown))
    assert redacted(once) == once


def test_environments_are_split_by_name_and_by_url() -> None:
    given = {
        "PATH": "/bin",
        "PWD": "/",
        "AWS_SECRET_ACCESS_KEY": "a",
        "GITHUB_TOKEN": "b",
        "DB": "postgres://me:c@host",
        "TOKENIZERS_PARALLELISM": "false",
    }
    shown, secrets = split(given)
    assert set(secrets) == {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB"}
    assert {**shown, **secrets} == given
    assert not is_secret("XDG_SESSION_ID")


@pytest.mark.parametrize(
    "piece", ["x", "token", "token=", "://", "a:", "://a:", "=", "-", '"', "token='"]
)
def test_no_text_keeps_us_busy(piece: str) -> None:
    long = piece * (128 * 1024 // len(piece))
    begun = time.process_time()
    redacted(["--token", long, f"token={long}", f"://{long}"])
    split({"A": long, long: "b", "C": f"token://{long}"})
    assert time.process_time() - begun < 1.0

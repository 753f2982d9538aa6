"""The dashboard's files: complete, closed to the outside, and nothing in them runs by chance."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import httpx
import pytest
from hosting import PATIENCE

from dovetail.web.serving import STATIC

FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]
IMPORT = re.compile(r"""(?:from\s+|import\s*\(\s*|import\s+)["'](\.[^"']+)["']""")


def test_the_page_may_run_and_load_only_what_comes_from_here(box):
    answer = httpx.get(box.url, timeout=PATIENCE)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    page = answer.text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|style=|javascript:", page)


def test_every_file_is_served_with_the_same_guard(box):
    for path in FILES:
        answer = httpx.get(f"{box.url}static/{path.relative_to(STATIC)}", timeout=PATIENCE)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["static/../serving.py", "static/%2e%2e/serving.py", "static/no"])
def test_nothing_else_is_served(box, path):
    assert httpx.get(f"{box.url}{path}", timeout=PATIENCE).status_code in (401, 404)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_module_imports_what_exists_and_makes_no_markup_of_text(path):
    text = path.read_text()
    for name in IMPORT.findall(text):
        assert (path.parent / name).resolve().is_file(), name
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    assert len(text.splitlines()) <= 400


def test_nothing_is_fetched_from_elsewhere():
    for path in FILES:
        found = set(re.findall(r"https?://[^\s\"')]+", path.read_text()))
        assert found <= {"http://www.w3.org/2000/svg"}, path


def test_the_mark_is_a_drawing():
    assert ElementTree.parse(STATIC / "mark.svg").getroot().tag.endswith("svg")

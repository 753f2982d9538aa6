"""Files that say who owns what, and are wrong: one sentence each, with the line and the sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.model.errors import UserError
from dovetail.simulator.spec import read_spec
from dovetail.tenancy.kinds import chosen, tenancy_of

CLUSTER = """[[nodes]]
count = 4
gpus = 8
type = "dgx8"
rack = 2

[[nodes]]
count = 2
gpus = 6
type = "v100"
"""
HEADER = len(CLUSTER.splitlines())

WRONG = [
    ("", "FILE: lists no tenants; give each a [[tenants]] table"),
    ("tenants = 3", "FILE: tenants must be [[tenants]] tables"),
    ("[[tenants]]\nname = a", "FILE:2: not TOML: Invalid value (at line 2, column 8)"),
    ("[[tenants]]\nnodes = 1", "FILE:1: a tenant needs a name"),
    ('[[tenants]]\n\nname = ""', "FILE:3: a tenant needs a name"),
    ('[[tenants]]\nname = "lent"\nnodes = 1', "FILE:1: no tenant may be called 'lent'"),
    ('[[tenants]]\nname = "a"', "FILE:1: a owns nothing; give nodes, racks, gpus or pinned"),
    (
        '[[tenants]]\nname = "a"\ntype = "dgx8"\nnode = 1',
        "FILE:4: a: unknown key 'node'; did you mean 'nodes'?",
    ),
    (
        '[[tenants]]\nname = "a"\n# half a node\nnodes = 0.5',
        "FILE:4: a: nodes is 0.5; it must be a whole number of at least 0",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "dgx8"\ngpus = [4, "2"]',
        "FILE:4: a: gpus is '2'; it must be a whole number of at least 0",
    ),
    ('[[tenants]]\nname = "a"\ntype = 8\nnodes = 1', "FILE:3: a: type is 8; it must be a name"),
    (
        '[[tenants]]\nname = "a"\nown = { type = "dgx8", nodes = 1 }',
        "FILE:3: a: own is {'type': 'dgx8', 'nodes': 1}; it must be a list of tables",
    ),
    (
        '[[tenants]]\nname = "a"\nusers = "ann"\nnodes = 1',
        "FILE:3: a: users is 'ann'; it must be a list of names",
    ),
    ('[[tenants]]\nname = "a"\nnodes = 1', "FILE:1: a: say which type: dgx8, v100"),
    (
        '[[tenants]]\nname = "a"\nnodes = 1\ntype = "dgx"',
        "FILE:4: a: no type 'dgx'; did you mean 'dgx8'?",
    ),
    (
        '[[tenants]]\nname = "team-b"\ntype = "dgx8"\nnodes = 2\n'
        '[[tenants]]\nname = "team-a"\ntype = "dgx8"\n\nnodes = 3',
        "FILE:9: team-a asks for 3 nodes of dgx8; 2 are left after team-b",
    ),
    (
        '[[tenants]]\nname = "b"\ntype = "dgx8"\nracks = 1\n[[tenants]]\nname = "a"\n'
        'own = [\n  { type = "v100", nodes = 2 },\n  { type = "dgx8", nodes = 3 },\n]',
        "FILE:9: a asks for 3 nodes of dgx8; 2 are left after b (1 rack of dgx8)",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "v100"\nnodes = 1\ngpus = [3, 3, 3]',
        "FILE:5: a asks for 3 cells of 3 GPUs of v100; 2 are left after a (1 node of v100)",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "v100"\ngpus = [4]',
        "FILE:4: a asks for 4 GPUs of a node; nodes have cells of 6, 3, 1",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "v100"\nracks = 1',
        "FILE:4: a asks for racks; the cluster has none of equal size for it",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "v100"\nnodes = 1\n'
        '[[tenants]]\nname = "a"\ntype = "v100"\nnodes = 1',
        "FILE:5: tenant 'a' is listed twice",
    ),
    (
        '[[tenants]]\nname = "a"\ntype = "v100"\nnodes = 1000000',
        "FILE:4: a asks for 1000000 nodes of v100; there are 2",
    ),
    ('\n  [[tenants]]\n  name = "a"\n  nodes = -1', "FILE:4: a: nodes is -1; it must be"),
    ("a = " + "[" * 9999, "FILE: lists are in too many others"),
    (
        '[[tenants]]\nname = "a"\npinned = ["n9"]',
        "FILE:3: a pins 'n9', and no node is called so; did you mean",
    ),
    (
        '[[tenants]]\nname = "a"\npinned = ["n1:2-5"]',
        "FILE:3: a pins 'n1:2-5', which is no cell; cells of dgx8 have 8, 4, 2, 1 GPUs and begin "
        "at multiples of that",
    ),
    (
        '[[tenants]]\nname = "b"\npinned = ["n1:4-7"]\n[[tenants]]\nname = "a"\npinned = ["rack0"]',
        "FILE:6: a pins rack0; b has n1:4-7 already",
    ),
    (
        '[[tenants]]\nname = "b"\npinned = ["n0"]\n'
        '[[tenants]]\nname = "a"\ntype = "dgx8"\nracks = 2',
        "FILE:1: b asks for 1 node of dgx8; 0 are left after a (2 racks of dgx8)",
    ),
    (
        '[[tenants]]\nname = "b"\npinned = ["n0:0-3", "n2:0-3"]\n'
        '[[tenants]]\nname = "a"\ntype = "dgx8"\nracks = 1',
        "FILE:1: with what is pinned (n0:0-3, n2:0-3), others miss 1 rack of dgx8; pin cells that "
        "are close to each other",
    ),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_with_a_file_is_said_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    tenants, cluster = tmp_path / "tenants.toml", tmp_path / "cluster.toml"
    tenants.write_text(text)
    cluster.write_text(CLUSTER)
    with pytest.raises(UserError) as error:
        tenancy_of(chosen(f"cells:{tenants}"), read_spec(str(cluster)).cluster)
    found = str(error.value).replace(str(tenants), "FILE")
    assert "\n" not in found and found.startswith(said), found


def test_in_the_cluster_file_lines_are_counted_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER + '[[tenants]]\nname = "a"\ntype = "v100"\nnodes = 3\n')
    with pytest.raises(UserError) as error:
        tenancy_of(chosen("cells", str(path)), read_spec(str(path)).cluster)
    assert str(error.value) == f"{path}:{HEADER + 4}: a asks for 3 nodes of v100; there are 2"


@pytest.mark.parametrize(
    ("rows", "nodes", "said"),
    [
        ("a,3\nb,2\n", "4x8", "3: b asks for 2 nodes of gpu; 1 is left after a"),
        ("a,3\n", "4x8,type=a+4x8,type=b", "2: a: say which type: a, b"),
    ],
)
def test_a_list_of_nodes_names_its_line(tmp_path: Path, rows: str, nodes: str, said: str) -> None:
    path = tmp_path / "vc.csv"
    path.write_text(f"name,nodes\n{rows}")
    with pytest.raises(UserError) as error:
        tenancy_of(chosen(f"cells:{path}"), read_spec(nodes).cluster)
    assert str(error.value) == f"{path}:{said}"


@pytest.mark.parametrize(
    "row", ["a,²", "a,0", "a,-1", "a,1.0", "a,1,2", ",1", " ,1", "a", "a," + "9" * 5000]
)
def test_a_line_that_is_none_is_named(tmp_path: Path, row: str) -> None:
    path = tmp_path / "vc.csv"
    path.write_text(f"name,nodes\n{row}\n")
    with pytest.raises(UserError) as error:
        chosen(f"cells:{path}")
    assert str(error.value) == f"{path}:2: {row!r} is not NAME,NODES"


def test_numbers_that_do_not_add_up_name_their_line_and_sums(tmp_path: Path) -> None:
    path = tmp_path / "tenants.toml"
    owned = {"a": 5, "a/x": 4, "b": 4}
    tables = (f'[[tenants]]\nname = "{name}"\ngpus = {gpus}\n' for name, gpus in owned.items())
    path.write_text("".join(tables))
    with pytest.raises(UserError) as error:
        tenancy_of(chosen(f"shares:{path}"), read_spec("2x4").cluster)
    assert str(error.value) == f"{path}:7: b asks for 4 GPUs; 3 are left after a (5)"

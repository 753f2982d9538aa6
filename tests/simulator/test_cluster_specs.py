"""Clusters from text and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.simulator.spec import parse_cluster, read_spec


@pytest.mark.parametrize(
    ("text", "nodes", "gpus"),
    [
        ("16x8", 16, 128),
        (" 2x4 + 1x8 ", 3, 16),
        ("1x0", 1, 0),
        ("2x4,cpus=24,mem=500", 2, 8),
        ("2x4,type=A100+3x8,type=H100,gpumem=80", 5, 32),
    ],
)
def test_a_text_becomes_nodes(text: str, nodes: int, gpus: int) -> None:
    cluster = parse_cluster(text)
    assert (len(cluster.nodes), cluster.gpus) == (nodes, gpus)
    assert [node.name for node in cluster.nodes] == [f"n{number}" for number in range(nodes)]
    cluster.validate()


def test_amounts_are_integers_in_small_units() -> None:
    (node,) = parse_cluster("1x4,cpus=1.5,mem=0.5,gpumem=16,labels=ssd/ib").nodes
    assert (node.cpu, node.memory, node.gpu_memory) == (1500, 512, 16384)
    assert node.labels == ("ssd", "ib")


def test_nodes_without_gpus_are_a_pool_of_their_own() -> None:
    cluster = parse_cluster("2x4,cpus=8+1x0,cpus=64")
    assert [pool.type for pool in cluster.pools] == ["gpu", "cpu"]


def test_each_part_begins_a_new_rack() -> None:
    cluster = parse_cluster("3x4,rack=2+3x4,rack=2")
    assert [node.place for node in cluster.nodes] == [
        ("rack0",),
        ("rack0",),
        ("rack1",),
        ("rack2",),
        ("rack2",),
        ("rack3",),
    ]


def test_a_file_says_the_same_and_more(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(
        "[[nodes]]\ncount = 2\ngpus = 4\ncpus = 8\ntype = 'A'\nlabels = ['ssd']\nrack = 1\n"
        "[[nodes]]\ngpus = 8\ncpus = 64\ntype = 'B'\ngpumem = 80\n"
        "[costs]\nrestart = 5\nby_model = {bert = 9}\n[speed]\nB = 2.0\n"
    )
    spec = read_spec(str(file))
    assert [(node.gpus, node.cpu, node.type) for node in spec.cluster.nodes] == [
        (4, 8000, "A"),
        (4, 8000, "A"),
        (8, 64000, "B"),
    ]
    assert spec.cluster.nodes[0].labels == ("ssd",)
    assert spec.cluster.nodes[2].gpu_memory == 80 * 1024
    assert spec.costs == {"restart": 5, "by_model": {"bert": 9}}
    assert spec.type_factors == {"B": 2.0}

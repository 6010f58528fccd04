"""GALEN to the end: six recursive rules over the relations of a medical ontology.

    python benches/python/galen.py GALEN.ZIP [--share 0.01] [--workers 1]

The archive has the relations `p q r c u s`, comma-separated integers, one in a file each. `--share` takes a
part of each, for a trial. Prints the sizes of p and q at the end, the seconds that it took, those of the
processor, and how much memory it took at most.

    p(x,z) :- p(x,y), p(y,z).                  q(x,r,z) :- p(x,y), q(y,r,z).
    p(x,z) :- p(y,w), u(w,r,z), q(x,r,y).      q(x,e,z) :- q(x,r,z), s(r,e).
    p(x,z) :- c(y,w,z), p(x,w), p(x,y).        q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o).
"""

import argparse
import resource
import time
import zipfile
from typing import Any

import pointstamp as ps
from pointstamp import left, record, right

Relations = dict[str, list[tuple[int, ...]]]


def relations(path: str, share: float) -> Relations:
    """The relations of an archive."""
    found: Relations = {}
    with zipfile.ZipFile(path) as archive:
        for name in "pqrcus":
            lines = archive.read(f"{name}.txt").decode().split()
            kept = lines[: max(1, int(len(lines) * share))]
            found[name] = [tuple(int(part) for part in line.split(",")) for line in kept]
    return found


def closure(given: dict[str, Any]) -> tuple[Any, Any]:
    """The relations p and q at the end, as collections, from those that are given."""
    scope = given["p"].scope
    with scope.iterative() as loop:
        r, c, u, s = (given[name].enter(loop) for name in "rcus")
        # What the rules find goes round, and not the relations: what `distinct` gives is an index by record.
        p_found, q_found = loop.variable(), loop.variable()
        p = given["p"].enter(loop).concat(p_found.collection).distinct()
        q = given["q"].enter(loop).concat(q_found.collection).distinct()
        by_x = p.arrange()
        by_y = p.map((record[1], record[0])).arrange()
        rest = (record[0], (record[1], record[2]))
        q_by_x = q.map(rest).arrange()
        q_by_r = q.map((record[1], (record[0], record[2]))).arrange()
        q_by_rz = q.map(((record[1], record[2]), record[0])).arrange()
        q_by_xr = q.map(((record[0], record[1]), record[2])).arrange()

        p1 = by_y.join(by_x, (left, right))
        p2 = by_y.join(u.map(rest), ((right[0], left), right[1]))
        p2 = p2.join(q_by_rz, (right, left))
        p3 = by_y.join(c.map((record[1], (record[0], record[2]))), ((left, right[0]), right[1]))
        p3 = p3.join(p.map((record, None)), how="semi").map((record[0][0], record[1]))
        q1 = by_y.join(q_by_x, (left, right[0], right[1]))
        q2 = q_by_r.join(s, (left[0], right, left[1]))
        q3 = q_by_r.join(r.map(rest), ((left[1], right[0]), (left[0], right[1])))
        q3 = q3.join(q_by_xr, (left[0], left[1], right))

        p_found.set(p1.concat(p2, p3))
        q_found.set(q1.concat(q2, q3))
        return p.leave(), q.leave()


def main(worker: ps.Worker, found: Relations) -> tuple[int, int]:
    """The sizes of this worker's shares of p and q."""
    with worker.dataflow() as scope:
        given = {
            name: scope.collection(tuples[worker.index :: worker.peers]) for name, tuples in found.items()
        }
        sizes = [relation.map((0, 1)).sum().capture() for relation in closure(given)]
    worker.run()
    ends = [captured.extract() for captured in sizes]
    return tuple(end[0][1][0][0][1] if end else 0 for end in ends)  # type: ignore[return-value]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    loaded = relations(chosen.archive, chosen.share)
    began, cpu = time.perf_counter(), time.process_time()
    results = ps.execute(lambda worker: main(worker, loaded), workers=chosen.workers)
    p_size, q_size = (sum(sizes) for sizes in zip(*results, strict=True))
    passed, cpu = time.perf_counter() - began, time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"p = {p_size:,}, q = {q_size:,}")
    print(f"{passed:.1f} s, {cpu:.1f} s of the processor, {most:.2f} GiB at most")

"""The change of a part of the tree that falls apart by a key: V are the values that changes touch,

    change(N) = N(new rows with key in V) - N(old rows with key in V)

V is read off the changes of the leaves with the key, and off their rows that meet a change of
another one. Each leaf is read once, for all operators above it, and kept; both ends are evaluated
over the few rows that it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runnel.algebra.nodes import (
    Aggregate,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Scan,
    SemiJoin,
    Window,
    walk,
)
from runnel.compile.differentiate.emitter import Emitter, Reading, listed, names_of, repeated
from runnel.compile.differentiate.join_graph import sources
from runnel.compile.differentiate.linear import can_be_netted, netted
from runnel.compile.differentiate.nearness import (
    distance_of,
    name_in,
    near_leaf,
    read_near,
    tie_of,
)
from runnel.compile.differentiate.partition import (
    Edge,
    Partition,
    is_leaf,
    leaves,
    partition_of,
    scan_of,
    size_of,
)
from runnel.compile.near import Near, Tie
from runnel.compile.program import Keep, W, hint, step_of
from runnel.model.columns import Column

_KEY = "__k"
_NONLINEAR = (SemiJoin, OuterJoin, Aggregate)


def change_by_keys(emitter: Emitter, node: Node) -> str | None:
    """The step of the change, or None when the operators' own laws are to be used."""
    partition = useful_partition(node, emitter.changed, emitter.sizes)
    return _ByKeys(emitter, partition).change() if partition is not None else None


def useful_partition(
    node: Node, changed: frozenset[str], sizes: Mapping[str, int]
) -> Partition | None:
    """How a node falls apart by a key, if that saves readings.

    It does for several leaves, or several uses of one, and something that reads both ends of what
    changed below it.
    """
    if not isinstance(node, (InnerJoin, *_NONLINEAR)):
        return None
    found = Counter(leaves(node))
    if found.total() < 2 or not all(can_be_netted(n.columns) for n in (node, *found)):
        return None
    if not any(_reads_both_ends(n, found) and sources(n) & changed for n in walk(node)):
        return None
    return partition_of(node, changed, sizes)


def _reads_both_ends(node: Node, uses: Mapping[Node, int]) -> bool:
    """A window function alone reads its input once; its other uses would read that again."""
    if isinstance(node, Window):
        return any(uses[leaf] > 1 for leaf in leaves(node))
    return isinstance(node, _NONLINEAR)


@dataclass
class _ByKeys:
    emitter: Emitter
    partition: Partition
    steps: dict[Node, str] = field(default_factory=dict)
    """The new rows of each leaf."""
    _met_rows: dict[Node, str | None] = field(default_factory=dict)
    _distances: dict[Node, int | None] = field(default_factory=dict)
    """Of the rows that were last read of a leaf, from a change (see nearness)."""
    _origins: list[tuple[Node, str, int | None]] = field(default_factory=list)
    """Where the values are from: leaves, their columns, and the distance of their rows."""

    def change(self) -> str:
        values = self._values()
        if (first := self._narrowest()) is not None:
            self.steps[first] = self._keyed(first, values)
            values = self._narrowed(first)
        for alike in self._by_reading():
            self._read_together(alike, values)
        for leaf in self.partition.ways:
            self.steps[leaf] = self._met(leaf)
        columns = self.partition.root.columns
        ends = [(self._evaluated(is_old=False), W), (self._evaluated(is_old=True), f"-{W} AS {W}")]
        both = "\nUNION ALL\n".join(
            f"SELECT {listed(names_of(columns), w)} FROM ({sql})" for sql, w in ends
        )
        purpose = "what the touched keys give after, minus what they gave before"
        return self.emitter.add("keyed", purpose, netted(columns, both), columns)

    def _narrowest(self) -> Node | None:
        """A leaf with a filter, without which a value has no rows: its values are fewer."""
        found = [
            x for x in self.partition.keys if x in self.partition.mandatory and _is_filtered(x)
        ]
        return min(found, key=lambda x: size_of(x, self.emitter.sizes), default=None)

    def _by_reading(self) -> list[list[Node]]:
        """The other leaves with the key, together where they read a source by the same column."""
        groups: dict[tuple[str, str | None], list[Node]] = {}
        for leaf, column in self.partition.keys.items():
            if leaf not in self.steps:
                scan = scan_of(leaf)
                groups.setdefault((scan.source, name_in(leaf, column)), []).append(leaf)
        return [
            part
            for (_, name), found in groups.items()
            for part in ([found] if name is not None else [[leaf] for leaf in found])
        ]

    def _read_together(self, alike: list[Node], values: str) -> None:
        """Leaves of one source: its rows are kept once, and filtered for each."""
        if len(alike) == 1:
            self.steps[alike[0]] = self._keyed(alike[0], values)
            return
        scans = [scan_of(leaf) for leaf in alike]
        types = {n: c.type for s in scans for n, c in zip(s.names, s.columns, strict=True)}
        calls = {name: f"x{i}" for i, name in enumerate(types)}
        columns = tuple(Column(calls[name], type_) for name, type_ in types.items())
        whole = Scan(scans[0].source, columns, tuple(types), scans[0].weight)
        key = name_in(alike[0], self.partition.keys[alike[0]])
        assert key is not None
        kept = self._keyed(whole, values, calls[key])
        for leaf, scan in zip(alike, scans, strict=True):
            items = [
                f"{calls[n]} AS {c.name}" for n, c in zip(scan.names, scan.columns, strict=True)
            ]
            sql = f"SELECT {listed(items, W)} FROM {step_of(kept)}"
            rows = self._over(leaf, scan, Reading(sql, self.emitter.new(scan).is_unit))
            self.steps[leaf] = self.emitter.add(
                "rows_of", "those of one input", rows.sql, leaf.columns, bounds=[f"step:{kept}"]
            )
            self._distances[leaf] = self._distances[whole]

    def _over(self, leaf: Node, scan: Scan, reading: Reading) -> Reading:
        """A leaf over another reading of its source."""
        outer = self.emitter

        def new_law(inner: Emitter, part: Node) -> Reading:
            return reading if part == scan else outer.new_law(inner, part)

        return _reader(outer, new_law).new(leaf)

    def _values(self) -> str:
        """V: the values of the key that a change touches."""
        parts: list[str] = []
        bounds: list[str] = []
        for leaf, column in self.partition.keys.items():
            for step in self._touched(leaf):
                parts.append(f"SELECT {column} AS {_KEY} FROM {step_of(step)}")
                bounds.append(f"step:{step}")
            if self._touched(leaf):
                self._origins.append((leaf, column, self._distances.get(leaf, 0)))
        sql = f"SELECT DISTINCT {_KEY} FROM ({' UNION ALL '.join(parts)})"
        return self._add_values("values", "values of the key that a change touches", sql, bounds)

    def _narrowed(self, leaf: Node) -> str:
        """Those of the values that a leaf has rows for, before or after."""
        column = self.partition.keys[leaf]
        found = [s for s in (self.steps[leaf], self.emitter.change(leaf)) if s is not None]
        rows = " UNION ALL ".join(f"SELECT {column} AS {_KEY} FROM {step_of(s)}" for s in found)
        sql = f"SELECT DISTINCT {_KEY} FROM ({rows})"
        bounds = [f"step:{s}" for s in found]
        return self._add_values("values", "those that the narrowest input has", sql, bounds)

    def _add_values(self, stem: str, purpose: str, sql: str, bounds: list[str]) -> str:
        leaf, column = next(iter(self.partition.keys.items()))
        type_ = next(c.type for c in leaf.columns if c.name == column)
        return self.emitter.add(
            stem, purpose, sql, [Column(_KEY, type_)], keep=Keep.RESTRICTING, meets=self._all,
            of_small=f"SELECT CAST(NULL AS {type_}) AS {_KEY} WHERE FALSE", bounds=bounds,
        )  # fmt: skip

    def _reached(self, leaf: Node) -> str | None:
        """The step of a leaf's rows that meet a change of one that is reached from it."""
        if leaf not in self._met_rows:
            self._met_rows[leaf] = self._meeting(leaf)
        return self._met_rows[leaf]

    def _meeting(self, leaf: Node) -> str | None:
        edges = [edge for edge in self.partition.ways.values() if edge.one == leaf]
        messages = [(edge, step) for edge in edges for step in self._touched(edge.other)]
        if not messages:
            return None
        near = self._near(leaf, [self._along(edge) for edge, _ in messages])
        met = " OR ".join(_is_met(edge, step) for edge, step in messages)
        rows = self._rows(leaf)
        return self.emitter.add(
            "reached", "rows that meet a change", f"{read_near(rows, near)} WHERE {met}",
            leaf.columns, keep=Keep.RESTRICTING, meets=self._all,
            of_small=f"{rows} WHERE FALSE", near=near,
        )  # fmt: skip

    def _touched(self, leaf: Node) -> list[str]:
        """The steps of a leaf's rows that are changed or meet a change."""
        return [s for s in (self.emitter.change(leaf), self._reached(leaf)) if s is not None]

    def _near(self, leaf: Node, ties: list[Tie | None]) -> Near | None:
        near = near_leaf(self.emitter, leaf, ties)
        self._distances[leaf] = distance_of(near)
        return near

    def _along(self, edge: Edge) -> Tie | None:
        """That rows of an edge's first leaf meet those that were read of the other."""
        pair = (edge.column, edge.sign, edge.other_column)
        distance = self._distances.get(edge.other, 0)
        return tie_of(self.emitter, edge.one, [pair], edge.other, distance)

    def _keyed(self, leaf: Node, values: str, column: str | None = None) -> str:
        """A leaf's new rows at the values."""
        same = "=" if self.partition.ends_null else "<=>"
        column = column or self.partition.keys[leaf]
        met = (
            f"EXISTS (SELECT {hint('v', values)} 1 FROM {step_of(values)} v "
            f"WHERE v.{_KEY} {same} r.{column})"
        )
        ties = [
            tie_of(self.emitter, leaf, [(column, same, c)], other, distance)
            for other, c, distance in self._origins
        ]
        near = self._near(leaf, ties)
        return self._restricted(leaf, met, self._all, "rows of the touched keys", near)

    def _met(self, leaf: Node) -> str:
        """New rows of a leaf without the key that can meet those of the leaf it is reached from."""
        edge = self.partition.ways[leaf].turned()
        parts = (self.steps[edge.other], self.emitter.change(edge.other))
        met = " OR ".join(_is_met(edge, step) for step in parts if step is not None)
        near = self._near(leaf, [self._along(edge)])
        return self._restricted(leaf, met, sources(leaf), "rows that touched keys meet", near)

    def _restricted(
        self, leaf: Node, met: str, meets: frozenset[str], purpose: str, near: Near | None
    ) -> str:
        rows = self._rows(leaf)
        return self.emitter.add(
            "rows_of", purpose, f"{read_near(rows, near)} WHERE {met}", leaf.columns,
            keep=Keep.RESTRICTING, meets=meets, of_small=rows, near=near,
        )  # fmt: skip

    def _rows(self, leaf: Node) -> str:
        names = listed(names_of(leaf.columns), W)
        return f"SELECT {names} FROM ({self.emitter.new(leaf).sql}) r"

    def _evaluated(self, is_old: bool) -> str:
        """The root over the leaves as they were, or as they are."""
        outer = self.emitter

        def new_law(inner: Emitter, part: Node) -> Reading:
            if part in self.steps:
                return self._end(part, is_old)
            if not any(leaf in self.steps for leaf in leaves(part)):
                # Nothing in it changed: it is the same at both ends, and computed once.
                return _as_units(part, outer.new(part)) if is_leaf(part) else outer.new(part)
            return outer.new_law(inner, part)

        return _reader(outer, new_law).new(self.partition.root).sql

    def _end(self, leaf: Node, is_old: bool) -> Reading:
        names = listed(names_of(leaf.columns), W)
        sql = f"SELECT {names} FROM {step_of(self.steps[leaf])}"
        reading = Reading(sql, self.emitter.new(leaf).is_unit)
        return _as_units(leaf, self.emitter.before(leaf, reading) if is_old else reading)

    @property
    def _all(self) -> frozenset[str]:
        return sources(self.partition.root)


def _reader(outer: Emitter, new_law: Callable[[Emitter, Node], Reading]) -> Emitter:
    """An emitter for readings under a law of their own."""
    return Emitter(
        outer.kinds, frozenset(), frozenset(), new_law, outer.change_law, sizes=outer.sizes,
        steps=outer.steps,
    )  # fmt: skip


def _as_units(leaf: Node, reading: Reading) -> Reading:
    """Each row as often as it is there, so that plain SQL holds for them."""
    if reading.is_unit:
        return reading
    names = names_of(leaf.columns)
    # Of values that were left out since they give nothing, only the changed rows are here.
    present = f"SELECT * FROM ({netted(leaf.columns, reading.sql)}) WHERE {W} > 0"
    items = listed(names, f"CAST(1 AS BIGINT) AS {W}")
    return Reading(f"SELECT {items} FROM ({repeated(present, names)})", is_unit=True)


def _is_filtered(leaf: Node) -> bool:
    return any(isinstance(n, Filter) for n in walk(leaf))


def _is_met(edge: Edge, step: str) -> str:
    """Whether a row r of the edge's first leaf meets a row of a step with rows of the other."""
    return (
        f"EXISTS (SELECT {hint('m', step)} 1 FROM {step_of(step)} m "
        f"WHERE m.{edge.other_column} {edge.sign} r.{edge.column})"
    )

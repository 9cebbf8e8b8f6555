"""Every clause of the syntax tree is either built or refused: none is dropped without a word."""

from __future__ import annotations

from sqlglot import exp

from runnel.errors import NotDifferentiable

# Neither the order of rows nor hints change a bag.
_MEANINGLESS = frozenset({"order", "sort", "cluster", "distribute", "hint", "hints"})
_HANDLED: tuple[tuple[type[exp.Expr], frozenset[str]], ...] = (
    (
        exp.Select,
        frozenset(
            "with_ expressions distinct from_ joins laterals where group having qualify limit "
            "offset".split()
        ),
    ),
    (
        exp.SetOperation,
        frozenset({"with_", "this", "expression", "distinct", "limit", "offset"}),
    ),
    (exp.Subquery, frozenset({"with_", "this", "alias", "joins", "pivots", "limit", "offset"})),
    (exp.Table, frozenset({"this", "db", "catalog", "alias", "joins", "pivots"})),
    (exp.Join, frozenset({"this", "side", "kind", "method", "on", "using", "pivots"})),
)
_LABELS = {
    "by_name": "UNION BY NAME",
    "match": "MATCH_RECOGNIZE",
    "when": "AS OF",
}


def refuse_other_clauses(node: exp.Expr) -> None:
    """Raise for a clause of this node that the builder knows nothing of."""
    for kind, handled in _HANDLED:
        if isinstance(node, kind):
            for name, value in node.args.items():
                if value and name not in handled | _MEANINGLESS:
                    label = _LABELS.get(name, name.rstrip("_").upper())
                    raise NotDifferentiable(label, hint="use refresh mode FULL or AUTO")
            return

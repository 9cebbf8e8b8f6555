"""What no refresh mode can keep: constructs whose answer is not a function of the sources."""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.collated import refuse_collated_keys
from runnel.compile.lifting import is_any_row
from runnel.compile.parse import parse
from runnel.compile.places import at, point
from runnel.compile.rewrites.named_windows import expand_named_windows
from runnel.compile.window_forms import refuse_no_order
from runnel.errors import InvalidQuery

NON_DETERMINISTIC = frozenset(
    "rand randn random uuid shuffle randstr uniform monotonically_increasing_id spark_partition_id "
    "input_file_name input_file_block_start input_file_block_length "
    "java_method reflect try_reflect".split()
)
SESSION_DEPENDENT = frozenset(
    "current_time current_timezone current_user user session_user current_catalog current_database "
    "current_path current_schema version".split()
)
# DATE 'today' is not CAST('today' AS DATE), and no two days the same.
_SPECIAL_DATES = frozenset("now today yesterday tomorrow epoch".split())


def refuse(query: str, tree: exp.Query | None = None) -> None:
    """Raise for the first construct that makes the answer depend on more than the sources."""
    try:
        for node in expand_named_windows(tree or parse(query)).walk():
            with at(node):
                _refuse(node)
    except InvalidQuery as error:
        point(error, query)
        raise


def _refuse(node: exp.Expr) -> None:
    _refuse_function(node)
    _refuse_special_date(node)
    if isinstance(node, exp.TableSample):
        with at(node, "TABLESAMPLE"):
            raise InvalidQuery(
                "TABLESAMPLE is not deterministic",
                hint="filter by a hash of a column instead: WHERE pmod(xxhash64(id), 100) < 10",
            )
    if isinstance(node, exp.Select):
        refuse_collated_keys(node)
    if isinstance(node, exp.Window):
        refuse_no_order(node)
    for clause in _arbitrary_clauses(node):
        limiting = node.args[clause.lower()]
        with at(limiting, "FETCH" if isinstance(limiting, exp.Fetch) else clause):
            raise InvalidQuery(
                f"{clause} without ORDER BY is not deterministic",
                detail="which rows it keeps would change from one refresh to the next",
                hint=f"add ORDER BY over columns that decide the order, or drop {clause}",
            )
    if isinstance(node, exp.Join) and node.method == "NATURAL" and node.kind in ("SEMI", "ANTI"):
        # Spark stops with an error of its own inside.
        raise InvalidQuery(
            f"NATURAL LEFT {node.kind} JOIN, which Spark does not run",
            hint=f"name the columns: LEFT {node.kind} JOIN ... USING (...)",
        )
    if isinstance(node, exp.Version):
        with at(node, node.name):
            raise InvalidQuery(
                "time travel in a stream table's query",
                detail="Runnel decides which version of each source is read",
                hint="remove VERSION AS OF / TIMESTAMP AS OF",
            )
    if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
        raise InvalidQuery(
            f"parameter {node.sql('spark')} has no value in a stored query",
            hint="write the value into the query",
        )


def strange_functions(tree: exp.Query) -> frozenset[str]:
    """Functions that only Spark may know, if they are not the user's own."""
    return frozenset(node.name.lower() for node in tree.find_all(exp.Anonymous))


def _arbitrary_clauses(node: exp.Expr) -> list[str]:
    """LIMIT and OFFSET over rows in no order; EXISTS asks only whether there is one."""
    if not isinstance(node, exp.Query) or node.args.get("order"):
        return []
    if isinstance(node.parent, exp.Exists) and is_any_row(node):
        return []
    return [clause for clause in ("LIMIT", "OFFSET") if node.args.get(clause.lower())]


def _refuse_function(node: exp.Expr) -> None:
    names = _function_names(node)
    if "aes_encrypt" in names and _has_random_start(node):
        raise InvalidQuery(
            "aes_encrypt() is not deterministic",
            detail="without an initialisation vector it takes a random one for each row",
            hint="give it one as the fifth argument, or encrypt when the source rows are written",
        )
    if names & NON_DETERMINISTIC:
        raise InvalidQuery(
            f"{min(names & NON_DETERMINISTIC)}() is not deterministic",
            detail="the contents of a stream table must follow from its sources alone",
            hint="remove it, or compute it once when the source rows are written",
        )
    if names & SESSION_DEPENDENT:
        raise InvalidQuery(
            f"{min(names & SESSION_DEPENDENT)}() depends on when and where the query runs",
            detail="the contents of a stream table must follow from its sources alone",
            hint="write the value into the query; for the time there are current_timestamp(), "
            "current_date() and localtimestamp(), which give the data timestamp of the refresh",
        )


def _has_random_start(node: exp.Expr) -> bool:
    arguments = node.expressions
    mode = arguments[2].name.upper() if len(arguments) > 2 else "GCM"
    return len(arguments) < 5 and mode != "ECB"


def _refuse_special_date(node: exp.Expr) -> None:
    if not isinstance(node, exp.Cast) or not node.this.is_string:
        return
    words = node.this.name.lower().split()
    if node.is_type("date", "timestamp", "timestamptz", "timestampltz", "timestampntz") and (
        words and words[0] in _SPECIAL_DATES
    ):
        raise InvalidQuery(
            f"'{node.this.name}' as a date depends on when the query runs",
            hint="write current_date() or current_timestamp(), or the date itself",
        )


def _function_names(node: exp.Expr) -> frozenset[str]:
    if isinstance(node, exp.Anonymous):
        return frozenset({node.name.lower()})
    if isinstance(node, exp.Func):
        return frozenset(name.lower() for name in node.sql_names())
    return frozenset()

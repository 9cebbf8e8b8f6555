"""JSON: paths into a document kept as text; the document as a whole is not looked into."""

from __future__ import annotations

from sqlglot import exp

from runnel.compile.postgres.types import INT4, JSON, TEXT
from runnel.compile.postgres.values import Value, refused, text_literal

_PATHS = (exp.JSONExtract, exp.JSONExtractScalar)
_DEEP = (exp.JSONBExtract, exp.JSONBExtractScalar)


def is_path(node: exp.Expr) -> bool:
    return isinstance(node, (*_PATHS, *_DEEP))


def path_steps(node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    """The document, and the steps into it that the operators take one after the other."""
    steps: list[str] = []
    while is_path(node):
        own = _step(node.expression) if isinstance(node, _PATHS) else _deep_steps(node.expression)
        steps = own + steps
        node = node.this.unnest()
    return node, steps


def extracted(document: Value, steps: list[str], is_text: bool) -> Value:
    """`->>` gives text. What `->` gives can only be looked into further."""
    if document.type.kind not in ("json", "text"):
        raise refused(f"-> of {document.type}", hint="JSON is kept as text")
    path = text_literal("$" + "".join(steps))
    return Value(f"GET_JSON_OBJECT({document.sql}, {path})", TEXT if is_text else JSON)


def array_length(arguments: list[Value]) -> Value:
    if arguments[0].type.kind not in ("json", "text"):
        raise refused(f"jsonb_array_length() of {arguments[0].type}")
    return Value(f"JSON_ARRAY_LENGTH({arguments[0].sql})", INT4)


def _step(node: exp.Expr) -> list[str]:
    if isinstance(node, exp.JSONPath):
        parts = [p for p in node.expressions if not isinstance(p, exp.JSONPathRoot)]
        return [_one(p.this) for p in parts]
    raise refused("a JSON key that is not constant")


def _deep_steps(node: exp.Expr) -> list[str]:
    text = node.name if isinstance(node, exp.Literal) else ""
    if not (text.startswith("{") and text.endswith("}")) or '"' in text:
        raise refused("a JSON path that is not constant", hint="write it like '{a,b}'")
    keys = [key.strip() for key in text[1:-1].split(",") if key.strip()]
    return [_one(int(key) if key.isdigit() else key) for key in keys]


def _one(key: object) -> str:
    if isinstance(key, int):
        if key < 0:
            raise refused("a JSON subscript that counts from the end")
        return f"[{key}]"
    if not isinstance(key, str) or any(c in key for c in "'\\[]*?"):
        raise refused(
            f"the JSON key {key!r}", hint="letters, digits and underscores are read alike"
        )
    return f"['{key}']"


FUNCTIONS = {"jsonb_array_length": array_length, "json_array_length": array_length}

"""A scalar expression over columns, opaque but for the columns it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text with holes: `pieces` has one element more than `columns`, which fill the holes."""

    pieces: tuple[str, ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.columns) + 1:
            raise ValueError("a scalar needs one more piece than columns")

    @staticmethod
    def column(name: str) -> Scalar:
        return Scalar(("", ""), (name,))

    @staticmethod
    def constant(text: str) -> Scalar:
        return Scalar((text,), ())

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.columns)

    @property
    def bare_column(self) -> str | None:
        """The column's name when the expression is nothing but that column."""
        return self.columns[0] if self.pieces == ("", "") else None

    def render(self, column: Callable[[str], str] = lambda name: name) -> str:
        out = [self.pieces[0]]
        for name, piece in zip(self.columns, self.pieces[1:], strict=True):
            out.append(column(name))
            out.append(piece)
        return "".join(out)

    def rename(self, names: Mapping[str, str]) -> Scalar:
        return Scalar(self.pieces, tuple(names.get(c, c) for c in self.columns))

    def substitute(self, values: Mapping[str, Scalar]) -> Scalar:
        """Replace columns by expressions; each is put in parentheses."""
        result = Scalar.constant(self.pieces[0])
        for name, piece in zip(self.columns, self.pieces[1:], strict=True):
            value = values.get(name, Scalar.column(name))
            if value.bare_column is None:
                value = wrap("(", value, ")")
            result = join(join(result, value), Scalar.constant(piece))
        return result

    def __str__(self) -> str:
        return self.render()


def join(left: Scalar, right: Scalar) -> Scalar:
    """Put two expressions' texts one after the other."""
    pieces = (*left.pieces[:-1], left.pieces[-1] + right.pieces[0], *right.pieces[1:])
    return Scalar(pieces, left.columns + right.columns)


def wrap(before: str, inner: Scalar, after: str) -> Scalar:
    """Put text around an expression."""
    return join(join(Scalar.constant(before), inner), Scalar.constant(after))

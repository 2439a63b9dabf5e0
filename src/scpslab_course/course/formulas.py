"""Formulas: a small part of Python's grammar, evaluated without Python's `eval`, and what they may read.

    rate * 2 * delay / 8
    mean("transfer", "goodput_bps", "stack=cubic") / rate
    "window" if window * 8 < rate * 2 * delay else "rate"

A formula has numbers, texts, names of parameters, + - * / ** %, comparisons, `and`, `or`, `not`, `if … else`, and calls
of functions. Everything else is refused when it is read. All numbers are floats, so that none can become large enough
to cost time or memory. Parameters are in base units. Functions of results name the scenario, a column of results.csv,
and the cells by `axis=value`. Only completed cells count.
"""

import ast
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from scpslab.core import units
from scpslab.core.choices import choice
from scpslab.core.problems import UnfitError
from scpslab.documents.quantities import AxisValue

Value = float | str
Function = Callable[..., Value]
LONGEST, MOST_NODES, DEEPEST = 500, 200, 30
OPERATIONS: dict[type[ast.AST], Callable[..., Value]] = {
    **{getattr(ast, name): getattr(operator, name.lower()) for name in ("Add", "Sub", "Mod", "Pow", "Eq", "Lt", "Gt")},
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.NotEq: operator.ne,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
}
ALLOWED = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp),
    *(ast.Call, ast.Name, ast.Constant, ast.Load, ast.And, ast.Or),
    *OPERATIONS,
)
GRAMMAR = "numbers, texts, names, + - * / % **, comparisons, and, or, not, if … else, and calls of functions"
Row = Mapping[str, str]
Rows = Mapping[str, Sequence[Row]]
NANOSECONDS = 10**9
# Functions whose first argument is a scenario; the second of most is a column.
OF_RESULTS = ("best", "completed", "highest", "lowest", "mean", "nth", "words")


MATHEMATICS: dict[str, Function] = {
    **{one.__name__: one for one in (abs, max, min, math.exp, math.log, math.log10, math.sqrt)},
    "ceil": lambda number: float(math.ceil(number)),
    "floor": lambda number: float(math.floor(number)),
    "round": lambda number, digits=0.0: round(number, int(digits)),
}
NAMES = (*MATHEMATICS, *OF_RESULTS)


class FormulaError(UnfitError):
    """A formula that is none, or that has no value here."""


@dataclass(frozen=True)
class Formula:
    """A formula that was read; `source` is its text."""

    source: str
    tree: ast.expr

    @property
    def calls(self) -> Iterator[tuple[str, tuple[object, ...]]]:
        """The functions that it calls, with the arguments that are written out; None stands for a computed one."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, tuple(item.value if isinstance(item, ast.Constant) else None for item in node.args)

    def reads(self, scenario: str, axes: Mapping[str, AxisValue] | None = None) -> bool:
        """Whether it may read the results of a scenario, or of a cell: one that no condition on its axes leaves out."""
        of_it = [where[1:] for name, where in self.calls if name in OF_RESULTS and where[0] in (scenario, None)]
        return any(axes is None or all(_admits(one, axes) for one in conditions) for conditions in of_it)

    def value(self, parameters: Mapping[str, AxisValue], rows: Rows = MappingProxyType({})) -> Value:
        """The value for a variant's parameters and the results of its runs: a finite number or a text.

        Raises:
            FormulaError: it has none, such as a division by 0 or a mean of no cells.
        """
        try:
            names = {name: base_value(value) for name, value in parameters.items()}
            value = _value(self.tree, names, functions(rows))
        except FormulaError:
            raise
        except (ArithmeticError, ValueError, TypeError) as error:
            raise FormulaError(f"no value of {self.source!r} ({error})", "a number or a text") from error
        if isinstance(value, str):
            return value
        if isinstance(value, bool) or not isinstance(value, float | int) or not math.isfinite(value):
            raise FormulaError(f"the value {value!r} of {self.source!r}", "a finite number or a text")
        return float(value)


def _admits(argument: object, axes: Mapping[str, AxisValue]) -> bool:
    """Whether an argument is no condition, or one that is met or is about no axis."""
    axis, equals, value = str(argument).partition("=")
    return not equals or axis not in axes or _same(str(axes[axis]), value)


def parse(source: str, names: Collection[str]) -> Formula:
    """A formula from its text; every name and function in it must be known.

    Raises:
        FormulaError: what is wrong with it.
    """
    if len(source) > LONGEST:
        raise FormulaError(f"a formula of {len(source)} characters", f"at most {LONGEST}")
    try:
        tree = ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = getattr(error, "msg", None) or "no expression"
        raise FormulaError(f'"{source}" ({said})', 'a formula such as "rate * delay / 8"') from error
    nodes = list(ast.walk(tree))
    if len(nodes) > MOST_NODES or _depth(tree) > DEEPEST:
        most = f"at most {MOST_NODES}, nested at most {DEEPEST} deep"
        raise FormulaError(f"a formula of {len(nodes)} parts", most)
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        _check(node, names, is_called=id(node) in called)
    return Formula(source, tree.body)


def _check(node: ast.AST, names: Collection[str], *, is_called: bool) -> None:
    if not isinstance(node, ALLOWED):
        raise FormulaError(f"{type(node).__name__} in a formula", GRAMMAR)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float | str):
            raise FormulaError(f"{node.value!r} in a formula", "a number or a text")
        if isinstance(node.value, int | float) and not abs(node.value) <= sys.float_info.max:
            raise FormulaError("a number beyond all bounds", "a finite one")
    elif isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.keywords:
            example = 'mean("transfer", "transfer_s", "stack=cubic")'
            raise FormulaError("a call with a keyword or of no plain name", f"one such as {example}")
        if node.func.id not in NAMES:
            raise FormulaError(f'the function "{node.func.id}"', *choice(node.func.id, sorted(NAMES)))
    elif isinstance(node, ast.Name) and not is_called and node.id not in names:
        raise FormulaError(f'the name "{node.id}"', *choice(node.id, sorted(names)))


def _depth(node: ast.AST) -> int:
    deepest, level = 0, [node]
    while level:
        deepest += 1
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    return deepest


def _value(node: ast.expr, names: Mapping[str, Value], functions: Mapping[str, Function]) -> Value | bool:
    def of(inner: ast.expr) -> Value | bool:
        return _value(inner, names, functions)

    result: Value | bool
    match node:
        case ast.Constant(value=str() | int() | float() as constant):
            result = constant if isinstance(constant, str) else float(constant)
        case ast.Name(id=name):
            result = names[name]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            result = functions[name](*map(of, arguments))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            result = of(body if of(test) else orelse)
        case ast.BinOp(left=left, op=op, right=right):
            result = _combined(type(op), of(left), of(right))
        case ast.UnaryOp(op=sign, operand=operand):
            value = of(operand)
            result = OPERATIONS[type(sign)](value if isinstance(sign, ast.Not) else _number(value))
        case ast.BoolOp(op=joint, values=values):
            result = all(map(of, values)) if isinstance(joint, ast.And) else any(map(of, values))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            compared = [of(item) for item in (left, *rights)]
            result = all(OPERATIONS[type(op)](*pair) for op, pair in zip(ops, pairwise(compared), strict=True))
        case _:
            raise FormulaError(f"{type(node).__name__} in a formula", GRAMMAR)
    return result


def _combined(kind: type[ast.operator], left: Value | bool, right: Value | bool) -> Value:
    result = OPERATIONS[kind](_number(left), _number(right))
    if isinstance(result, complex):
        raise FormulaError("the root of a negative number", "a real one")
    return result


def _number(value: Value | bool) -> float:
    if isinstance(value, str):
        raise FormulaError(f"the text {value!r} where a number is meant", "a number")
    return float(value)


def base_value(value: AxisValue) -> Value:
    """A parameter in a formula: a quantity in bit/s, s or bytes, another number as it is, and any other text as
    text.
    """
    if isinstance(value, str):
        kind = kind_of(value)
        if kind is None:
            return value
        number = units.parse(kind, value)
        return number / NANOSECONDS if kind == "duration" else float(number)
    return float(value)


def kind_of(text: str) -> str | None:
    """The kind of quantity that a text is: rate, duration or size; None for any other text."""
    for kind in units.KINDS:
        with suppress(units.UnitError):
            units.parse(kind, text)
            return kind
    return None


def functions(rows: Rows) -> dict[str, Function]:
    """The functions of formulas over these results."""

    def taken(scenario: Value, *where: Value) -> list[Row]:
        return _cells(rows, scenario, where)

    def over(reduce: Callable[[Sequence[float]], float]) -> Function:
        return lambda scenario, column, *where: reduce(_numbers(taken(scenario, *where), scenario, column, where))

    def best(scenario: Value, column: Value, axis: Value, *where: Value) -> Value:
        values = dict.fromkeys(row.get(str(axis), "") for row in taken(scenario, *where))
        return max(values, key=lambda value: over(_mean)(scenario, column, *where, f"{axis}={value}"))

    def nth(scenario: Value, column: Value, number: Value, *where: Value) -> Value:
        words = _words(taken(scenario, *where), column)
        if isinstance(number, str) or not 1 <= number <= len(words):
            found = f"no word {number} among the {len(words)} of {column} in {scenario}"
            raise FormulaError(found, f"a number from 1 to {len(words)}")
        return words[int(number) - 1]

    return {
        **MATHEMATICS,
        "mean": over(_mean),
        "lowest": over(min),
        "highest": over(max),
        "best": best,
        "nth": nth,
        "words": lambda scenario, column, *where: " ".join(_words(taken(scenario, *where), column)),
        "completed": lambda scenario, *where: float(sum(map(_is_completed, taken(scenario, *where)))),
    }


def _words(cells: Sequence[Row], column: Value) -> list[str]:
    return [word for row in cells for word in row.get(str(column), "").split()]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _is_completed(row: Row) -> bool:
    return row.get("status") == "completed"


def _cells(rows: Rows, scenario: Value, where: tuple[Value, ...]) -> list[Row]:
    if scenario not in rows:
        raise FormulaError(f'the scenario "{scenario}" without results', *choice(scenario, rows))
    rows_left = list(rows[str(scenario)])
    for condition in where:
        axis, equals, value = str(condition).partition("=")
        if not equals or (rows_left and axis not in rows_left[0]):
            known = list(rows[str(scenario)][0])[:12] if rows[str(scenario)] else []
            expected = f"AXIS=VALUE with an axis of {scenario}, such as {', '.join(known)}"
            raise FormulaError(f'the condition "{condition}"', expected)
        rows_left = [row for row in rows_left if _same(row[axis], value)]
    if not rows_left:
        raise FormulaError(f"no cell of {scenario} with {' and '.join(map(str, where))}", "at least one")
    return rows_left


def _numbers(found: Sequence[Row], scenario: Value, column: Value, where: tuple[Value, ...]) -> list[float]:
    if str(column) not in found[0]:
        raise FormulaError(f'no column "{column}" in the results of {scenario}', *choice(column, found[0]))
    texts = [row[str(column)] for row in found if _is_completed(row) and row[str(column)] != ""]
    try:
        numbers = [float(text) for text in texts]
    except ValueError as error:
        raise FormulaError(f'"{texts[0]}" in column {column} of {scenario}', "a column of numbers") from error
    if not numbers:
        cells = f"{scenario} {' and '.join(map(str, where))}".rstrip()
        raise FormulaError(f"no completed cell of {cells} with {column}", "at least one")
    return numbers


def _same(found: str, wanted: str) -> bool:
    with suppress(ValueError):
        return found == wanted or float(found) == float(wanted)
    return False

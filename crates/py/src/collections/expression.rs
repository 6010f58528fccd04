//! Expressions, as Python writes them.

use std::sync::Arc;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use pointstamp_rows::RowBuf;
use pointstamp_rows::expressions::{Expr, Function, Op, Relation, Source};

use super::aggregate::{Aggregate, aggregate_expr};
use super::values::{FromPython, ToPython};
use crate::columns::schema::Schema;
use crate::errors::GraphError;

/// The maximum depth of expressions. Functions on them recurse, and the deepest has to fit on any thread's stack.
const MAX_DEPTH: u32 = 100;

/// A part of a record, or a computation on parts.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> def build(scope):
///     ...     stock = scope.collection([("tea", 3), ("rye", 0)])
///     ...     return stock.filter(ps.record[1] > 0).map(ps.record[0]).capture()
///     >>> ps.example(build).extract()
///     [(0, [('tea', 1)])]
#[pyclass(frozen, name = "Expr", module = "pointstamp._core")]
pub(crate) struct Expression {
    expr: Expr,
    /// The depth of nesting.
    depth: u32,
}

/// An expression, and how deep it is nested.
type Measured = (Expr, u32);

impl Expression {
    /// A field of an expression around others, the deepest of which is nested so deep.
    fn around(depth: u32, make: impl FnOnce() -> Expr) -> PyResult<Self> {
        let depth = deeper(depth)?;
        Ok(Expression {
            expr: make(),
            depth,
        })
    }

    fn binary(op: Op, (a, left): Measured, (b, right): Measured) -> PyResult<Self> {
        Expression::around(left.max(right), || {
            Expr::Binary(op, Arc::new(a), Arc::new(b))
        })
    }

    fn measured(&self) -> Measured {
        (self.expr.clone(), self.depth)
    }

    fn with(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Expression::binary(op, self.measured(), self.beside(other)?)
    }

    fn after(&self, op: Op, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Expression::binary(op, self.beside(other)?, self.measured())
    }

    /// The other value of a computation: beside columns, constants have the types of columns.
    fn beside(&self, other: &Bound<'_, PyAny>) -> PyResult<Measured> {
        if self.reads_columns()
            && let Some(typed) = typed_constant(other)?
        {
            return Ok(typed.get().measured());
        }
        measured(other, 0)
    }

    fn reads_columns(&self) -> bool {
        let mut any = false;
        self.expr.for_each_column(&mut |_| any = true);
        any
    }

    /// A function of this value and others.
    fn call(
        &self,
        function: Function,
        argument: &str,
        others: &[Bound<'_, PyAny>],
    ) -> PyResult<Self> {
        let others = others.iter().map(|other| self.beside(other));
        let parts = std::iter::once(Ok(self.measured())).chain(others);
        called(function, argument, parts)
    }
}

#[pymethods]
impl Expression {
    fn __getitem__(&self, index: isize) -> PyResult<Self> {
        let Ok(index) = usize::try_from(index) else {
            return Err(PyIndexError::new_err(format!(
                "the parts of a record are counted from 0 on: {index} is none of them"
            )));
        };
        Expression::around(self.depth, || {
            Expr::Item(Arc::new(self.expr.clone()), index)
        })
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Add, other)
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Add, other)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Sub, other)
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Sub, other)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Mul, other)
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Mul, other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Div, other)
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.after(Op::Div, other)
    }

    fn __neg__(&self) -> PyResult<Self> {
        let mut zero = RowBuf::default();
        zero.int(0);
        Expression::binary(
            Op::Sub,
            (Expr::Constant(Arc::new(zero)), 0),
            self.measured(),
        )
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::And, other)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.with(Op::Or, other)
    }

    fn __invert__(&self) -> PyResult<Self> {
        Expression::around(self.depth, || Expr::Not(Arc::new(self.expr.clone())))
    }

    /// True if the value is null, which is None in records.
    ///
    /// Examples:
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     return scope.collection([("tea", 3), ("rye", None)]).filter(ps.record[1].is_null()).capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [(('rye', None), 1)])]
    fn is_null(&self) -> PyResult<Self> {
        Expression::around(self.depth, || Expr::IsNull(Arc::new(self.expr.clone())))
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::Rem, "", std::slice::from_ref(other))
    }

    /// True if the value equals one of several; of no equal one and a null among them, null.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": [1, 2, 3]}))
    ///     ...     return rows.select("n", made=ps.col("n").is_in([1, 3])).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False, True]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn is_in(&self, values: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        self.call(Function::IsIn, "", &values)
    }

    /// True if the text has the form of a pattern, in which `%` is any text and `_` any character.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").like("A%")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False]
    fn like(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::Like, "", std::slice::from_ref(pattern))
    }

    /// True if the text has the form of a pattern, whatever the case of letters is.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").ilike("a%")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False]
    fn ilike(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::ILike, "", std::slice::from_ref(pattern))
    }

    /// True if a regular expression, in the syntax of Rust's crate `regex`, matches a part of the text.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").matches("n+$")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False]
    fn matches(&self, pattern: &str) -> PyResult<Self> {
        self.call(Function::Matches, pattern, &[])
    }

    /// True if the text starts with another.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").starts_with("A")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False]
    fn starts_with(&self, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::StartsWith, "", std::slice::from_ref(text))
    }

    /// True if the text ends with another.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").ends_with("n")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [True, False]
    fn ends_with(&self, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::EndsWith, "", std::slice::from_ref(text))
    }

    /// True if the text contains another.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").contains("o")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [False, True]
    fn contains(&self, text: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::Contains, "", std::slice::from_ref(text))
    }

    /// A part of the text, by characters: from `start`, which counts from 1, or from the end if it is negative.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").substr(2, 1)).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     ['n', 'o']
    #[pyo3(signature = (start, length=None))]
    fn substr(&self, start: i64, length: Option<u32>) -> PyResult<Self> {
        let argument = match length {
            None => start.to_string(),
            Some(length) => format!("{start},{length}"),
        };
        self.call(Function::Substr, &argument, &[])
    }

    /// The text in lower case.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").lower()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     ['ann', 'bo']
    fn lower(&self) -> PyResult<Self> {
        self.call(Function::Lower, "", &[])
    }

    /// The text in upper case.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").upper()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     ['ANN', 'BO']
    fn upper(&self) -> PyResult<Self> {
        self.call(Function::Upper, "", &[])
    }

    /// The text without spaces around it.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": [" Ann "]}))
    ///     ...     return rows.select("name", made=ps.col("name").trim()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     ['Ann']
    fn trim(&self) -> PyResult<Self> {
        self.call(Function::Trim, "", &[])
    }

    /// The number of characters of the text.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"name": ["Ann", "Bo"]}))
    ///     ...     return rows.select("name", made=ps.col("name").length()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [3, 2]
    fn length(&self) -> PyResult<Self> {
        self.call(Function::Length, "", &[])
    }

    /// A part of a date or timestamp, by name: year, quarter, month, week (ISO), day, dayofweek (Sunday is 0), isodow (Monday is 1), dayofyear, hour, minute, second.
    ///
    /// Examples:
    ///     >>> from datetime import date
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"day": [date(2024, 5, 31)]}))
    ///     ...     return rows.select("day", made=ps.col("day").extract("month")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [5]
    fn extract(&self, part: &str) -> PyResult<Self> {
        self.call(Function::Extract, part_named(part, &PARTS)?, &[])
    }

    /// The date or timestamp at which its year, quarter, month, week, day, hour, minute or second starts.
    ///
    /// Examples:
    ///     >>> from datetime import date
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"day": [date(2024, 5, 31)]}))
    ///     ...     return rows.select("day", made=ps.col("day").truncate("month")).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [datetime.date(2024, 5, 1)]
    fn truncate(&self, part: &str) -> PyResult<Self> {
        self.call(Function::Truncate, part_named(part, &UNITS)?, &[])
    }

    /// The timestamp that is an interval later; a day that its month does not have becomes the month's last.
    ///
    /// Examples:
    ///     >>> from datetime import date
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"day": [date(2024, 5, 31)]}))
    ///     ...     return rows.select("day", made=ps.col("day").add_interval(months=1)).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [datetime.datetime(2024, 6, 30, 0, 0)]
    #[pyo3(signature = (*, months=0, days=0, microseconds=0))]
    fn add_interval(&self, months: i32, days: i32, microseconds: i64) -> PyResult<Self> {
        let argument = format!("{months},{days},{microseconds}");
        self.call(Function::AddInterval, &argument, &[])
    }

    /// The number without its sign.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": [-1, 2]}))
    ///     ...     return rows.select("n", made=ps.col("n").abs()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [1, 2]
    fn abs(&self) -> PyResult<Self> {
        self.call(Function::Abs, "", &[])
    }

    /// The greatest integer that is not greater than the number, in a type with room for the number's own values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": [-1.5, 2.0]}))
    ///     ...     return rows.select("n", made=ps.col("n").floor()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [-2.0, 2.0]
    fn floor(&self) -> PyResult<Self> {
        self.call(Function::Floor, "", &[])
    }

    /// The least integer that is not less than the number; as `floor`.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": [-1.5, 2.0]}))
    ///     ...     return rows.select("n", made=ps.col("n").ceil()).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [-1.0, 2.0]
    fn ceil(&self) -> PyResult<Self> {
        self.call(Function::Ceil, "", &[])
    }

    /// The number with so many digits behind the point; ties are rounded away from 0.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": [1.25, 2.0]}))
    ///     ...     return rows.select("n", made=ps.col("n").round(1)).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [1.3, 2.0]
    #[pyo3(signature = (digits=0))]
    fn round(&self, digits: u8) -> PyResult<Self> {
        self.call(Function::Round, &digits.to_string(), &[])
    }

    /// The value in another type, such as ``pa.date32()`` or ``"int64"``; a row without a value in that type ends the computation with a `ValueError`.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": ["1", "20"]}))
    ///     ...     return rows.select("n", made=ps.col("n").cast(pa.int64())).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [1, 20]
    fn cast(&self, data_type: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::Cast, &type_name(data_type)?, &[])
    }

    /// The value in another type; null where it has none in that type.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> def build(scope):
    ///     ...     rows = scope.column_collection(pa.table({"n": ["1", "x"]}))
    ///     ...     return rows.select("n", made=ps.col("n").try_cast(pa.int64())).capture()
    ///     >>> [(time, batch)] = ps.example(build).extract()
    ///     >>> batch["made"].to_pylist()
    ///     [1, None]
    fn try_cast(&self, data_type: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.call(Function::TryCast, &type_name(data_type)?, &[])
    }

    /// The name of the column that the expression is; `None` where it is computed.
    #[getter(_column)]
    fn column(&self) -> Option<&str> {
        match &self.expr {
            Expr::Column(name) => Some(name),
            _ => None,
        }
    }

    /// Adds up the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").sum())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 10}])]
    fn sum(this: Py<Self>) -> Aggregate {
        aggregate("sum", this, None)
    }

    /// The mean of the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").mean())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.3333333333333335}])]
    fn mean(this: Py<Self>) -> Aggregate {
        aggregate("mean", this, None)
    }

    /// The least value.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").min())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn min(this: Py<Self>) -> Aggregate {
        aggregate("min", this, None)
    }

    /// The greatest value.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").max())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 4}])]
    fn max(this: Py<Self>) -> Aggregate {
        aggregate("max", this, None)
    }

    /// Counts the values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").count())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn count(this: Py<Self>) -> Aggregate {
        aggregate("count", this, None)
    }

    /// The first value to come.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").first())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn first(this: Py<Self>) -> Aggregate {
        aggregate("first", this, None)
    }

    /// The last value to come.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").last())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3}])]
    fn last(this: Py<Self>) -> Aggregate {
        aggregate("last", this, None)
    }

    /// All values as a list, nulls among them.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").collect())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': [3, 4, 3]}])]
    fn collect(this: Py<Self>) -> Aggregate {
        aggregate("collect", this, None)
    }

    /// Counts the distinct values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").distinct_count())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 2}])]
    fn distinct_count(this: Py<Self>) -> Aggregate {
        aggregate("distinct_count", this, None)
    }

    /// The median.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").median())
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.0}])]
    fn median(this: Py<Self>) -> Aggregate {
        aggregate("median", this, None)
    }

    /// The quantile of a share from 0 to 1, between two values as far along as the share says.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").quantile(0.9))
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': 3.8}])]
    fn quantile(this: Py<Self>, share: Py<PyAny>) -> Aggregate {
        aggregate("quantile", this, Some(share))
    }

    /// The `n` greatest values as a list, the greatest first.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 4, 3]})
    ///     >>> def build(scope):
    ///     ...     columns = scope.to_stream(rain).aggregate("city", mm=ps.col("mm").top_k(2))
    ///     ...     return columns.to_records().capture()
    ///     >>> ps.example(build).extract()
    ///     [(0, [{'city': 'Ulm', 'mm': [4, 3]}])]
    fn top_k(this: Py<Self>, n: Py<PyAny>) -> Aggregate {
        aggregate("top_k", this, Some(n))
    }

    /// The variance of the values, as a double. Collections of columns have it.
    ///
    /// Args:
    ///     ddof: 1 for the variance of a sample, which is null of one value; 0 for that of all values.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 5]})
    ///     >>> def build(scope):
    ///     ...     days = scope.column_collection(rain)
    ///     ...     return days.aggregate("city", mm=ps.col("mm").var()).capture()
    ///     >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
    ///     [[{'city': 'Ulm', 'mm': 2.0, 'diff': 1}]]
    #[pyo3(signature = (ddof=1))]
    fn var(this: Py<Self>, py: Python<'_>, ddof: u8) -> PyResult<Aggregate> {
        let ddof = degrees("var", ddof)?.into_pyobject(py)?.into_any();
        Ok(aggregate("var", this, Some(ddof.unbind())))
    }

    /// The standard deviation of the values, as a double. Collections of columns have it.
    ///
    /// Args:
    ///     ddof: As in `var`.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm"], "mm": [3, 5]})
    ///     >>> def build(scope):
    ///     ...     days = scope.column_collection(rain)
    ///     ...     return days.aggregate("city", mm=ps.col("mm").std(ddof=0)).capture()
    ///     >>> [changes.to_pylist() for _, changes in ps.example(build).extract()]
    ///     [[{'city': 'Ulm', 'mm': 1.0, 'diff': 1}]]
    #[pyo3(signature = (ddof=1))]
    fn std(this: Py<Self>, py: Python<'_>, ddof: u8) -> PyResult<Aggregate> {
        let ddof = degrees("std", ddof)?.into_pyobject(py)?.into_any();
        Ok(aggregate("std", this, Some(ddof.unbind())))
    }

    /// The value of the row that is `n` places before, in `ColumnCollection.over`.
    ///
    /// Args:
    ///     n: The number of places, 0 or more.
    ///     default: The value where there is no such row: an expression of this row, or a constant.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm"], "day": [1, 2], "mm": [3, 5]})
    ///     >>> def build(scope):
    ///     ...     days = scope.column_collection(rain)
    ///     ...     return days.over("city", "day", before=ps.col("mm").lag()).capture()
    ///     >>> [changes["before"].to_pylist() for _, changes in ps.example(build).extract()]
    ///     [[None, 3]]
    #[pyo3(signature = (n=1, *, default=None))]
    fn lag(
        this: Py<Self>,
        py: Python<'_>,
        n: u32,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Aggregate> {
        beside("lag", this, py, n, default)
    }

    /// The value of the row that is `n` places after, in `ColumnCollection.over`.
    ///
    /// Args:
    ///     n: The number of places, 0 or more.
    ///     default: As in `lag`.
    ///
    /// Examples:
    ///     >>> import pyarrow as pa
    ///     >>> import pointstamp as ps
    ///     >>> rain = pa.table({"city": ["Ulm", "Ulm"], "day": [1, 2], "mm": [3, 5]})
    ///     >>> def build(scope):
    ///     ...     days = scope.column_collection(rain)
    ///     ...     return days.over("city", "day", after=ps.col("mm").lead(default=0)).capture()
    ///     >>> [changes["after"].to_pylist() for _, changes in ps.example(build).extract()]
    ///     [[5, 0]]
    #[pyo3(signature = (n=1, *, default=None))]
    fn lead(
        this: Py<Self>,
        py: Python<'_>,
        n: u32,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Aggregate> {
        beside("lead", this, py, n, default)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Self> {
        let relation = match op {
            CompareOp::Eq => Relation::Eq,
            CompareOp::Ne => Relation::Ne,
            CompareOp::Lt => Relation::Lt,
            CompareOp::Le => Relation::Le,
            CompareOp::Gt => Relation::Gt,
            CompareOp::Ge => Relation::Ge,
        };
        self.with(Op::Compare(relation), other)
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err(format!(
            "{} is an expression, which is true or false of a record and not by itself: combine conditions with & | ~, \
             in parentheses",
            self.expr
        )))
    }

    fn __repr__(&self) -> String {
        self.expr.to_string()
    }

    /// A function and its arguments that make the same expression elsewhere: programs refer to it, and are sent to
    /// other processes.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let of = |module: &str, name: &str| py.import(module)?.getattr(name);
        let object = |expr: &Expr| object_of(py, expr);
        Ok(match &self.expr {
            Expr::Source(source) => (
                of("pointstamp._core", "source_expr")?,
                (source.name(),).into_pyobject(py)?,
            ),
            Expr::Column(name) => (
                of("pointstamp._core", "column_expr")?,
                (&**name,).into_pyobject(py)?,
            ),
            Expr::Item(expr, index) => (
                of("operator", "getitem")?,
                (object(expr)?, *index).into_pyobject(py)?,
            ),
            Expr::Binary(op, a, b) => (
                of("operator", op.function())?,
                (object(a)?, object(b)?).into_pyobject(py)?,
            ),
            Expr::Not(expr) => (
                of("operator", "invert")?,
                (object(expr)?,).into_pyobject(py)?,
            ),
            Expr::IsNull(expr) => (
                of("operator", "methodcaller")?.call1(("is_null",))?,
                (object(expr)?,).into_pyobject(py)?,
            ),
            Expr::Constant(row) => (
                of("pointstamp._core", "literal_expr")?,
                (row.get().decode(py)?,).into_pyobject(py)?,
            ),
            Expr::Call(function, argument, parts) => {
                let parts = parts.iter().map(object);
                let parts = PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)?;
                (
                    of("pointstamp._core", "call_expr")?,
                    (function.name(), &**argument, parts).into_pyobject(py)?,
                )
            }
            // No expression of a program's is one of these by itself.
            Expr::Tuple(_) | Expr::Floats(..) => {
                return Err(PyTypeError::new_err("a value is no expression"));
            }
        })
    }
}

/// The parts of dates and timestamps.
const PARTS: [&str; 11] = [
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofweek",
    "isodow",
    "dayofyear",
    "hour",
    "minute",
    "second",
];

/// The units that dates and timestamps are truncated to.
const UNITS: [&str; 8] = [
    "year", "quarter", "month", "week", "day", "hour", "minute", "second",
];

fn part_named<'a>(part: &'a str, parts: &[&str]) -> PyResult<&'a str> {
    if parts.contains(&part) {
        return Ok(part);
    }
    Err(PyValueError::new_err(format!(
        "{part:?} is no part of a date or timestamp: the parts are {}",
        parts.join(", ")
    )))
}

/// The name of a type of pyarrow, or of the type that pyarrow calls by a text.
fn type_name(data_type: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = data_type.py();
    let arrow = py.import("pyarrow")?;
    let data_type = if data_type.is_instance_of::<PyString>() {
        arrow.call_method1("type_for_alias", (data_type,))?
    } else {
        data_type.clone()
    };
    if !data_type.is_instance(&arrow.getattr("DataType")?)? {
        return Err(PyTypeError::new_err(format!(
            "a type is one of pyarrow's, such as pa.int64(), or its name, not {}",
            data_type.repr()?
        )));
    }
    let fields = PyList::new(py, [("", data_type)])?;
    let schema = arrow.call_method1("schema", (fields,))?;
    let schema = Schema::py_new(&schema)?;
    Ok(schema.schema.field(0).data_type().to_string())
}

/// The constant of a type that columns have and records do not; nothing for other values.
fn typed_constant<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Expression>>> {
    let plain = value.is_none()
        || value.is_instance_of::<Expression>()
        || value.is_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyBool>();
    if plain {
        return Ok(None);
    }
    let constants = value.py().import("pointstamp.expr.constants")?;
    let typed = constants.call_method1("typed_constant", (value,))?;
    typed
        .extract::<Option<Bound<'py, Expression>>>()
        .map_err(Into::into)
}

/// The number that a divisor of squares is less than the number of values.
fn degrees(function: &str, ddof: u8) -> PyResult<u8> {
    if ddof > 1 {
        return Err(PyValueError::new_err(format!(
            "{function} takes ddof=1, for a sample, or ddof=0, for all values, not {ddof}"
        )));
    }
    Ok(ddof)
}

/// The aggregate of a name of an expression's values.
fn aggregate(function: &str, of: Py<Expression>, argument: Option<Py<PyAny>>) -> Aggregate {
    aggregate_expr(function.to_owned(), Some(of.into_any()), argument)
}

/// The aggregate that is the value of a row some places away, or a default.
fn beside(
    function: &str,
    of: Py<Expression>,
    py: Python<'_>,
    n: u32,
    default: Option<Py<PyAny>>,
) -> PyResult<Aggregate> {
    let argument = (n, default).into_pyobject(py)?.into_any();
    Ok(aggregate(function, of, Some(argument.unbind())))
}

/// Converts an expression to Python: the inverse of `expr_of`.
fn object_of<'py>(py: Python<'py>, expr: &Expr) -> PyResult<Bound<'py, PyAny>> {
    match expr {
        Expr::Constant(row) => row.get().decode(py),
        Expr::Tuple(parts) => {
            let parts = parts.iter().map(|part| object_of(py, part));
            Ok(PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        _ => {
            let (expr, depth) = (expr.clone(), expr.depth());
            Ok(Bound::new(py, Expression { expr, depth })?.into_any())
        }
    }
}

/// Converts a Python object to an expression: a field, a tuple with one in it, or a constant.
pub(crate) fn expr_of(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    measured(value, 0).map(|(expr, _)| expr)
}

/// The expression of an object that is in so many tuples.
fn measured(value: &Bound<'_, PyAny>, inside: u32) -> PyResult<Measured> {
    if let Ok(field) = value.cast::<Expression>() {
        return Ok(field.get().measured());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        let within = deeper(inside)?;
        let mut parts = Vec::with_capacity(tuple.len());
        let mut depth = 0;
        for part in tuple.iter_borrowed() {
            let (part, of_part) = measured(&part, within)?;
            parts.push(part);
            depth = depth.max(of_part);
        }
        return Ok((Expr::Tuple(parts.into()), deeper(depth)?));
    }
    Ok((constant(value)?, 0))
}

/// The expression that is one value.
fn constant(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let mut row = RowBuf::default();
    row.encode(value)?;
    Ok(Expr::Constant(Arc::new(row)))
}

/// Returns the depth of an expression around one of this depth.
fn deeper(depth: u32) -> PyResult<u32> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    Err(GraphError::new_err(format!(
        "this expression nests more than {MAX_DEPTH} operations or tuples: write it as several, as in (a + b) + (c + d) in \
         place of ((a + b) + c) + d, or as a function of the record"
    )))
}

/// The field that is a whole row: `record`, `key`, `left` or `right`.
#[pyfunction]
pub(crate) fn source_expr(name: &str) -> PyResult<Expression> {
    let source = Source::ALL.into_iter().find(|source| source.name() == name);
    source
        .map(|source| Expression {
            expr: Expr::Source(source),
            depth: 0,
        })
        .ok_or_else(|| PyTypeError::new_err(format!("there is no part '{name}'")))
}

/// The field that is the column of a name.
#[pyfunction]
pub(crate) fn column_expr(name: String) -> Expression {
    Expression {
        expr: Expr::Column(name.into()),
        depth: 0,
    }
}

/// The function of a name, with its constant argument, of values.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn call_expr(
    function: &str,
    argument: &str,
    of: Vec<Bound<'_, PyAny>>,
) -> PyResult<Expression> {
    let Some(function) = Function::named(function) else {
        return Err(PyTypeError::new_err(format!(
            "there is no function {function:?}"
        )));
    };
    let parts = of.iter().map(|part| match typed_constant(part)? {
        Some(typed) => Ok(typed.get().measured()),
        None => measured(part, 0),
    });
    called(function, argument, parts)
}

/// A call of a function with some parts.
fn called(
    function: Function,
    argument: &str,
    parts: impl Iterator<Item = PyResult<Measured>>,
) -> PyResult<Expression> {
    let (parts, depths): (Vec<_>, Vec<_>) =
        parts.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
    let deepest = depths.into_iter().max().unwrap_or_default();
    Expression::around(deepest, || {
        Expr::Call(function, argument.into(), parts.into())
    })
}

/// Returns the name of a type of pyarrow in the arguments of expressions.
#[pyfunction]
pub(crate) fn expr_type(data_type: &Bound<'_, PyAny>) -> PyResult<String> {
    type_name(data_type)
}

/// The expression that is one value for every record.
#[pyfunction]
pub(crate) fn literal_expr(value: &Bound<'_, PyAny>) -> PyResult<Expression> {
    if let Some(typed) = typed_constant(value)? {
        let (expr, depth) = typed.get().measured();
        return Ok(Expression { expr, depth });
    }
    Ok(Expression {
        expr: constant(value)?,
        depth: 0,
    })
}

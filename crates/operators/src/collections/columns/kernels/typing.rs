//! The nodes of an expression: the type of each, and the casts between them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use pointstamp_columnar::physical::{from_physical, physical};
use pointstamp_rows::expressions::{Expr, Function, Op, Unresolved};

use super::node::{Arithmetic, Kind, Node};
use super::values::casted;
use crate::collections::columns::constants::constant;
use crate::collections::columns::error::ColumnsError;
use crate::collections::columns::types;

type Typing<T> = Result<T, ColumnsError>;

/// The greatest number of digits of a decimal.
const DIGITS: u8 = 38;

fn of(data_type: DataType, kind: Kind) -> Node {
    Node { data_type, kind }
}

/// Returns the node of an expression over columns by name.
pub(super) fn node(expr: &Expr, schema: &SchemaRef) -> Typing<Node> {
    Ok(match expr {
        Expr::Column(name) => {
            let Ok(index) = schema.index_of(name) else {
                let names = schema.fields().iter().map(|field| field.name().clone());
                return Err(Unresolved::Column(name.clone(), names.collect()).into());
            };
            let data_type = schema.field(index).data_type().clone();
            of(data_type, Kind::Column(index))
        }
        Expr::Constant(row) => {
            let data_type = types::constant(row)?;
            let plain = constant(row).ok_or(ColumnsError::NoConstant)?;
            constant_of(&plain, &data_type)?
        }
        Expr::Binary(Op::And, a, b) => {
            let both = Box::new([truth(a, schema)?, truth(b, schema)?]);
            of(DataType::Boolean, Kind::And(both))
        }
        Expr::Binary(Op::Or, a, b) => {
            let both = Box::new([truth(a, schema)?, truth(b, schema)?]);
            of(DataType::Boolean, Kind::Or(both))
        }
        Expr::Binary(Op::Compare(relation), a, b) => {
            let both = alike(expr, node(a, schema)?, node(b, schema)?)?;
            of(DataType::Boolean, Kind::Compare(*relation, Box::new(both)))
        }
        Expr::Binary(op, a, b) => {
            let op = match op {
                Op::Add => Arithmetic::Add,
                Op::Sub => Arithmetic::Sub,
                Op::Mul => Arithmetic::Mul,
                _ => Arithmetic::Div,
            };
            arithmetic(expr, op, node(a, schema)?, node(b, schema)?)?
        }
        Expr::Not(inner) => of(
            DataType::Boolean,
            Kind::Not(Box::new(truth(inner, schema)?)),
        ),
        Expr::IsNull(inner) => of(
            DataType::Boolean,
            Kind::IsNull(Box::new(node(inner, schema)?)),
        ),
        Expr::Call(function, argument, parts) => call(expr, *function, argument, parts, schema)?,
        Expr::Floats(..) | Expr::Item(..) | Expr::Tuple(_) | Expr::Source(_) => {
            return Err(ColumnsError::NoColumn(expr.clone()));
        }
    })
}

fn constant_of(plain: &ArrayRef, data_type: &DataType) -> Typing<Node> {
    let array = match data_type {
        DataType::Boolean => {
            let truth = arrow_cast::cast(plain, &DataType::Boolean);
            truth.map_err(|_| ColumnsError::NoConstant)?
        }
        DataType::Decimal128(..) if *plain.data_type() == DataType::Int64 => {
            let digits = arrow_cast::cast(plain, &DataType::Decimal128(DIGITS, 0));
            let digits = digits.map_err(|_| ColumnsError::NoConstant)?;
            from_physical(&digits, data_type).map_err(|_| ColumnsError::NoConstant)?
        }
        _ => from_physical(plain, data_type).map_err(|_| ColumnsError::NoConstant)?,
    };
    Ok(of(array.data_type().clone(), Kind::Constant(array)))
}

/// The node of a condition.
pub(super) fn truth(expr: &Expr, schema: &SchemaRef) -> Typing<Node> {
    let found = node(expr, schema)?;
    match found.data_type {
        DataType::Boolean => Ok(found),
        DataType::Null => Ok(to(found, &DataType::Boolean)),
        data_type => Err(ColumnsError::NoCondition {
            expr: expr.clone(),
            data_type,
        }),
    }
}

/// The node, cast to a type.
fn to(node: Node, data_type: &DataType) -> Node {
    if node.data_type == *data_type {
        return node;
    }
    if let Kind::Constant(array) = &node.kind
        && let Ok(made) = casted(array, data_type, false)
    {
        return of(data_type.clone(), Kind::Constant(made));
    }
    let cast = Kind::Cast {
        of: Box::new(node),
        safe: false,
    };
    of(data_type.clone(), cast)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || is_decimal(data_type)
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..))
}

/// The type of the instants of dates and timestamps together: of the finer unit, and in the zone of one that has one.
fn instants(of: &[&DataType]) -> DataType {
    let (mut finest, mut place) = (TimeUnit::Microsecond, None);
    for data_type in of {
        if let DataType::Timestamp(unit, zone) = data_type {
            if *unit == TimeUnit::Nanosecond {
                finest = TimeUnit::Nanosecond;
            }
            place = place.or_else(|| zone.clone());
        }
    }
    DataType::Timestamp(finest, place)
}

fn is_temporal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..)
    )
}

/// The number of digits before and behind the point of a node's decimals; nothing for other types.
fn digits(node: &Node) -> Option<(u8, i8)> {
    Some(match &node.data_type {
        DataType::Decimal128(precision, scale) => (*precision, *scale),
        DataType::Int8 | DataType::UInt8 => (3, 0),
        DataType::Int16 | DataType::UInt16 => (5, 0),
        DataType::Int32 | DataType::UInt32 => (10, 0),
        DataType::UInt64 => (20, 0),
        DataType::Int64 => match &node.kind {
            Kind::Constant(array) if array.is_valid(0) => {
                use arrow_array::cast::AsArray;
                let value = array
                    .as_primitive::<arrow_array::types::Int64Type>()
                    .value(0);
                let len = value.unsigned_abs().to_string().len();
                (u8::try_from(len).unwrap_or(19), 0)
            }
            _ => (19, 0),
        },
        _ => return None,
    })
}

/// The type that values of two types have in common.
fn common(a: &Node, b: &Node) -> Option<DataType> {
    use DataType as D;
    let (left, right) = (&a.data_type, &b.data_type);
    Some(match (left, right) {
        _ if left == right => left.clone(),
        (D::Null, other) | (other, D::Null) => other.clone(),
        _ if is_text(left) && is_text(right) => D::LargeUtf8,
        _ if is_bytes(left) && is_bytes(right) => D::LargeBinary,
        _ if is_temporal(left) && is_temporal(right) => instants(&[left, right]),
        (D::Duration(_), D::Duration(_)) => D::Duration(TimeUnit::Microsecond),
        (D::Boolean, number) | (number, D::Boolean) if number.is_integer() => D::Int64,
        (D::Boolean, number) | (number, D::Boolean) if number.is_floating() => D::Float64,
        _ if !is_number(left) || !is_number(right) => return None,
        // A float of 32 bits beside an integer or a decimal keeps its own precision.
        (D::Float32, other) | (other, D::Float32) if !other.is_floating() => D::Float32,
        _ if left.is_floating() || right.is_floating() => D::Float64,
        _ if is_decimal(left) || is_decimal(right) => {
            let (here, there) = (digits(a)?, digits(b)?);
            let scale = here.1.max(there.1);
            let whole = |(precision, scale): (u8, i8)| i16::from(precision) - i16::from(scale);
            let precision = whole(here).max(whole(there)) + i16::from(scale);
            let precision = precision.clamp(1, DIGITS.into());
            D::Decimal128(u8::try_from(precision).unwrap_or(DIGITS), scale)
        }
        (D::UInt64, other) | (other, D::UInt64) if !other.is_unsigned_integer() => {
            D::Decimal128(20, 0)
        }
        (D::UInt64, _) | (_, D::UInt64) => D::UInt64,
        _ => D::Int64,
    })
}

/// Two nodes in the type that they have in common. A constant text beside a date is read as a date.
fn alike(expr: &Expr, a: Node, b: Node) -> Typing<[Node; 2]> {
    let (a, b) = (read_as(a, &b.data_type), b);
    let b = read_as(b, &a.data_type);
    match common(&a, &b) {
        Some(data_type) => Ok([to(a, &data_type), to(b, &data_type)]),
        None => Err(ColumnsError::NoMeaning {
            expr: expr.clone(),
            left: a.data_type,
            right: b.data_type,
        }),
    }
}

/// A constant text, read as a date or timestamp where it is one.
fn read_as(node: Node, data_type: &DataType) -> Node {
    if let Kind::Constant(array) = &node.kind
        && is_text(&node.data_type)
        && is_temporal(data_type)
        && let Ok(made) = casted(array, data_type, false)
    {
        return of(data_type.clone(), Kind::Constant(made));
    }
    node
}

fn calculated(op: Arithmetic, a: Node, b: Node, data_type: DataType) -> Node {
    of(data_type, Kind::Arithmetic(op, Box::new([a, b])))
}

fn arithmetic(expr: &Expr, op: Arithmetic, a: Node, b: Node) -> Typing<Node> {
    use Arithmetic as A;
    use DataType as D;
    let refused = |a: &Node, b: &Node| ColumnsError::NoMeaning {
        expr: expr.clone(),
        left: a.data_type.clone(),
        right: b.data_type.clone(),
    };
    let (left, right) = (a.data_type.clone(), b.data_type.clone());
    Ok(match (&left, &right) {
        (D::Null, D::Null) => to(a, &D::Int64),
        (D::Null, _) => arithmetic(expr, op, to(a, &right), b)?,
        (_, D::Null) => {
            let b = if is_temporal(&left) {
                to(b, &D::Int64)
            } else {
                to(b, &left)
            };
            arithmetic(expr, op, a, b)?
        }
        (D::Date32, D::Date32) if op == A::Sub => calculated(op, days(a), days(b), D::Int64),
        (D::Date32, number) if number.is_integer() && matches!(op, A::Add | A::Sub) => {
            let made = calculated(op, days(a), to(b, &D::Int64), D::Int64);
            to(to(made, &D::Int32), &D::Date32)
        }
        (number, D::Date32) if number.is_integer() && op == A::Add => {
            let made = calculated(op, to(a, &D::Int64), days(b), D::Int64);
            to(to(made, &D::Int32), &D::Date32)
        }
        _ if is_temporal(&left) && is_temporal(&right) && op == A::Sub => {
            let result = D::Duration(TimeUnit::Microsecond);
            let instants = instants(&[&left, &right]);
            calculated(op, to(a, &instants), to(b, &instants), result)
        }
        (_, D::Duration(_)) if is_temporal(&left) && matches!(op, A::Add | A::Sub) => {
            let length = to(b, &D::Duration(TimeUnit::Microsecond));
            let instants = instants(&[&left]);
            calculated(op, to(a, &instants), length, instants)
        }
        (D::Duration(_), _) if is_temporal(&right) && op == A::Add => {
            let length = to(a, &D::Duration(TimeUnit::Microsecond));
            let instants = instants(&[&right]);
            calculated(op, to(b, &instants), length, instants)
        }
        (D::Duration(_), D::Duration(_)) if matches!(op, A::Add | A::Sub) => {
            let result = D::Duration(TimeUnit::Microsecond);
            calculated(op, to(a, &result), to(b, &result), result)
        }
        (D::Boolean, D::Boolean) => arithmetic(expr, op, to(a, &D::Int64), to(b, &D::Int64))?,
        (D::Boolean, number) if is_number(number) => arithmetic(expr, op, to(a, &D::Int64), b)?,
        (number, D::Boolean) if is_number(number) => arithmetic(expr, op, a, to(b, &D::Int64))?,
        _ if !is_number(&left) || !is_number(&right) => return Err(refused(&a, &b)),
        _ if op == A::Div || left.is_floating() || right.is_floating() => {
            calculated(op, to(a, &D::Float64), to(b, &D::Float64), D::Float64)
        }
        _ if is_decimal(&left) || is_decimal(&right) => {
            let (Some(here), Some(there)) = (digits(&a), digits(&b)) else {
                return Err(refused(&a, &b));
            };
            let result = decimal(op, here, there).ok_or_else(|| refused(&a, &b))?;
            let a = to(a, &D::Decimal128(here.0, here.1));
            let b = to(b, &D::Decimal128(there.0, there.1));
            calculated(op, a, b, result)
        }
        _ => calculated(op, to(a, &D::Int64), to(b, &D::Int64), D::Int64),
    })
}

/// The days of a date, as integers.
fn days(node: Node) -> Node {
    to(to(node, &DataType::Int32), &DataType::Int64)
}

/// The type of a calculation on two decimals.
fn decimal(op: Arithmetic, (p, s): (u8, i8), (q, t): (u8, i8)) -> Option<DataType> {
    let (p, s, q, t) = (i16::from(p), i16::from(s), i16::from(q), i16::from(t));
    let (precision, scale) = match op {
        Arithmetic::Mul => (p + q, s + t),
        Arithmetic::Rem => ((p - s).min(q - t) + s.max(t), s.max(t)),
        _ => ((p - s).max(q - t) + s.max(t) + 1, s.max(t)),
    };
    let most = i16::from(DIGITS);
    (scale <= most).then(|| {
        let precision = u8::try_from(precision.clamp(scale.max(1), most)).unwrap_or(DIGITS);
        DataType::Decimal128(precision, i8::try_from(scale).unwrap_or(0))
    })
}

/// The type of a name, as Arrow writes it.
fn type_named(name: &str, expr: &Expr) -> Typing<DataType> {
    let found = name.parse::<DataType>().ok();
    found
        .filter(|data_type| physical(data_type).is_some())
        .ok_or_else(|| ColumnsError::NoColumn(expr.clone()))
}

fn call(
    expr: &Expr,
    function: Function,
    argument: &Arc<str>,
    parts: &[Expr],
    schema: &SchemaRef,
) -> Typing<Node> {
    if function == Function::Typed {
        let [Expr::Constant(row)] = parts else {
            return Err(ColumnsError::NoColumn(expr.clone()));
        };
        let plain = constant(row).ok_or(ColumnsError::NoConstant)?;
        return constant_of(&plain, &type_named(argument, expr)?);
    }
    let nodes = parts.iter().map(|part| node(part, schema));
    let nodes = nodes.collect::<Typing<Vec<_>>>()?;
    let call = Call {
        expr,
        function,
        argument,
    };
    match function {
        Function::Cast | Function::TryCast => call.cast(nodes),
        Function::Case => call.case(nodes),
        Function::Coalesce => {
            let values = all_alike(expr, nodes)?;
            let data_type = call.first(&values)?.data_type.clone();
            Ok(of(data_type, Kind::Coalesce(values)))
        }
        Function::IsIn => Ok(of(DataType::Boolean, Kind::IsIn(all_alike(expr, nodes)?))),
        Function::Like
        | Function::ILike
        | Function::Matches
        | Function::StartsWith
        | Function::EndsWith
        | Function::Contains
        | Function::Substr
        | Function::Lower
        | Function::Upper
        | Function::Trim
        | Function::Length
        | Function::Concat => call.of_text(nodes),
        _ => call.of_numbers_and_dates(nodes),
    }
}

/// The call of a function.
struct Call<'a> {
    expr: &'a Expr,
    function: Function,
    argument: &'a Arc<str>,
}

impl Call<'_> {
    /// The error of a value of a type that the function does not take.
    fn wrong(&self, data_type: &DataType) -> ColumnsError {
        ColumnsError::NoFunction {
            expr: self.expr.clone(),
            data_type: data_type.clone(),
        }
    }

    fn first<'n>(&self, nodes: &'n [Node]) -> Typing<&'n Node> {
        nodes
            .first()
            .ok_or_else(|| ColumnsError::NoColumn(self.expr.clone()))
    }

    fn made(&self, nodes: Vec<Node>, data_type: DataType) -> Node {
        let call = Kind::Call(self.function, Arc::clone(self.argument), nodes);
        of(data_type, call)
    }

    fn cast(&self, mut nodes: Vec<Node>) -> Typing<Node> {
        let wanted = type_named(self.argument, self.expr)?;
        let found = &self.first(&nodes)?.data_type;
        if *found != wanted && !arrow_cast::can_cast_types(found, &wanted) {
            return Err(self.wrong(found));
        }
        let value = nodes.remove(0);
        if self.function == Function::Cast {
            return Ok(to(value, &wanted));
        }
        let cast = Kind::Cast {
            of: Box::new(value),
            safe: true,
        };
        Ok(of(wanted, cast))
    }

    fn case(&self, mut nodes: Vec<Node>) -> Typing<Node> {
        let default = if nodes.len() % 2 == 1 {
            nodes.pop()
        } else {
            None
        };
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        for (index, node) in nodes.into_iter().enumerate() {
            if index % 2 == 1 {
                values.push(node);
            } else if matches!(node.data_type, DataType::Boolean | DataType::Null) {
                conditions.push(to(node, &DataType::Boolean));
            } else {
                return Err(self.wrong(&node.data_type));
            }
        }
        values.push(match default {
            Some(default) => default,
            None => constant_of(&new_null_array(&DataType::Null, 1), &DataType::Null)?,
        });
        let mut values = all_alike(self.expr, values)?;
        let data_type = self.first(&values)?.data_type.clone();
        let default = values.split_off(conditions.len()).remove(0);
        let branches = conditions.into_iter().zip(values).collect();
        Ok(of(data_type, Kind::Case(branches, Box::new(default))))
    }

    fn of_text(&self, nodes: Vec<Node>) -> Typing<Node> {
        let text = |node: Node| match &node.data_type {
            _ if self.function == Function::Concat => Ok(to(node, &DataType::LargeUtf8)),
            DataType::Null => Ok(to(node, &DataType::LargeUtf8)),
            data_type if is_text(data_type) => Ok(to(node, &DataType::LargeUtf8)),
            data_type => Err(self.wrong(data_type)),
        };
        let texts = nodes.into_iter().map(text).collect::<Typing<Vec<_>>>()?;
        self.first(&texts)?;
        let data_type = match self.function {
            Function::Length => DataType::Int64,
            Function::Substr
            | Function::Lower
            | Function::Upper
            | Function::Trim
            | Function::Concat => DataType::LargeUtf8,
            _ => DataType::Boolean,
        };
        Ok(self.made(texts, data_type))
    }

    fn of_numbers_and_dates(&self, mut nodes: Vec<Node>) -> Typing<Node> {
        use DataType as D;
        let first = self.first(&nodes)?.data_type.clone();
        Ok(match self.function {
            Function::Rem if nodes.len() == 2 => {
                let (divisor, value) = (nodes.remove(1), nodes.remove(0));
                arithmetic(self.expr, Arithmetic::Rem, value, divisor)?
            }
            Function::Extract if is_temporal(&first) => self.made(nodes, D::Int64),
            Function::Truncate if is_temporal(&first) => {
                let small = matches!(&**self.argument, "hour" | "minute" | "second");
                let whole = first == D::Date32 && !small;
                let data_type = if whole {
                    D::Date32
                } else {
                    instants(&[&first])
                };
                self.made(vec![to(nodes.remove(0), &data_type)], data_type)
            }
            Function::AddInterval if is_temporal(&first) => {
                let instants = instants(&[&first]);
                self.made(vec![to(nodes.remove(0), &instants)], instants)
            }
            Function::Round if is_decimal(&first) => {
                rounded(nodes.remove(0), self.argument.parse().unwrap_or(0))
            }
            Function::Abs | Function::Floor | Function::Ceil | Function::Round
                if is_number(&first) =>
            {
                let (read, made) = match first {
                    D::Decimal128(precision, _) if self.function != Function::Abs => {
                        (first, D::Decimal128(precision, 0))
                    }
                    D::Decimal128(..) => (first.clone(), first),
                    _ if first.is_floating() => (D::Float64, D::Float64),
                    _ => (D::Int64, D::Int64),
                };
                self.made(vec![to(nodes.remove(0), &read)], made)
            }
            Function::Single if nodes.len() == 2 => {
                let count = to(nodes.remove(1), &D::Int64);
                self.made(vec![nodes.remove(0), count], first)
            }
            _ => return Err(self.wrong(&first)),
        })
    }
}

/// A decimal with so many digits behind the point, rounded.
fn rounded(node: Node, scale: i8) -> Node {
    let DataType::Decimal128(precision, own) = node.data_type else {
        return node;
    };
    if scale >= own {
        return node;
    }
    let whole = i16::from(precision) - i16::from(own) + i16::from(scale.max(0)) + 1;
    let precision = u8::try_from(whole.clamp(1, i16::from(DIGITS))).unwrap_or(DIGITS);
    to(node, &DataType::Decimal128(precision, scale.max(0)))
}

/// Nodes in the type that all have in common.
fn all_alike(expr: &Expr, nodes: Vec<Node>) -> Typing<Vec<Node>> {
    let mut wanted = of(
        DataType::Null,
        Kind::Constant(Arc::new(BooleanArray::new_null(1))),
    );
    let kinds: Vec<DataType> = nodes.iter().map(|node| node.data_type.clone()).collect();
    let typed = kinds
        .iter()
        .find(|kind| !is_text(kind) && **kind != DataType::Null);
    let nodes: Vec<Node> = match typed {
        Some(kind) => nodes.into_iter().map(|node| read_as(node, kind)).collect(),
        None => nodes,
    };
    for node in &nodes {
        let Some(data_type) = common(&wanted, node) else {
            return Err(ColumnsError::NoMeaning {
                expr: expr.clone(),
                left: wanted.data_type,
                right: node.data_type.clone(),
            });
        };
        // A constant keeps its few digits only beside its own type.
        let kind = if wanted.data_type == DataType::Null {
            node.kind.clone()
        } else {
            Kind::Column(0)
        };
        wanted = of(data_type, kind);
    }
    let data_type = wanted.data_type;
    Ok(nodes.into_iter().map(|node| to(node, &data_type)).collect())
}

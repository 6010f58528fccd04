//! Columns of plain values, as batches of updates carry them, and the rows that they are.
//!
//! Owns [`PlainColumns`]: Arrow arrays of the few types that `columnar::physical` makes of all others. Invariant: each array has
//! one of these types and as many values as there are rows, and of floats there is one zero and one NaN, as rows have them.
//! So kernels see six types, equal values have equal bits, and rows are made without an error.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use arrow_select::filter::filter;
use arrow_select::take::take;
use pointstamp_arrange::Rows;
use pointstamp_columnar::Error;
use pointstamp_columnar::physical::to_physical;
use pointstamp_rows::terms::Writer;
use pointstamp_rows::{Cells, Layout, RowBuf, Symbol};

/// Columns of plain values. Clones share the values.
#[derive(Clone, Debug)]
pub struct PlainColumns {
    arrays: Vec<ArrayRef>,
    len: usize,
    /// The rows, once something has read them.
    rows: OnceLock<Cells>,
}

impl PlainColumns {
    /// Returns the plain values of a batch whose columns have kinds that a collection supports.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`] for a column of another type.
    pub fn of(batch: &RecordBatch) -> Result<Self, Error> {
        let arrays = batch.columns().iter();
        let arrays = arrays.map(|column| to_physical(column).map(one_zero));
        Ok(PlainColumns::new(
            arrays.collect::<Result<_, _>>()?,
            batch.num_rows(),
        ))
    }

    /// Returns the same columns in memory of their own: frames and arrays of the host may share theirs with Arrow, and
    /// change.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`], for no batch that holds the invariant.
    pub fn owned(&self) -> Result<Self, Error> {
        // With a second array, although it is empty, values are copied.
        let copy = |array: &ArrayRef| concat(&[array, &array.slice(0, 0)]);
        let arrays = self.arrays.iter().map(copy);
        Ok(PlainColumns::new(
            arrays.collect::<Result<_, _>>()?,
            self.len,
        ))
    }

    /// Columns of plain values with so many rows.
    pub(super) fn new(arrays: Vec<ArrayRef>, len: usize) -> Self {
        PlainColumns {
            arrays,
            len,
            rows: OnceLock::new(),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the columns.
    pub fn arrays(&self) -> &[ArrayRef] {
        &self.arrays
    }

    /// Returns the rows, which are made once.
    pub fn rows(&self) -> &Cells {
        self.rows.get_or_init(|| {
            let columns: Vec<_> = self.arrays.iter().map(Shape::Column).collect();
            Shape::Tuple(columns).rows(self.len)
        })
    }

    /// Returns the rows.
    pub(crate) fn into_rows(mut self) -> Cells {
        self.rows();
        self.rows.take().unwrap_or_default()
    }

    /// Returns the columns' part from a row on.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let arrays = self.arrays.iter().map(|array| array.slice(start, len));
        PlainColumns::new(arrays.collect(), len)
    }

    /// Returns the rows of which a mask of the same length is true.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`] for a mask of another length.
    pub fn filtered(&self, mask: &BooleanArray) -> Result<Self, Error> {
        let arrays = self.arrays.iter().map(|array| filter(array, mask));
        Ok(PlainColumns::new(
            arrays.collect::<Result<_, _>>()?,
            mask.true_count(),
        ))
    }

    /// Returns the rows at some indices.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`] for an index that there is not.
    pub fn taken(&self, indices: &UInt32Array) -> Result<Self, Error> {
        let arrays = self.arrays.iter().map(|array| take(array, indices, None));
        Ok(PlainColumns::new(
            arrays.collect::<Result<_, _>>()?,
            indices.len(),
        ))
    }

    /// Returns about how many bytes the columns take, and their rows where they are made.
    pub fn bytes(&self) -> usize {
        let size = |array: &ArrayRef| {
            let size = array.to_data().get_slice_memory_size();
            size.unwrap_or_else(|_| array.get_array_memory_size())
        };
        let rows = self.rows.get().map_or(0, Rows::bytes);
        rows + self.arrays.iter().map(size).sum::<usize>()
    }

    /// Returns the columns as a batch, to be written.
    ///
    /// # Errors
    ///
    /// [`Error::Arrow`], for no batch that holds the invariant.
    pub(crate) fn to_batch(&self) -> Result<RecordBatch, Error> {
        let fields = self.arrays.iter();
        let fields: Vec<_> = fields
            .map(|array| Field::new("", array.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(
            schema,
            self.arrays.clone(),
            &options,
        )?)
    }

    /// Whether the columns can be written as columns: a reader takes few columns that have no bytes.
    pub(crate) fn can_be_written(&self) -> bool {
        let nulls = self.arrays.iter();
        nulls
            .filter(|array| *array.data_type() == DataType::Null)
            .count()
            <= MAX_NULLS
    }

    /// Returns the columns of a batch that another process has written; nothing where they are none of plain values.
    pub(crate) fn from_batch(batch: &RecordBatch) -> Option<Self> {
        let plain = |array: &ArrayRef| match array.data_type() {
            DataType::Decimal128(precision, scale) => (*precision, *scale) == (38, 0),
            data_type => matches!(
                data_type,
                DataType::Int64
                    | DataType::Float64
                    | DataType::LargeUtf8
                    | DataType::LargeBinary
                    | DataType::Null
            ),
        };
        let arrays = batch.columns().iter().cloned().map(one_zero);
        let read = PlainColumns::new(arrays.collect(), batch.num_rows());
        (read.arrays.iter().all(plain) && read.can_be_written()).then_some(read)
    }
}

/// The most columns of the type of nulls that a batch may have between processes: they take no bytes, and time and memory as
/// rows.
const MAX_NULLS: usize = 16;

/// The maximum number of rows of columns in one message.
const MOST: usize = 8192;

/// Returns a batch in pieces that one message each carries.
pub fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let len = batch.num_rows();
    (0..len)
        .step_by(MOST)
        .map(move |start| batch.slice(start, MOST.min(len - start)))
}

/// The column, in which of floats there is one zero and one NaN.
pub(super) fn one_zero(column: ArrayRef) -> ArrayRef {
    let Some(floats) = column.as_primitive_opt::<Float64Type>() else {
        return column;
    };
    let canonical = |value: f64| {
        if value.is_nan() {
            f64::NAN
        } else {
            value + 0.0
        }
    };
    let differs = |value: &f64| canonical(*value).to_bits() != value.to_bits();
    if floats.values().iter().any(differs) {
        return Arc::new(floats.unary::<_, Float64Type>(canonical));
    }
    column
}

/// The mask without nulls, which are false.
pub(super) fn only_true(mask: &BooleanArray) -> BooleanArray {
    match mask.nulls() {
        None => mask.clone(),
        Some(known) => BooleanArray::new(mask.values() & known.inner(), None),
    }
}

/// Rows made of columns: the form of one of them.
pub(crate) enum Shape<'a> {
    /// The value of a column.
    Column(&'a ArrayRef),
    /// A constant that is an integer or None.
    Constant(RowBuf),
    /// A tuple.
    Tuple(Vec<Shape<'a>>),
}

impl Shape<'_> {
    /// Makes so many rows, which the columns have.
    pub(crate) fn rows(&self, len: usize) -> Cells {
        if let Some(cells) = self.rows_of_ints(len) {
            return cells;
        }
        let form = self.form();
        let (mut cells, mut row) = (Cells::default(), RowBuf::default());
        for index in 0..len {
            let written = row.term(|term| -> Result<(), std::convert::Infallible> {
                let mut writer = Writer::new(term);
                form.write(&mut writer, index);
                writer.end();
                Ok(())
            });
            match written {
                Ok(row) => cells.push(row),
            }
        }
        cells
    }

    /// Makes rows of integers, where all columns are, without a null.
    fn rows_of_ints(&self, len: usize) -> Option<Cells> {
        let mut words = Vec::new();
        let layout = self.layout(Layout::EMPTY, &mut words)?;
        let mut made = Vec::with_capacity(words.len() * len);
        // The usual numbers of columns, without a loop in the loop.
        match *words {
            [Word::Of(a)] => made.extend_from_slice(a),
            [Word::Of(a), Word::Of(b)] => {
                made.extend(a.iter().zip(b).flat_map(|(a, b)| [*a, *b]));
            }
            [Word::Of(a), Word::Of(b), Word::Of(c)] => {
                made.extend(a.iter().zip(b).zip(c).flat_map(|((a, b), c)| [*a, *b, *c]));
            }
            _ => {
                for index in 0..len {
                    made.extend(words.iter().map(|word| match word {
                        Word::Of(column) => column[index],
                        Word::Constant(value) => *value,
                    }));
                }
            }
        }
        Some(Cells::of_ints(layout, len, made))
    }

    fn layout<'a>(&'a self, before: Layout, words: &mut Vec<Word<'a>>) -> Option<Layout> {
        match self {
            Shape::Column(array) => {
                let ints = array.as_primitive_opt::<Int64Type>()?;
                if ints.null_count() > 0 {
                    return None;
                }
                words.push(Word::Of(ints.values()));
                before.then(Symbol::Int)
            }
            Shape::Constant(row) => match row.get() {
                pointstamp_rows::Row::Ints(layout, constants) => {
                    words.extend(constants.iter().copied().map(Word::Constant));
                    before.and(layout)
                }
                pointstamp_rows::Row::Term(_) => None,
            },
            Shape::Tuple(parts) => {
                let mut layout = before.then(Symbol::Open)?;
                for part in parts {
                    layout = part.layout(layout, words)?;
                }
                layout.then(Symbol::Close)
            }
        }
    }

    fn form(&self) -> Form<'_> {
        match self {
            Shape::Constant(row) => {
                let mut term = Vec::new();
                row.get().put_term(&mut term);
                Form::Constant(term)
            }
            Shape::Tuple(parts) => Form::Tuple(parts.iter().map(Shape::form).collect()),
            Shape::Column(array) => match array.data_type() {
                DataType::Int64 => Form::Ints(array.as_primitive()),
                DataType::Decimal128(..) => Form::Wide(array.as_primitive::<Decimal128Type>()),
                DataType::Float64 => Form::Floats(array.as_primitive()),
                DataType::LargeUtf8 => Form::Texts(array.as_string()),
                DataType::LargeBinary => Form::Bytes(array.as_binary()),
                _ => Form::Nulls,
            },
        }
    }
}

/// An integer of a row.
enum Word<'a> {
    Of(&'a [i64]),
    Constant(i64),
}

/// The types of a shape's arrays.
enum Form<'a> {
    Ints(&'a Int64Array),
    Wide(&'a Decimal128Array),
    Floats(&'a Float64Array),
    Texts(&'a LargeStringArray),
    Bytes(&'a LargeBinaryArray),
    Nulls,
    Constant(Vec<u8>),
    Tuple(Vec<Form<'a>>),
}

impl Form<'_> {
    fn write(&self, writer: &mut Writer<'_>, index: usize) {
        match self {
            Form::Ints(ints) if ints.is_valid(index) => writer.int(ints.value(index).into()),
            Form::Wide(ints) if ints.is_valid(index) => writer.int(ints.value(index)),
            Form::Floats(floats) if floats.is_valid(index) => writer.float(floats.value(index)),
            Form::Texts(texts) if texts.is_valid(index) => writer.text(texts.value(index)),
            Form::Bytes(bytes) if bytes.is_valid(index) => writer.bytes(bytes.value(index)),
            Form::Constant(term) => writer.term(term),
            Form::Tuple(parts) => {
                writer.open();
                for part in parts {
                    part.write(writer, index);
                }
                writer.close();
            }
            _ => writer.none(),
        }
    }
}

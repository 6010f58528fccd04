//! Numbering the distinct keys of columns: 0 for the first key seen, 1 for the next, and so on.
//!
//! A [`Groups`] gives every row the number of its key, and gives the keys back as columns. Keys are equal where their
//! values are, nulls included, and floats by the rule of `crate::floats`: a NaN is a key, and `-0.0` is `0.0`. Three
//! forms: integers and times as words, strings and bytes as they are, everything else as the comparable rows of
//! `arrow-row`. State: each distinct key once. Cost: a hash and a look into a table per row; of a dictionary, per value.

use arrow_array::array::AnyDictionaryArray;
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Schema};
use arrow_select::take::take;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

use crate::dictionary::{hydrate, plain_type};
use crate::error::Error;
use crate::extent::check_reach;
use crate::floats::canonical;

/// The number of a key that has no number. See [`Groups::freeze`].
pub const UNKNOWN: u32 = u32::MAX;

/// The name of the key column that is the same in all rows, where all of them are taken together.
pub const ALL_ROWS: &str = "all rows";

/// The distinct keys seen, by number.
pub struct Groups {
    /// Without dictionaries and runs.
    types: Vec<DataType>,
    keys: Keys,
}

enum Keys {
    Words(Words),
    Bytes(Bytes),
    Rows(RowConverter, Bytes),
}

impl Groups {
    /// No keys yet, of columns of these types.
    ///
    /// # Errors
    ///
    /// An error of the row format for a type that it does not know.
    pub fn new(types: &[DataType]) -> Result<Self, Error> {
        let types: Vec<DataType> = types.iter().map(plain_type).collect();
        let keys = match types.as_slice() {
            [only] if is_word(only) => Keys::Words(Words::default()),
            [only] if is_bytes(only) => Keys::Bytes(Bytes::default()),
            _ => {
                let fields = types.iter().cloned().map(SortField::new).collect();
                Keys::Rows(RowConverter::new(fields)?, Bytes::default())
            }
        };
        Ok(Groups { types, keys })
    }

    /// No keys yet, of columns of a schema, by their numbers.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of(schema: &Schema, key: &[usize]) -> Result<Self, Error> {
        let data_type = |&at: &usize| schema.field(at).data_type().clone();
        Groups::new(&key.iter().map(data_type).collect::<Vec<_>>())
    }

    /// No keys yet, of columns of the same types.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn empty(&self) -> Result<Self, Error> {
        Groups::new(&self.types)
    }

    /// Stops numbering new keys: their rows get [`UNKNOWN`].
    pub fn freeze(&mut self) {
        match &mut self.keys {
            Keys::Words(words) => words.frozen = true,
            Keys::Bytes(bytes) | Keys::Rows(_, bytes) => bytes.frozen = true,
        }
    }

    /// The number of distinct keys.
    pub fn len(&self) -> usize {
        match &self.keys {
            Keys::Words(words) => words.values.len(),
            Keys::Bytes(bytes) | Keys::Rows(_, bytes) => bytes.ends.len(),
        }
    }

    /// Whether no key has been seen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of each row's key; keys that are new get the next numbers, in the order of the rows.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyKeys`], and an error of a kernel.
    pub fn number(&mut self, columns: &[ArrayRef]) -> Result<Vec<u32>, Error> {
        if let [only] = columns
            && let Some(dictionary) = only.as_any_dictionary_opt()
        {
            return self.number_dictionary(dictionary);
        }
        let comparable = |column: &ArrayRef| canonical(&hydrate(column)?);
        let columns = columns
            .iter()
            .map(comparable)
            .collect::<Result<Vec<_>, _>>()?;
        match &mut self.keys {
            Keys::Words(words) => words.number(&columns[0]),
            Keys::Bytes(bytes) => bytes.number_column(&columns[0]),
            Keys::Rows(converter, bytes) => {
                let rows = converter.convert_columns(&columns)?;
                let mut numbers = Vec::with_capacity(rows.num_rows());
                for row in &rows {
                    numbers.push(bytes.number(Some(row.data()))?);
                }
                Ok(numbers)
            }
        }
    }

    /// The numbers of a dictionary's rows: each value that they use is looked at once.
    fn number_dictionary(
        &mut self,
        dictionary: &dyn AnyDictionaryArray,
    ) -> Result<Vec<u32>, Error> {
        const UNUSED: usize = usize::MAX;
        let values = dictionary.values();
        let keys = if values.is_empty() {
            vec![0; dictionary.len()] // all of them are null
        } else {
            dictionary.normalized_keys()
        };
        // The values in the order in which rows use them, the null among them, and where each stands there.
        let mut used: Vec<Option<u64>> = Vec::new();
        let mut place = vec![UNUSED; values.len() + 1];
        let mut places = Vec::with_capacity(keys.len());
        for (row, key) in keys.into_iter().enumerate() {
            let value = dictionary.is_valid(row).then_some(key);
            let slot = &mut place[value.unwrap_or(values.len())];
            if *slot == UNUSED {
                *slot = used.len();
                used.push(value.map(|value| value as u64));
            }
            places.push(*slot);
        }
        let numbers = self.number(&[take(values, &UInt64Array::from(used), None)?])?;
        Ok(places.into_iter().map(|place| numbers[place]).collect())
    }

    /// The number of bytes of the keys of these numbers that have no fixed size.
    pub(crate) fn bytes_of(&self, range: &Range<usize>) -> usize {
        match &self.keys {
            Keys::Words(_) => 0,
            Keys::Bytes(bytes) | Keys::Rows(_, bytes) => {
                bytes.end_before(range.end) - bytes.end_before(range.start)
            }
        }
    }

    /// The approximate size in bytes of the parts of the keys that have no fixed size.
    pub fn bytes(&self) -> usize {
        match &self.keys {
            Keys::Words(_) => 0,
            Keys::Bytes(bytes) | Keys::Rows(_, bytes) => bytes.arena.len(),
        }
    }

    /// The keys of these numbers, as plain columns: without the dictionaries or runs that they came in.
    ///
    /// # Errors
    ///
    /// An error of a kernel; `ArrowError::OffsetOverflowError` where they are more than one column can hold.
    pub fn keys(&self, range: Range<usize>) -> Result<Vec<ArrayRef>, Error> {
        check_reach(self.bytes_of(&range), &range)?;
        match &self.keys {
            Keys::Words(words) => Ok(vec![words.column(range, &self.types[0])]),
            Keys::Bytes(bytes) => Ok(vec![cast(&bytes.column(range), &self.types[0])?]),
            Keys::Rows(converter, bytes) => {
                let parser = converter.parser();
                let rows = range.map(|number| parser.parse(bytes.get(number).unwrap_or_default()));
                Ok(converter.convert_rows(rows)?)
            }
        }
    }
}

/// A key as it is shown in messages: `name=value`, shortened, for each of its columns, of which the first row is looked at.
pub(crate) fn shown<'a>(names: impl Iterator<Item = &'a str>, columns: &[ArrayRef]) -> String {
    const LONG: usize = 100;
    let value = |column: &ArrayRef| {
        let text = array_value_to_string(column, 0).unwrap_or_default();
        match text.char_indices().nth(LONG) {
            _ if column.is_null(0) => "null".to_owned(),
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    };
    let parts = names.zip(columns).filter(|(name, _)| *name != ALL_ROWS);
    let parts = parts.map(|(name, column)| format!("{name}={}", value(column)));
    parts.collect::<Vec<_>>().join(", ")
}

fn is_word(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
                | DataType::Duration(_)
        )
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// The number after the last, if there is one.
fn next_number(taken: usize) -> Result<u32, Error> {
    u32::try_from(taken)
        .ok()
        .filter(|&number| number < UNKNOWN)
        .ok_or(Error::TooManyKeys)
}

/// Calls a macro for each type whose values are words.
macro_rules! for_word_types {
    ($data_type:expr, $call:ident) => {{
        use arrow_schema::{DataType as D, TimeUnit as U};
        match $data_type {
            D::Int8 => $call!(Int8Type),
            D::Int16 => $call!(Int16Type),
            D::Int32 => $call!(Int32Type),
            D::Int64 => $call!(Int64Type),
            D::UInt8 => $call!(UInt8Type),
            D::UInt16 => $call!(UInt16Type),
            D::UInt32 => $call!(UInt32Type),
            D::UInt64 => $call!(UInt64Type),
            D::Date32 => $call!(Date32Type),
            D::Date64 => $call!(Date64Type),
            D::Time32(U::Second) => $call!(Time32SecondType),
            D::Time32(_) => $call!(Time32MillisecondType),
            D::Time64(U::Microsecond) => $call!(Time64MicrosecondType),
            D::Time64(_) => $call!(Time64NanosecondType),
            D::Timestamp(U::Second, _) => $call!(TimestampSecondType),
            D::Timestamp(U::Millisecond, _) => $call!(TimestampMillisecondType),
            D::Timestamp(U::Microsecond, _) => $call!(TimestampMicrosecondType),
            D::Timestamp(U::Nanosecond, _) => $call!(TimestampNanosecondType),
            D::Duration(U::Second) => $call!(DurationSecondType),
            D::Duration(U::Millisecond) => $call!(DurationMillisecondType),
            D::Duration(U::Microsecond) => $call!(DurationMicrosecondType),
            D::Duration(U::Nanosecond) => $call!(DurationNanosecondType),
            other => unreachable!("{other} is not a type of words"),
        }
    }};
}

/// Keys that fit into 64 bits.
#[derive(Default)]
struct Words {
    table: HashTable<(u64, u32)>,
    values: Vec<u64>,
    null: Option<u32>,
    frozen: bool,
}

/// Mixes a word so that every bit of the result depends on all of its bits.
#[allow(clippy::cast_possible_truncation, reason = "the two halves are folded")]
fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

impl Words {
    fn number(&mut self, column: &ArrayRef) -> Result<Vec<u32>, Error> {
        macro_rules! number {
            ($type:ty) => {{
                let column = column.as_primitive::<$type>();
                #[allow(
                    clippy::cast_sign_loss,
                    clippy::cast_lossless,
                    reason = "a word stands for the value"
                )]
                self.number_all(column, |value| value as u64)
            }};
        }
        for_word_types!(column.data_type(), number)
    }

    fn number_all<T: ArrowPrimitiveType>(
        &mut self,
        column: &PrimitiveArray<T>,
        word: impl Fn(T::Native) -> u64,
    ) -> Result<Vec<u32>, Error> {
        let mut numbers = Vec::with_capacity(column.len());
        match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for &value in column.values() {
                    numbers.push(self.number_one(word(value))?);
                }
            }
            Some(nulls) => {
                for (&value, valid) in column.values().iter().zip(nulls) {
                    numbers.push(if valid {
                        self.number_one(word(value))?
                    } else if let Some(null) = self.null {
                        null
                    } else if self.frozen {
                        UNKNOWN
                    } else {
                        let number = next_number(self.values.len())?;
                        self.values.push(0);
                        self.null = Some(number);
                        number
                    });
                }
            }
        }
        Ok(numbers)
    }

    fn number_one(&mut self, word: u64) -> Result<u32, Error> {
        let entry = self.table.entry(
            mix(word),
            |&(other, _)| other == word,
            |&(other, _)| mix(other),
        );
        match entry {
            Entry::Occupied(found) => Ok(found.get().1),
            Entry::Vacant(_) if self.frozen => Ok(UNKNOWN),
            Entry::Vacant(vacant) => {
                let number = next_number(self.values.len())?;
                vacant.insert((word, number));
                self.values.push(word);
                Ok(number)
            }
        }
    }

    fn column(&self, range: Range<usize>, data_type: &DataType) -> ArrayRef {
        let nulls = self
            .null
            .map(|null| null as usize)
            .filter(|null| range.contains(null))
            .map(|null| {
                range
                    .clone()
                    .map(|number| number != null)
                    .collect::<NullBuffer>()
            });
        let values = &self.values[range];
        macro_rules! column {
            ($type:ty) => {{
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "a word stands for the value"
                )]
                let values = values
                    .iter()
                    .map(|&word| word as <$type as ArrowPrimitiveType>::Native)
                    .collect();
                let column = PrimitiveArray::<$type>::new(values, nulls);
                Arc::new(column.with_data_type(data_type.clone()))
            }};
        }
        for_word_types!(data_type, column)
    }
}

/// Keys that are strings of bytes, end to end.
#[derive(Default)]
struct Bytes {
    table: HashTable<(u64, u32)>,
    arena: Vec<u8>,
    ends: Vec<usize>,
    null: Option<u32>,
    frozen: bool,
}

impl Bytes {
    fn number_column(&mut self, column: &ArrayRef) -> Result<Vec<u32>, Error> {
        let mut numbers = Vec::with_capacity(column.len());
        macro_rules! number {
            ($array:expr) => {
                for value in $array {
                    numbers.push(self.number(value.map(|value| value.as_ref()))?);
                }
            };
        }
        macro_rules! number_text {
            ($array:expr) => {
                for value in $array {
                    numbers.push(self.number(value.map(str::as_bytes))?);
                }
            };
        }
        match column.data_type() {
            DataType::Utf8 => number_text!(column.as_string::<i32>()),
            DataType::LargeUtf8 => number_text!(column.as_string::<i64>()),
            DataType::Utf8View => number_text!(column.as_string_view()),
            DataType::Binary => number!(column.as_binary::<i32>()),
            DataType::LargeBinary => number!(column.as_binary::<i64>()),
            _ => number!(column.as_binary_view()),
        }
        Ok(numbers)
    }

    fn number(&mut self, key: Option<&[u8]>) -> Result<u32, Error> {
        let Some(key) = key else {
            if let Some(null) = self.null {
                return Ok(null);
            }
            if self.frozen {
                return Ok(UNKNOWN);
            }
            let number = next_number(self.ends.len())?;
            self.ends.push(self.arena.len());
            self.null = Some(number);
            return Ok(number);
        };
        let (arena, ends) = (&self.arena, &self.ends);
        let hash = xxh3_64(key);
        let same = |&(other, number): &(u64, u32)| {
            other == hash && slot(arena, ends, number as usize) == key
        };
        match self.table.entry(hash, same, |&(other, _)| other) {
            Entry::Occupied(found) => Ok(found.get().1),
            Entry::Vacant(_) if self.frozen => Ok(UNKNOWN),
            Entry::Vacant(vacant) => {
                let number = next_number(ends.len())?;
                vacant.insert((hash, number));
                self.arena.extend_from_slice(key);
                self.ends.push(self.arena.len());
                Ok(number)
            }
        }
    }

    /// The end of the keys before this number.
    fn end_before(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// The key of a number; `None` for the null.
    fn get(&self, number: usize) -> Option<&[u8]> {
        if self.null.is_some_and(|null| null as usize == number) {
            return None;
        }
        Some(slot(&self.arena, &self.ends, number))
    }

    fn column(&self, range: Range<usize>) -> ArrayRef {
        let mut builder = BinaryViewBuilder::with_capacity(range.len());
        for number in range {
            builder.append_option(self.get(number));
        }
        Arc::new(builder.finish())
    }
}

fn slot<'a>(arena: &'a [u8], ends: &[usize], number: usize) -> &'a [u8] {
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &arena[start..ends[number]]
}

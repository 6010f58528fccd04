//! Values whose arithmetic and order only the host language implements, such as decimals and values that are
//! kept as pickles.

use pointstamp_engine::error::UserResult;
use pointstamp_rows::{Row, RowBuf};

/// Arithmetic and order of values that only the host language implements.
pub trait Exotic {
    /// Adds up numbers, each as often as its count says, or takes their mean, into `result`. Returns false if there is no
    /// result: a mean of no values.
    ///
    /// # Errors
    ///
    /// Errors of the host, for example for a value that is no number; `name` is the operator's.
    fn sum(
        &self,
        name: &str,
        values: &mut dyn Iterator<Item = (Row<'_>, i64)>,
        mean: bool,
        result: &mut RowBuf,
    ) -> UserResult<bool>;

    /// Checks two values that rows do not order as the host may.
    ///
    /// # Errors
    ///
    /// When the host orders the two values.
    fn check_order(&self, name: &str, value: Row<'_>, other: Row<'_>) -> UserResult<()>;
}

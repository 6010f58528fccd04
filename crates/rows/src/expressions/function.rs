//! Functions of columns, as data.

/// A function of columns. The operators of collections of columns compute it by Arrow's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The value in a type, which is the argument; a value without one is an error.
    Cast,
    /// The value in a type, which is the argument; a value without one is null.
    TryCast,
    /// The constant of a type, which is the argument, from its plain value.
    Typed,
    /// The value after the first true condition: conditions and values alternate, and the last value is the default.
    Case,
    /// The first value that is not null.
    Coalesce,
    /// True if the first value equals one of the others.
    IsIn,
    /// The remainder of a division.
    Rem,
    /// True if a text has the form of a pattern with `%` and `_`.
    Like,
    /// [`Function::Like`], whatever the case of letters is.
    ILike,
    /// True if a regular expression, the argument, matches a part of a text.
    Matches,
    /// True if a text starts with another.
    StartsWith,
    /// True if a text ends with another.
    EndsWith,
    /// True if a text contains another.
    Contains,
    /// A part of a text; the argument is `start` or `start,length`, from 1 on.
    Substr,
    /// A text in lower case.
    Lower,
    /// A text in upper case.
    Upper,
    /// A text without spaces around it.
    Trim,
    /// The number of characters of a text.
    Length,
    /// Texts one after another.
    Concat,
    /// A part of a date or timestamp, which the argument names.
    Extract,
    /// A date or timestamp without the parts below the one that the argument names.
    Truncate,
    /// A date or timestamp and an interval; the argument is `months,days,microseconds`.
    AddInterval,
    /// A number without its sign.
    Abs,
    /// The greatest integer that is not greater.
    Floor,
    /// The least integer that is not less.
    Ceil,
    /// A number with so many digits behind the point, which the argument says.
    Round,
    /// The first value; an error where the second, a count, is greater than 1.
    Single,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 27] = [
        Function::Cast,
        Function::TryCast,
        Function::Typed,
        Function::Case,
        Function::Coalesce,
        Function::IsIn,
        Function::Rem,
        Function::Like,
        Function::ILike,
        Function::Matches,
        Function::StartsWith,
        Function::EndsWith,
        Function::Contains,
        Function::Substr,
        Function::Lower,
        Function::Upper,
        Function::Trim,
        Function::Length,
        Function::Concat,
        Function::Extract,
        Function::Truncate,
        Function::AddInterval,
        Function::Abs,
        Function::Floor,
        Function::Ceil,
        Function::Round,
        Function::Single,
    ];

    /// The name by which expressions are shown and made.
    pub fn name(self) -> &'static str {
        match self {
            Function::Cast => "cast",
            Function::TryCast => "try_cast",
            Function::Typed => "typed",
            Function::Case => "case",
            Function::Coalesce => "coalesce",
            Function::IsIn => "is_in",
            Function::Rem => "rem",
            Function::Like => "like",
            Function::ILike => "ilike",
            Function::Matches => "matches",
            Function::StartsWith => "starts_with",
            Function::EndsWith => "ends_with",
            Function::Contains => "contains",
            Function::Substr => "substr",
            Function::Lower => "lower",
            Function::Upper => "upper",
            Function::Trim => "trim",
            Function::Length => "length",
            Function::Concat => "concat",
            Function::Extract => "extract",
            Function::Truncate => "truncate",
            Function::AddInterval => "add_interval",
            Function::Abs => "abs",
            Function::Floor => "floor",
            Function::Ceil => "ceil",
            Function::Round => "round",
            Function::Single => "single",
        }
    }

    /// The function of a name.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL
            .into_iter()
            .find(|function| function.name() == name)
    }
}

//! The layout of a value made of integers: which of them are in which tuple.
//!
//! Owns [`Layout`], the form of a value that is an integer of 64 bits, `None`, or a tuple of such: symbols of two bits each,
//! in the order in which they are written, behind a mark. Invariant: a layout other than [`EMPTY`](Layout::EMPTY) is that of
//! exactly one value. It has at most 31 symbols, so that it is one word; values with more of them are kept as terms.

/// The form of a value that is made of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout(u64);

const NONE: u64 = 0;
const INT: u64 = 1;
const OPEN: u64 = 2;
const CLOSE: u64 = 3;

/// An element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// `None`.
    None,
    /// An integer.
    Int,
    /// The begin of a tuple.
    Open,
    /// The end of a tuple.
    Close,
}

impl Layout {
    /// Nothing yet.
    pub const EMPTY: Layout = Layout(1);
    /// An integer.
    pub const INT: Layout = Layout(0b101);
    /// `None`.
    pub const NONE: Layout = Layout(0b100);

    /// The layout with another symbol at its end; nothing where there is no room.
    #[inline]
    pub fn then(self, symbol: Symbol) -> Option<Layout> {
        let bits = match symbol {
            Symbol::None => NONE,
            Symbol::Int => INT,
            Symbol::Open => OPEN,
            Symbol::Close => CLOSE,
        };
        (self.0 >> 62 == 0).then_some(Layout(self.0 << 2 | bits))
    }

    /// The number of symbols.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "it is compared with EMPTY")]
    pub fn len(self) -> usize {
        (63 - self.0.leading_zeros() as usize) / 2
    }

    #[inline]
    fn bits(self, index: usize) -> u64 {
        self.0 >> (2 * (self.len() - 1 - index)) & 3
    }

    /// The symbols in order.
    pub fn symbols(self) -> impl Iterator<Item = Symbol> {
        (0..self.len()).map(move |index| match self.bits(index) {
            NONE => Symbol::None,
            INT => Symbol::Int,
            OPEN => Symbol::Open,
            _ => Symbol::Close,
        })
    }

    /// The number of integers.
    #[inline]
    pub fn width(self) -> usize {
        let low = self.0 & !(self.0 >> 1) & 0x5555_5555_5555_5555;
        low.count_ones() as usize - 1 // the mark looks like one
    }

    /// The symbols of both, one after the other.
    #[inline]
    pub fn and(self, other: Layout) -> Option<Layout> {
        let len = other.len();
        if self.len() + len > 31 {
            return None;
        }
        let mark = 1 << (2 * len);
        Some(Layout(self.0 << (2 * len) | (other.0 ^ mark)))
    }

    /// The layout of a tuple of two.
    #[inline]
    pub fn pair(first: Layout, second: Layout) -> Option<Layout> {
        let inside = first.and(second)?;
        Layout::EMPTY
            .then(Symbol::Open)?
            .and(inside)?
            .then(Symbol::Close)
    }

    /// The symbols from `start` to `end`.
    fn slice(self, start: usize, end: usize) -> Layout {
        let tail = self.0 >> (2 * (self.len() - end));
        let len = 2 * (end - start);
        Layout((tail & ((1 << len) - 1)) | 1 << len)
    }

    /// The end of the value that begins at a symbol; `None` where none begins there, or it has no end.
    fn end_of(self, start: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for index in start..self.len() {
            match self.bits(index) {
                OPEN => depth += 1,
                CLOSE => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return Some(index + 1);
            }
        }
        None
    }

    /// Whether this is the layout of one value.
    pub fn is_value(self) -> bool {
        self.end_of(0) == Some(self.len())
    }

    /// The layouts of a tuple's elements; nothing where this is no tuple.
    pub fn elements(self) -> Option<impl Iterator<Item = Layout>> {
        if self.len() < 2 || self.bits(0) != OPEN {
            return None;
        }
        let (mut at, end) = (1, self.len() - 1);
        Some(std::iter::from_fn(move || {
            let start = at;
            at = (at < end).then(|| self.end_of(start)).flatten()?;
            Some(self.slice(start, at))
        }))
    }

    /// The layouts of the two elements of a tuple of two; nothing where this is none.
    #[inline]
    pub fn cut_pair(self) -> Option<(Layout, Layout)> {
        let mut elements = self.elements()?;
        let pair = (elements.next()?, elements.next()?);
        elements.next().is_none().then_some(pair)
    }

    /// The layout as a word.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The layout of a word; nothing where the word is not one's.
    pub fn from_word(word: u64) -> Option<Layout> {
        let layout = Layout(word);
        let marked = word != 0 && word.leading_zeros() % 2 == 1;
        (marked && (layout == Layout::EMPTY || layout.is_value())).then_some(layout)
    }
}

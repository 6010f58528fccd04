//! Bytes from which a program is drawn.

/// Bytes, read from first to last; zeros when all are read. Every sequence of bytes describes something.
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Draw(bytes)
    }

    /// True when all bytes are read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a number below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                usize::from(*first) % end
            }
            None => 0,
        }
    }

    /// Returns one of several.
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

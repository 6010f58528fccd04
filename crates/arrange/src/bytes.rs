//! Numbers as bytes, little-endian, and back.

/// Appends a count and so many words, little-endian.
pub(crate) fn write_words(into: &mut Vec<u8>, words: impl ExactSizeIterator<Item = u64>) {
    write_length(into, words.len());
    write_array(into, words.map(u64::to_le_bytes));
}

/// Appends items of `N` bytes.
pub fn write_array<const N: usize>(
    into: &mut Vec<u8>,
    items: impl ExactSizeIterator<Item = [u8; N]>,
) {
    let start = into.len();
    into.resize(start + N * items.len(), 0);
    let places = into[start..].as_chunks_mut::<N>().0;
    for (place, item) in places.iter_mut().zip(items) {
        *place = item;
    }
}

/// Takes so many items of `N` bytes off the front of `from`.
pub fn read_array<'a, const N: usize>(from: &mut &'a [u8], len: usize) -> Option<&'a [[u8; N]]> {
    let bytes = from.split_off(..len.checked_mul(N)?)?;
    Some(bytes.as_chunks::<N>().0)
}

pub(crate) fn write_length(into: &mut Vec<u8>, len: usize) {
    into.extend((len as u64).to_le_bytes());
}

pub(crate) fn read_length(from: &mut &[u8]) -> Option<usize> {
    let word = from.split_off(..8)?;
    u64::from_le_bytes(word.try_into().ok()?).try_into().ok()
}

pub(crate) fn read_words(from: &mut &[u8]) -> Option<Vec<u64>> {
    let len = read_length(from)?;
    let words = read_array::<8>(from, len)?.iter();
    Some(words.map(|word| u64::from_le_bytes(*word)).collect())
}

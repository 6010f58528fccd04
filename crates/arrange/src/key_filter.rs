//! Filters of the keys of a page, which say of most keys that are not there that they are not.
//!
//! Owns [`KeyFilter`], a Bloom filter (Bloom, 1970). It is written behind its page and takes about a tenth of the
//! memory of a page of words, so that the cache has many for one page.

use fastbloom::BloomFilter;

use crate::bytes::{read_words, write_words};
use crate::rows::Rows;

/// Bits for each key, and how many of them each sets: of the keys that are not there, one in a hundred passes.
const BITS: usize = 10;
const HASHES: u32 = 7;

/// A set of keys that says of some others that they are in it, too.
pub(crate) struct KeyFilter(BloomFilter);

impl KeyFilter {
    /// The filter of all keys of a column.
    pub(crate) fn of<K: Rows>(keys: &K) -> Self {
        let mut filter = BloomFilter::with_num_bits(BITS * keys.len().max(1)).hashes(HASHES);
        let mut memory = Vec::new();
        for key in 0..keys.len() {
            filter.insert_hash(K::hash(keys.get(key), &mut memory));
        }
        Self(filter)
    }

    /// Whether the key of a hash may be there.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        write_words(into, self.0.as_slice().iter().copied());
    }

    /// Takes a filter off the front of `from`.
    pub(crate) fn read(from: &mut &[u8]) -> Option<Self> {
        let words = read_words(from).filter(|words| !words.is_empty())?;
        Some(Self(BloomFilter::from_vec(words).hashes(HASHES)))
    }

    /// The bytes of memory held.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice()) + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Bytes, Words};

    fn passes<K: Rows>(filter: &KeyFilter, keys: &K) -> usize {
        let hashes = (0..keys.len()).map(|key| K::hash(keys.get(key), &mut Vec::new()));
        hashes.filter(|hash| filter.may_have(*hash)).count()
    }

    fn has_its_keys_and_few_others<K: Rows>(there: &K, others: &K) {
        let filter = KeyFilter::of(there);
        let mut bytes = Vec::new();
        filter.write(&mut bytes);
        let filter = KeyFilter::read(&mut &bytes[..]).unwrap();
        assert_eq!(passes(&filter, there), there.len());
        let wrong = passes(&filter, others);
        assert!(wrong * 50 < others.len(), "{wrong} of {}", others.len());
    }

    #[test]
    fn others_rarely_pass() {
        let words =
            |step: u64, from: u64| -> Words { (0..5000).map(|i| i * step + from).collect() };
        has_its_keys_and_few_others(&words(2, 0), &words(2, 1));
        has_its_keys_and_few_others(&words(1, 0), &words(1, 1 << 63));
        has_its_keys_and_few_others(&words(1 << 40, 0), &words(1 << 40, 1 << 20));
        let bytes = |prefix: &str| {
            let mut rows = Bytes::default();
            for number in 0..5000 {
                rows.push(format!("{prefix}{number}").as_bytes());
            }
            rows
        };
        has_its_keys_and_few_others(&bytes("user "), &bytes("users "));
    }
}

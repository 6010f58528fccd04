//! The notes at the end of a row: information that its term does not have.

/// Marks an integer that was a `bool`.
pub const BOOL: u8 = 1;
/// Marks an integer that was a `float`.
pub const FLOAT: u8 = 2;

/// The end of a row: its notes have 255 bytes or more, and their length is before this.
const LONG: u8 = 0xff;
/// The bytes of a note before its payload.
const HEAD: usize = 9;

/// The term of a row and its notes.
#[inline]
pub fn split(row: &[u8]) -> (&[u8], &[u8]) {
    match row {
        [term @ .., 0] => (term, &[]),
        [rest @ .., LONG] if rest.len() >= 4 => {
            let (rest, len) = rest.split_at(rest.len() - 4);
            let len = u32::from_le_bytes(len.try_into().unwrap_or_default()) as usize;
            rest.split_at(rest.len().saturating_sub(len))
        }
        [rest @ .., len] => rest.split_at(rest.len().saturating_sub(usize::from(*len))),
        [] => (&[], &[]),
    }
}

/// The term of a row, by which rows are compared, sorted and routed.
#[inline]
pub fn term_of(row: &[u8]) -> &[u8] {
    split(row).0
}

/// Appends notes and their length.
#[inline]
pub fn finish(notes: &[u8], row: &mut Vec<u8>) {
    if notes.is_empty() {
        row.push(0);
        return;
    }
    row.extend_from_slice(notes);
    finish_len(notes.len(), row);
}

/// Appends the length of notes that have been appended.
pub(crate) fn finish_len(len: usize, row: &mut Vec<u8>) {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "checked, or kept in 32 bits by the size of rows"
    )]
    if len < usize::from(LONG) {
        row.push(len as u8);
    } else {
        row.extend((len as u32).to_le_bytes());
        row.push(LONG);
    }
}

/// Appends a note.
pub fn put_note(atom: u32, kind: u8, payload: &[u8], notes: &mut Vec<u8>) {
    notes.extend(atom.to_le_bytes());
    notes.push(kind);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "rows are shorter than 4 GiB"
    )]
    notes.extend((payload.len() as u32).to_le_bytes());
    notes.extend_from_slice(payload);
}

/// The notes, in the order of their atoms: the atom, the kind and the payload of each.
pub struct Notes<'a>(pub &'a [u8]);

impl<'a> Notes<'a> {
    /// The atom of the next note.
    pub fn atom(&self) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(..4)?.try_into().ok()?))
    }

    /// Takes the next note.
    pub fn take(&mut self) -> Option<(u32, u8, &'a [u8])> {
        let atom = self.atom()?;
        let kind = *self.0.get(4)?;
        let len = u32::from_le_bytes(self.0.get(5..HEAD)?.try_into().ok()?) as usize;
        let payload = self.0.get(HEAD..HEAD + len)?;
        self.0 = &self.0[HEAD + len..];
        Some((atom, kind, payload))
    }
}

/// Appends notes with their atoms moved: notes below `from`, and from `until` on, are left out.
pub fn put_moved(notes: &[u8], from: u32, until: u32, by: i64, out: &mut Vec<u8>) {
    let mut notes = Notes(notes);
    while let Some((atom, kind, payload)) = notes.take() {
        if (from..until).contains(&atom) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it stays an atom's number"
            )]
            put_note((i64::from(atom) + by) as u32, kind, payload, out);
        }
    }
}

//! Files of pages, without a name.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pointstamp_arrange::{Decoded, File as Stored, StorageError, Writer};
use pointstamp_store::page::{HEADER, Header, MOST, seal};

use crate::budget::Cached;
use crate::error::Error;
use crate::site::Site;

/// A file of pages. It is written in order, and read in any.
pub(crate) struct Pages {
    file: File,
    site: Site,
    number: u64,
    /// The end of each page.
    ends: Vec<u64>,
    buffer: Vec<u8>,
}

impl Pages {
    pub(crate) fn create(site: &Site) -> Result<Self, Error> {
        Ok(Pages {
            number: site.budget.next_file(),
            file: site.create()?,
            site: site.clone(),
            ends: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn start(&self, page: usize) -> u64 {
        if page == 0 { 0 } else { self.ends[page - 1] }
    }

    fn append_page(&mut self, page: &[u8]) -> Result<(), Error> {
        self.buffer.clear();
        let first = self.ends.len() as u64;
        for part in page.chunks(MOST) {
            seal(part, first, &mut self.buffer);
        }
        self.site.write(&self.file, &self.buffer)?;
        let written = self.buffer.len() as u64;
        self.ends.push(self.start(self.ends.len()) + written);
        Ok(())
    }

    fn read_page(&self, page: usize) -> Result<Vec<u8>, Error> {
        let damaged = |what: String| self.site.damaged(what);
        let (start, end) = (self.start(page), self.ends[page]);
        let mut stored = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX)];
        self.site.read(&self.file, &mut stored, start)?;
        let mut rest = Bytes::from(stored);
        let mut contents = Vec::new();
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let header = Header::read(header).map_err(damaged)?;
            let stored = rest.get(HEADER..HEADER + header.stored);
            let stored = stored.map(|stored| rest.slice_ref(stored));
            let stored = stored.ok_or_else(|| damaged("a page is cut".to_owned()))?;
            if header.first != page as u64 {
                return Err(damaged("another page is in its place".to_owned()));
            }
            let part = header.open(stored).map_err(damaged)?;
            rest = rest.slice(HEADER + header.stored..);
            if contents.is_empty() {
                contents = Vec::from(part); // without a copy where it was compressed
            } else {
                contents.extend_from_slice(&part);
            }
        }
        Ok(contents)
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Pages");
        debug
            .field("operator", &self.site.operator)
            .field("pages", &self.ends.len());
        debug.finish_non_exhaustive()
    }
}

impl Writer for Pages {
    fn append(&mut self, page: &[u8]) -> Result<(), StorageError> {
        self.append_page(page).map_err(StorageError::new)
    }

    fn finish(mut self: Box<Self>) -> Result<Arc<dyn Stored>, StorageError> {
        self.buffer = Vec::new();
        self.ends.shrink_to_fit();
        Ok(Arc::new(*self))
    }
}

impl Stored for Pages {
    fn read(&self, page: usize) -> Result<Vec<u8>, StorageError> {
        self.read_page(page).map_err(StorageError::new)
    }

    fn cached(&self, page: usize) -> Option<Decoded> {
        let found = self.site.budget.cache.get(&(self.number, page));
        let count = if found.is_some() {
            &self.site.budget.hits
        } else {
            &self.site.budget.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found.map(|cached| cached.contents)
    }

    fn cache(&self, page: usize, contents: Decoded, bytes: usize) {
        let cached = Cached { contents, bytes };
        self.site.budget.cache.insert((self.number, page), cached);
    }

    fn bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in 0..self.ends.len() {
            self.site.budget.cache.remove(&(self.number, page));
        }
    }
}

#[cfg(test)]
mod tests {
    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Budget;

    fn site(folder: &std::path::Path) -> Site {
        let budget = Budget::new(1 << 20, folder).unwrap();
        Site {
            budget,
            operator: "count".into(),
        }
    }

    fn written(site: &Site, pages: &[Vec<u8>]) -> Pages {
        let mut file = Pages::create(site).unwrap();
        for page in pages {
            file.append(page).unwrap();
        }
        file
    }

    fn some_pages() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let long = (any::<u8>(), 0..3_000_000_usize).prop_map(|(byte, len)| vec![byte; len]);
        let page = prop_oneof![proptest::collection::vec(any::<u8>(), 1..300), long];
        proptest::collection::vec(page, 1..5)
    }

    proptest! {
        #![proptest_config(cases(30))]

        #[test]
        fn pages_come_back_in_any_order(pages in some_pages()) {
            let folder = tempfile::tempdir().unwrap();
            let file = written(&site(folder.path()), &pages);
            for (number, page) in pages.iter().enumerate().rev() {
                prop_assert_eq!(&file.read(number).unwrap(), page);
            }
            prop_assert_eq!(folder.path().read_dir().unwrap().count(), 0, "files have no name");
        }

        #[cfg(unix)]
        #[test]
        fn a_changed_byte_is_noticed(pages in some_pages(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            use std::os::unix::fs::FileExt;
            let folder = tempfile::tempdir().unwrap();
            let file = written(&site(folder.path()), &pages);
            prop_assume!(file.bytes() > 0);
            let at = at.index(usize::try_from(file.bytes()).unwrap()) as u64;
            let mut byte = [0];
            file.file.read_exact_at(&mut byte, at).unwrap();
            file.file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
            let read: Vec<_> = (0..pages.len()).map(|page| file.read(page)).collect();
            let refused = read.iter().filter(|page| page.is_err()).count();
            prop_assert_eq!(refused, 1, "the page of the byte is refused, and no other");
        }
    }

    #[test]
    fn pages_of_a_file_that_is_gone_leave_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(folder.path());
        let file = written(&site, &[vec![1], vec![2]]);
        let budget = &site.budget;
        let contents: Decoded = Arc::new(7_u8);
        file.cache(1, contents, 100);
        let cached = file
            .cached(1)
            .map(|contents| contents.downcast_ref::<u8>().copied());
        assert_eq!(cached, Some(Some(7)));
        assert!(file.cached(0).is_none());
        assert_eq!(budget.cached(), 100);
        drop(file);
        assert_eq!(budget.cached(), 0);
        let traffic = budget.traffic();
        assert_eq!((traffic.hits, traffic.misses), (1, 1));
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_that_names_it_and_the_operator() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(folder.path());
        let path = folder.path().to_owned();
        drop(folder);
        let error = Pages::create(&site).unwrap_err().to_string();
        assert!(error.contains("count cannot store its state in"), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

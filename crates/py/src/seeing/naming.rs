//! The names that a program gives to the operators of a method.
//!
//! A method of a stream may make several operators: `distinct` of a collection makes `distinct: arrange` and `distinct`. Called
//! with `name="seen"`, it makes `seen: arrange` and `seen`: what has the method's own name gets the one that was given,
//! and all else has it in front. While a method runs, its title and name are on a stack; names are made from the innermost
//! method outwards, up to one that has none. Costs nothing where no name was given.

use std::borrow::Cow;

use parking_lot::{Mutex, MutexGuard};

/// The names given by the methods that run, innermost last. Of one thread; the lock is always free.
#[derive(Default)]
pub(crate) struct Naming(Mutex<Vec<Given>>);

struct Given {
    /// What the method's own operator is called without a name.
    title: String,
    /// The name; nothing where what is made now keeps its own.
    name: Option<String>,
}

impl Naming {
    fn stack(&self) -> MutexGuard<'_, Vec<Given>> {
        self.0.lock()
    }

    /// A method begins that was given a name, or that makes what another's name is not for.
    pub(crate) fn begin(&self, title: String, name: Option<String>) {
        self.stack().push(Given { title, name });
    }

    /// The method that began last has ended.
    pub(crate) fn end(&self) {
        self.stack().pop();
    }

    /// The name that an operator gets, which may be its own.
    pub(crate) fn named<'a>(&self, own: &'a str) -> Cow<'a, str> {
        self.renamed(own).map_or(Cow::Borrowed(own), Cow::Owned)
    }

    /// The name that an operator gets in the place of its own, if it is another.
    pub(crate) fn renamed(&self, own: &str) -> Option<String> {
        let mut made: Option<String> = None;
        for Given { title, name } in self.stack().iter().rev() {
            let Some(name) = name else { break };
            let current = made.as_deref().unwrap_or(own);
            if part_of(name, current).is_none() {
                let rest = part_of(title, current).unwrap_or_else(|| format!(": {current}"));
                made = Some(format!("{name}{rest}"));
            }
        }
        made
    }
}

/// What follows a title in a name that is the title, or begins with it and a colon.
fn part_of(title: &str, name: &str) -> Option<String> {
    let rest = name.strip_prefix(title)?;
    (rest.is_empty() || rest.starts_with(": ")).then(|| rest.to_owned())
}

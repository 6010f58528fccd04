//! The names that a program gives to the operators of a method.
//!
//! A method of a stream may make several operators: `distinct` of a collection makes `distinct: arrange` and `distinct`. Called
//! with `name="seen"`, it makes `seen: arrange` and `seen`: what has the method's own name gets the one that was given,
//! and all else has it in front. While a method runs, its title and name are on a stack; names are made from the innermost
//! method outwards, up to one that has none. Costs nothing where no name was given.

//!
//! While a plan is lowered, the node says both: its own name and the line of the program that made it.

use std::borrow::Cow;

use parking_lot::{Mutex, MutexGuard};

use super::frames::Line;

/// The names given by the methods that run, innermost last, or the node that is lowered. Used by one thread; the locks are
/// always free.
#[derive(Default)]
pub(crate) struct Naming {
    stack: Mutex<Vec<Given>>,
    node: Mutex<Option<Node>>,
}

/// The node whose operators are made.
struct Node {
    given: Given,
    line: Option<Line>,
}

struct Given {
    /// What the method's own operator is called without a name.
    title: String,
    /// The name; nothing where what is made now keeps its own.
    name: Option<String>,
}

impl Naming {
    fn stack(&self) -> MutexGuard<'_, Vec<Given>> {
        self.stack.lock()
    }

    /// A method begins that was given a name, or that makes what another's name is not for.
    pub(crate) fn begin(&self, title: String, name: Option<String>) {
        self.stack().push(Given { title, name });
    }

    /// The method that began last has ended.
    pub(crate) fn end(&self) {
        self.stack().pop();
    }

    /// Names the operators that are made from now on for a node, in the place of the node before, and gives them its line.
    pub(crate) fn lower(&self, title: String, name: Option<String>, line: Option<Line>) {
        let given = Given { title, name };
        *self.node.lock() = Some(Node { given, line });
    }

    /// No node is lowered any more.
    pub(crate) fn lowered(&self) {
        *self.node.lock() = None;
    }

    /// The line of the node that is lowered, if there is one.
    pub(crate) fn line(&self) -> Option<Line> {
        self.node.lock().as_ref()?.line.clone()
    }

    /// The name that an operator gets, which may be its own.
    pub(crate) fn named<'a>(&self, own: &'a str) -> Cow<'a, str> {
        self.renamed(own).map_or(Cow::Borrowed(own), Cow::Owned)
    }

    /// The name that an operator gets in the place of its own, if it is another.
    pub(crate) fn renamed(&self, own: &str) -> Option<String> {
        if let Some(node) = &*self.node.lock() {
            return node.given.renamed(own);
        }
        let mut made: Option<String> = None;
        for given in self.stack().iter().rev() {
            if given.name.is_none() {
                break;
            }
            made = given.renamed(made.as_deref().unwrap_or(own)).or(made);
        }
        made
    }
}

impl Given {
    /// The name that an operator gets in the place of its own, if it is another.
    fn renamed(&self, own: &str) -> Option<String> {
        let name = self.name.as_ref()?;
        if part_of(name, own).is_some() {
            return None;
        }
        let rest = part_of(&self.title, own).unwrap_or_else(|| format!(": {own}"));
        Some(format!("{name}{rest}"))
    }
}

/// What follows a title in a name that is the title, or begins with it and a colon.
fn part_of(title: &str, name: &str) -> Option<String> {
    let rest = name.strip_prefix(title)?;
    (rest.is_empty() || rest.starts_with(": ")).then(|| rest.to_owned())
}

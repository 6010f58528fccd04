//! The name and the line of the node of the plan that is being lowered.
//!
//! A node may become several operators: `distinct` of a collection becomes `distinct: arrange` and `distinct`. Where the
//! program has named the node `seen`, these are `seen: arrange` and `seen`: the operator with the node's title gets the
//! given name, and all others have it in front. Operators of a node without a name keep their own.

use std::borrow::Cow;

use parking_lot::Mutex;

use super::frames::Line;

/// The node that is being lowered, if one is. Used by one thread; the lock is always free.
#[derive(Default)]
pub(crate) struct Naming(Mutex<Option<Node>>);

struct Node {
    /// The name of the node's own operator where the program has given none.
    title: String,
    /// The name that the program has given.
    name: Option<String>,
    /// The line of the program that appended the node; none where the line that runs is meant.
    line: Option<Line>,
    /// The node's description, for comparison with a checkpoint.
    form: Option<String>,
}

impl Naming {
    /// Gives later operators the name and the line of a node.
    pub(crate) fn lower(
        &self,
        title: String,
        name: Option<String>,
        line: Option<Line>,
        form: Option<String>,
    ) {
        *self.0.lock() = Some(Node {
            title,
            name,
            line,
            form,
        });
    }

    /// The description of the node that is being lowered, for comparison with a checkpoint.
    pub(crate) fn form(&self) -> Option<String> {
        self.0.lock().as_ref()?.form.clone()
    }

    /// Ends the lowering.
    pub(crate) fn lowered(&self) {
        *self.0.lock() = None;
    }

    /// The line of the node that is being lowered, if there is one.
    pub(crate) fn line(&self) -> Option<Line> {
        self.0.lock().as_ref()?.line.clone()
    }

    /// The name that an operator gets, which may be its own.
    pub(crate) fn named<'a>(&self, own: &'a str) -> Cow<'a, str> {
        self.renamed(own).map_or(Cow::Borrowed(own), Cow::Owned)
    }

    /// The name that replaces an operator's own, if it is another.
    pub(crate) fn renamed(&self, own: &str) -> Option<String> {
        self.0.lock().as_ref()?.renamed(own)
    }
}

impl Node {
    fn renamed(&self, own: &str) -> Option<String> {
        let name = self.name.as_ref()?;
        if rest_after(name, own).is_some() {
            return None; // named after the node already
        }
        Some(match rest_after(&self.title, own) {
            Some(rest) => format!("{name}{rest}"),
            None => format!("{name}: {own}"),
        })
    }
}

/// Returns the rest of an operator's name after a title, where the name is the title, or begins with it and a
/// colon.
fn rest_after<'a>(title: &str, name: &'a str) -> Option<&'a str> {
    let rest = name.strip_prefix(title)?;
    (rest.is_empty() || rest.starts_with(": ")).then_some(rest)
}

//! The page on the design names code and checks that are there.

use std::fs;
use std::path::{Path, PathBuf};

fn is_source(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "rs" || extension == "py")
}

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if is_source(&path) {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn what_the_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/design/checkpoints.md")).unwrap();
    let mut files = Vec::new();
    // The cut, the collections and the key groups are in other crates.
    sources(root.parent().unwrap(), &mut files);
    // Keyed state of Python is in the package, and its checks are in tests.
    sources(&root.join("../../python"), &mut files);
    sources(&root.join("../../tests"), &mut files);
    let defined = |name: &str| {
        let kinds = [
            "fn ", "struct ", "enum ", "trait ", "mod ", "pub ", "def ", "class ",
        ];
        files.iter().any(|(_, text)| {
            kinds
                .iter()
                .any(|kind| text.contains(&format!("{kind}{name}")))
        })
    };

    let text: String = page.split("```").step_by(2).collect();
    let (mut rust, mut items) = (0, 0);
    for name in text.split('`').skip(1).step_by(2) {
        if is_source(Path::new(name)) {
            assert!(
                files.iter().any(|(path, _)| path.ends_with(name)),
                "there is no {name}"
            );
            rust += 1;
        } else if let Some((_, method)) = name.split_once("::") {
            assert!(defined(method), "there is no {name}");
            items += 1;
        } else if name.contains('_')
            && !name.contains(['(', '/', ' '])
            && !name.starts_with("AWS_")
            && name != "object_store"
            && name != "stable_hash"
        {
            assert!(defined(name), "there is no {name}");
            items += 1;
        }
    }
    assert!(rust > 10 && items > 8, "{rust} files, {items} items");

    // Flaws are named as they are planted.
    let planted = fs::read_to_string(root.join("src/planted.rs")).unwrap();
    let model = fs::read_to_string(root.join("src/model.rs")).unwrap();
    let (_, flaws) = planted.split_once("enum Flaw {").unwrap();
    let (flaws, _) = flaws.split_once('}').unwrap();
    let flaws: Vec<&str> = flaws
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .collect();
    assert!(flaws.len() >= 7);
    for flaw in flaws {
        assert!(
            page.contains(&format!("*{flaw}*")),
            "the page does not name {flaw}"
        );
        assert!(
            model.contains(&format!("_is_found {flaw}\n")),
            "no test finds {flaw}"
        );
    }
}

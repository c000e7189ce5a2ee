//! As much of Markdown as the checks need.

/// What a document holds.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    /// Targets of links and pictures.
    pub links: Vec<String>,
    /// Anchors of headings, as code hosts and mdBook make them.
    pub anchors: Vec<String>,
    /// Everything outside of code blocks, cut where code is quoted: text and code in turn, text first.
    pub paragraphs: Vec<Vec<String>>,
}

impl Page {
    /// Reads a document.
    pub fn parse(text: &str) -> Self {
        let mut page = Page::default();
        let (mut fenced, mut paragraph) = (false, String::new());
        for line in text.lines() {
            let fence = line.trim_start().starts_with("```");
            if fence || line.trim().is_empty() {
                page.paragraph(&std::mem::take(&mut paragraph));
            } else if !fenced {
                if let Some(title) = line.strip_prefix('#') {
                    page.heading(title.trim_start_matches('#'));
                }
                paragraph.push_str(line);
                paragraph.push('\n');
            }
            fenced ^= fence;
        }
        page.paragraph(&paragraph);
        page
    }

    fn heading(&mut self, title: &str) {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let slug: String =
            title.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let before = self
            .anchors
            .iter()
            .filter(|a| **a == slug || a.strip_prefix(&slug).is_some_and(numbered))
            .count();
        self.anchors.push(if before == 0 { slug } else { format!("{slug}-{before}") });
    }

    fn paragraph(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let parts: Vec<String> = text.split('`').map(|part| part.replace('\n', " ")).collect();
        let plain = parts.iter().step_by(2).cloned().collect::<String>();
        for (i, _) in plain.match_indices("](") {
            if let Some(end) = plain[i..].find(')') {
                self.links.push(plain[i + 2..i + end].to_string());
            }
        }
        self.paragraphs.push(parts);
    }
}

/// `-1` and so on, at the end of an anchor that is there twice.
fn numbered(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_headings_and_code_are_found() {
        let page = Page::parse(
            "# The `Model`, twice\n\nSee [`x`](a.md#b) and `[no](link)`\n![pic](p.svg)\n\n```\n# not a heading [no](c.md)\n```\n\n## The model twice\n",
        );
        assert_eq!(page.links, ["a.md#b", "p.svg"]);
        assert_eq!(page.anchors, ["the-model-twice", "the-model-twice-1"]);
        assert_eq!(page.paragraphs[1][1], "x");
        assert_eq!(page.paragraphs[1][3], "[no](link)");
    }
}

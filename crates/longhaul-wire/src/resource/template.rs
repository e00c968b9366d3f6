//! URI templates: the part of RFC 6570 that also works backwards, from a URI to the values of the variables.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::ResourceError;

/// The most variables that one template has.
pub const TEMPLATE_VARIABLES_MAX: usize = 16;

/// A URI with variables: `report://{year}/{month}`. A variable `{name}` stands for a part of a path and matches no `/`,
/// `?` or `#`; a variable `{+name}` matches these, too. Other operators of RFC 6570 are refused, because what they match
/// is ambiguous.
///
/// ```
/// use longhaul_wire::resource::UriTemplate;
///
/// let template = UriTemplate::parse("report://{year}/{+path}").unwrap();
/// let values = template.matches("report://2026/sales/north%20west").unwrap();
/// assert_eq!(values, [("year", "2026".to_owned()), ("path", "sales/north west".to_owned())]);
/// assert!(template.matches("report://2026").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Variable {
        name: String,
        /// Written as `{+name}`.
        spans_segments: bool,
    },
}

impl UriTemplate {
    pub fn parse(text: &str) -> Result<Self, ResourceError> {
        let wrong = |why| ResourceError::Template { template: text.to_owned(), why };
        let mut parts = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find(['{', '}']) {
            let (literal, expression) = rest.split_at(open);
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            } else if matches!(parts.last(), Some(TemplatePart::Variable { .. })) {
                return Err(wrong("two variables have nothing between them"));
            }
            let expression = expression.strip_prefix('{').ok_or_else(|| wrong("a `}` has no `{`"))?;
            let (inside, after) = expression.split_once('}').ok_or_else(|| wrong("a `{` has no `}`"))?;
            let (name, spans_segments) = match inside.strip_prefix('+') {
                Some(name) => (name, true),
                None => (inside, false),
            };
            let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
            if name.is_empty() || !name.bytes().all(is_name_byte) {
                return Err(wrong("a variable is written as {name} or {+name}, with letters, digits, `_` and `.`"));
            }
            if names.contains(&name) {
                return Err(wrong("a variable occurs twice"));
            }
            names.push(name);
            parts.push(TemplatePart::Variable { name: name.to_owned(), spans_segments });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        if names.is_empty() {
            return Err(wrong("it has no variable; declare a resource instead"));
        }
        if names.len() > TEMPLATE_VARIABLES_MAX {
            return Err(wrong("it has too many variables"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable { name, .. } => Some(name.as_str()),
            TemplatePart::Literal(_) => None,
        })
    }

    /// The values of the variables in a URI, decoded; `None` if the URI does not match. Every value has at least one
    /// character. If several divisions are possible, earlier variables are as short as they can be.
    pub fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        // For each part, whether a match of the parts before it can end at each byte. This takes one pass over the URI for
        // each part, whatever a client sends; trying all divisions in turn could take very long.
        let mut starts = vec![false; uri.len() + 1];
        starts[0] = true;
        let mut before = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let ends = part.ends(uri, &starts);
            before.push(std::mem::replace(&mut starts, ends));
        }
        let mut end = uri.len();
        if !starts[end] {
            return None;
        }
        let mut values = Vec::new();
        for (part, starts) in self.parts.iter().zip(&before).rev() {
            match part {
                TemplatePart::Literal(literal) => end -= literal.len(),
                TemplatePart::Variable { name, spans_segments } => {
                    let first = match uri[..end].rfind(is_separator).filter(|_| !spans_segments) {
                        Some(separator) => separator + 1,
                        None => 0,
                    };
                    let start = (first..end).find(|start| starts[*start])?;
                    let value = percent_decode_str(&uri[start..end]).decode_utf8().ok()?;
                    values.push((name.as_str(), value.into_owned()));
                    end = start;
                }
            }
        }
        values.reverse();
        Some(values)
    }
}

impl TemplatePart {
    /// Where the part can end if it can start where `starts` says.
    fn ends(&self, uri: &str, starts: &[bool]) -> Vec<bool> {
        let mut ends = vec![false; starts.len()];
        match self {
            Self::Literal(literal) => {
                for (start, _) in starts.iter().enumerate().filter(|(_, can_start)| **can_start) {
                    if uri.as_bytes()[start..].starts_with(literal.as_bytes()) {
                        ends[start + literal.len()] = true;
                    }
                }
            }
            Self::Variable { spans_segments, .. } => {
                let mut has_started = false;
                for (at, character) in uri.char_indices() {
                    has_started = (has_started || starts[at]) && (*spans_segments || !is_separator(character));
                    ends[at + character.len_utf8()] = has_started;
                }
            }
        }
        ends
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_separator(character: char) -> bool {
    matches!(character, '/' | '?' | '#')
}

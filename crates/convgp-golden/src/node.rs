//! A JSON value that knows where it stands in the file.

use crate::GoldenError;
use serde_json::Value;

type Result<T> = std::result::Result<T, GoldenError>;

/// A value and its path, such as `components[0].views`.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> Node<'a> {
    /// The whole file.
    pub fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// Where it stands.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn wrong(&self, expected: &str) -> GoldenError {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        GoldenError::field(&self.path, format!("should be {expected} but is {found}"))
    }

    fn child_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// The member `key`, which must be there.
    pub fn get(&self, key: &str) -> Result<Node<'a>> {
        if !self.value.is_object() {
            return Err(self.wrong("an object"));
        }
        self.find(key).ok_or_else(|| GoldenError::Missing { field: self.child_path(key) })
    }

    /// The member `key`, unless it is absent or null.
    pub fn find(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|v| !v.is_null())?;
        Some(Node { path: self.child_path(key), value })
    }

    /// The elements of a list.
    pub fn list(&self) -> Result<Vec<Node<'a>>> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list"))?;
        let node = |(i, value)| Node { path: format!("{}[{i}]", self.path), value };
        Ok(items.iter().enumerate().map(node).collect())
    }

    /// A list of `len` elements.
    pub fn list_of(&self, len: usize) -> Result<Vec<Node<'a>>> {
        let items = self.list()?;
        if items.len() != len {
            let problem = format!("has {} elements; expected {len}", items.len());
            return Err(GoldenError::field(&self.path, problem));
        }
        Ok(items)
    }

    /// A number.
    pub fn number(&self) -> Result<f64> {
        self.value.as_f64().ok_or_else(|| self.wrong("a number"))
    }

    /// A whole number that is not negative; `3.0` will do.
    pub fn whole(&self) -> Result<usize> {
        let x = self.number()?;
        // Beyond 2^53 neighbouring whole numbers are no longer distinct.
        if x >= 0.0 && x.fract() == 0.0 && x < 9e15 {
            return Ok(x as usize);
        }
        Err(GoldenError::field(&self.path, format!("is {x}; expected a whole number, not negative")))
    }

    /// True or false.
    pub fn truth(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// A string.
    pub fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// A list of numbers.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        self.list()?.iter().map(Node::number).collect()
    }

    /// Nested lists of exactly this shape, flattened with the last index fastest; no sizes at all mean one number. A
    /// number may stand in a list of its own: files write columns both as `N` and as `N x 1`.
    pub fn array(&self, shape: &[usize]) -> Result<Vec<f64>> {
        match shape {
            [] => match self.value.as_array().map(Vec::as_slice) {
                Some([Value::Number(_)]) => self.numbers(),
                _ => Ok(vec![self.number()?]),
            },
            [len, rest @ ..] => {
                let parts = self.list_of(*len)?;
                Ok(parts.iter().map(|p| p.array(rest)).collect::<Result<Vec<_>>>()?.concat())
            }
        }
    }

    /// Says what is wrong with a value of the right type.
    pub fn refuse(&self, problem: impl Into<String>) -> GoldenError {
        GoldenError::field(&self.path, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_the_field() {
        let value: Value = serde_json::from_str(r#"{"a": [{"b": [[1, 2], [3, "x"]]}], "n": 2.5}"#).unwrap();
        let root = Node::root(&value);
        let b = root.get("a").unwrap().list().unwrap()[0].get("b").unwrap();
        let message = |e: GoldenError| e.to_string();
        let wrong = message(b.array(&[2, 2]).unwrap_err());
        assert_eq!(wrong, "field `a[0].b[1][1]` should be a number but is a string");
        assert_eq!(message(b.array(&[3, 2]).unwrap_err()), "field `a[0].b` has 2 elements; expected 3");
        assert_eq!(message(root.get("c").unwrap_err()), "field `c` is missing");
        assert!(message(root.get("n").unwrap().whole().unwrap_err()).starts_with("field `n` is 2.5"));
        assert_eq!(root.get("n").unwrap().array(&[]).unwrap(), [2.5]);
        let column: Value = serde_json::from_str("[[1], [2]]").unwrap();
        assert_eq!(Node::root(&column).array(&[2]).unwrap(), [1.0, 2.0]);
        assert!(b.array(&[2]).is_err());
    }
}

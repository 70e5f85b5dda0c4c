//! The expressions of `if`, by GitHub's rules, as far as the workflows use them.
//! <https://docs.github.com/actions/reference/workflows-and-actions/expressions>

/// What an expression may ask about the run.
pub(crate) trait Context {
    /// Returns the value of a name such as `steps.build.outcome`.
    fn value(&self, name: &str) -> Value;
    /// Returns what a status function such as `success` says.
    fn status(&self, function: &str) -> bool;
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Text(String),
}

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Text(text) => !text.is_empty(),
        }
    }
}

/// Returns whether a step with this condition runs. A condition that names no status function
/// implies `success()`.
pub(crate) fn holds(condition: Option<&str>, context: &dyn Context) -> bool {
    let text = condition.unwrap_or("success()").trim();
    let text = text
        .strip_prefix("${{")
        .map_or(text, |rest| rest.trim_end_matches("}}"));
    let names_status = ["success()", "failure()", "cancelled()", "always()"]
        .iter()
        .any(|function| text.contains(function));
    let mut parser = Parser {
        rest: text.trim(),
        context,
    };
    let value = parser.any().is_true();
    assert_eq!(parser.rest, "", "not understood in {text}");
    value && (names_status || context.status("success"))
}

struct Parser<'a> {
    rest: &'a str,
    context: &'a dyn Context,
}

impl Parser<'_> {
    fn skip(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token).map(str::trim_start);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn any(&mut self) -> Value {
        let mut value = self.all();
        while self.skip("||") {
            let other = self.all();
            value = if value.is_true() { value } else { other };
        }
        value
    }

    fn all(&mut self) -> Value {
        let mut value = self.comparison();
        while self.skip("&&") {
            let other = self.comparison();
            value = if value.is_true() { other } else { value };
        }
        value
    }

    fn comparison(&mut self) -> Value {
        let value = self.operand();
        if self.skip("==") {
            return Value::Bool(value == self.operand());
        }
        if self.skip("!=") {
            return Value::Bool(value != self.operand());
        }
        value
    }

    fn operand(&mut self) -> Value {
        if self.skip("!") {
            return Value::Bool(!self.operand().is_true());
        }
        if self.skip("(") {
            let value = self.any();
            assert!(self.skip(")"), "no closing parenthesis: {}", self.rest);
            return value;
        }
        if let Some(text) = self.rest.strip_prefix('\'') {
            let (text, rest) = text.split_once('\'').expect("a closing quote");
            self.rest = rest.trim_start();
            return Value::Text(text.to_owned());
        }
        let end = self
            .rest
            .find(|char: char| !char.is_ascii_alphanumeric() && !"._-".contains(char))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if self.skip("()") {
            Value::Bool(self.context.status(name))
        } else {
            self.context.value(name)
        }
    }
}

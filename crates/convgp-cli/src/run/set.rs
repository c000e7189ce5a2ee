//! `--set model.components.0.kernel.lengthscale=2`: any field of a spec by its path.

use crate::support::exit::usage;
use anyhow::Result;
use convgp::train::ExperimentSpec;
use serde::Deserialize;
use toml::Value;

/// The spec with the fields set, one after the other.
pub fn apply(experiment: &ExperimentSpec, settings: &[String]) -> Result<ExperimentSpec> {
    if settings.is_empty() {
        return Ok(experiment.clone());
    }
    let mut tree = Value::try_from(experiment)?;
    for setting in settings {
        let wrong = |what: String| usage(format!("--set {setting}: {what}"));
        let (path, value) = setting.split_once('=').ok_or_else(|| wrong("expected FIELD=VALUE".into()))?;
        put(&mut tree, path.trim(), parse(value.trim())).map_err(wrong)?;
        // Each setting is checked by itself, so that the message is about the right one.
        ExperimentSpec::deserialize(tree.clone())
            .map_err(|e| wrong(e.to_string().trim().replace('\n', " ")))?;
    }
    Ok(ExperimentSpec::deserialize(tree)?)
}

/// A TOML value; what is none is a word.
fn parse(text: &str) -> Value {
    let document = toml::from_str::<toml::Table>(&format!("value = {text}"));
    document.ok().and_then(|mut t| t.remove("value")).unwrap_or_else(|| Value::String(text.into()))
}

/// Replaces or adds the value at the end of a path whose other parts must exist.
fn put(tree: &mut Value, path: &str, mut value: Value) -> Result<(), String> {
    let (parents, last) = path.rsplit_once('.').map_or((None, path), |(p, l)| (Some(p), l));
    let mut at = tree;
    let mut walked = String::from("the spec");
    for part in parents.into_iter().flat_map(|p| p.split('.')) {
        at = child(at, part, &walked)?;
        walked = if walked == "the spec" { part.into() } else { format!("{walked}.{part}") };
    }
    match at {
        Value::Table(table) => {
            // A field that is a fraction may be given as a whole number.
            if let (Some(Value::Float(_)), Value::Integer(i)) = (table.get(last), &value) {
                value = Value::Float(*i as f64);
            }
            table.insert(last.into(), value);
            Ok(())
        }
        list => {
            *child(list, last, &walked)? = value;
            Ok(())
        }
    }
}

fn child<'a>(value: &'a mut Value, part: &str, of: &str) -> Result<&'a mut Value, String> {
    match value {
        Value::Table(table) => {
            let known = table.keys().cloned().collect::<Vec<_>>().join(", ");
            table.get_mut(part).ok_or_else(|| format!("{of} has no field `{part}`; it has {known}"))
        }
        Value::Array(list) => {
            let count = list.len();
            let index = part.parse::<usize>().ok().filter(|&i| i < count);
            let index = index.ok_or_else(|| {
                format!("{of} is a list of {count}; `{part}` is no number from 0 to {}", count.max(1) - 1)
            })?;
            Ok(&mut list[index])
        }
        other => Err(format!("{of} is {other}, which has no fields; `{part}` was asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ExperimentSpec {
        let experiment = convgp_paper::Experiment::find("mnist-weighted-rbf").unwrap();
        experiment.spec(convgp_paper::Recipe::Paper).unwrap()
    }

    fn set(text: &str) -> Result<ExperimentSpec> {
        apply(&spec(), &[text.to_string()])
    }

    #[test]
    fn fields_are_reached_by_path() {
        assert_eq!(set("train.steps=7").unwrap().train.steps, 7);
        assert_eq!(set("train.adam.rate=1").unwrap().train.adam.rate, 1.0);
        let s = set("model.components.1.kernel.lengthscale=2").unwrap();
        assert_eq!(s.model.components[1].kernel.lengthscale(), Some(&convgp::kernel::Lengthscale::One(2.0)));
        assert_eq!(s.model.components[0], spec().model.components[0]);
        let s = set("model.components.0.kernel.type=matern32").unwrap();
        assert!(matches!(s.model.components[0].kernel, convgp::kernel::KernelSpec::Matern32(_)));
        let s = set("model.likelihood={ type = 'softmax', classes = 4 }").unwrap();
        assert_eq!(s.model.likelihood, convgp::likelihood::LikelihoodSpec::softmax(4));
        let s = set("train.adam.schedule={ type = 'constant' }").unwrap();
        assert_eq!(s.train.adam.schedule, convgp::optim::Schedule::Constant {});
    }

    #[test]
    fn mistakes_name_the_field_and_what_there_is() {
        for (text, words) in [
            ("train.stepps=7", &["train.stepps", "unknown field `stepps`", "`batch_size`"][..]),
            ("trian.steps=7", &["no field `trian`", "model, train"]),
            ("model.components.5.white=1", &["list of 2", "0 to 1"]),
            ("model.components.0.kernel.lenghtscale=1", &["unknown field `lenghtscale`", "`lengthscale`"]),
            ("train.steps=many", &["train.steps", "many"]),
            ("train.steps.x=1", &["train.steps is ", "`x`"]),
            ("model.components.0.weights=some", &["some", "`learned`"]),
            ("nonsense", &["FIELD=VALUE"]),
        ] {
            let error = set(text).unwrap_err();
            assert_eq!(crate::support::exit::Exit::of(&error), crate::support::exit::Exit::Usage);
            let error = error.to_string();
            assert!(words.iter().all(|w| error.contains(w)), "{text} gave: {error}");
        }
    }
}

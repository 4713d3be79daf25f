//! Sweeps: one job over many combinations of L, K and C, to draw the trade-off between privacy
//! and utility.

use std::collections::HashSet;

use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, Object, OneOfBuilder, Schema, SchemaType, Type};

use super::{Code, Problem};

/// Most combinations of one job.
pub const MOST_COMBINATIONS: usize = 64;

/// The parameters that take lists.
const PARAMETERS: [&str; 3] = ["l", "k", "c"];

/// What a job runs under: one combination, or as many as its lists make.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Whether any parameter is a list.
    pub is_sweep: bool,
    /// In the order of the lists, the last parameter running first.
    pub combinations: Vec<Combination>,
}

/// One value of each of L, K and C that the model takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination([Option<Value>; 3]);

impl Sweep {
    /// The combinations of a job as it was sent.
    ///
    /// # Errors
    /// `invalid_privacy` for a list that is empty or repeats itself and for too many
    /// combinations, with a pointer.
    pub fn of(definition: &Value) -> Result<Self, Problem> {
        let privacy = &definition["privacy"];
        let mut lists: Vec<Vec<Option<Value>>> = Vec::with_capacity(PARAMETERS.len());
        let mut is_sweep = false;
        for parameter in PARAMETERS {
            let Some(Value::Array(values)) = privacy.get(parameter) else {
                let value = privacy.get(parameter).filter(|value| !value.is_null());
                lists.push(vec![value.cloned()]);
                continue;
            };
            is_sweep = true;
            let refused =
                |detail: &str| Problem::at(Code::InvalidPrivacy, pointer(parameter), detail);
            if values.is_empty() {
                return Err(refused("a list of values to try holds at least one"));
            }
            let mut seen = HashSet::with_capacity(values.len());
            if !values.iter().all(|value| seen.insert(value.to_string())) {
                return Err(refused("a value stands twice in the list"));
            }
            lists.push(values.iter().cloned().map(Some).collect());
        }
        let count = lists.iter().map(Vec::len).fold(1, usize::saturating_mul);
        if count > MOST_COMBINATIONS {
            let detail = format!(
                "the lists make {count} combinations, more than the {MOST_COMBINATIONS} of one job"
            );
            return Err(Problem::at(Code::InvalidPrivacy, "/privacy", detail));
        }
        let mut combinations = Vec::with_capacity(count);
        for l in &lists[0] {
            for k in &lists[1] {
                for c in &lists[2] {
                    combinations.push(Combination([l.clone(), k.clone(), c.clone()]));
                }
            }
        }
        Ok(Self {
            is_sweep,
            combinations,
        })
    }

    /// The number of the one combination that has these values; a value that is left out fits
    /// any.
    ///
    /// # Errors
    /// `invalid_job` where none has them, or more than one, with a pointer to a value to give.
    pub fn find(&self, wanted: [Option<f64>; 3]) -> Result<usize, Problem> {
        let fits = |combination: &Combination| {
            let pairs = combination.0.iter().zip(wanted);
            pairs.into_iter().all(|(value, wanted)| {
                wanted.is_none() || wanted == value.as_ref().and_then(Value::as_f64)
            })
        };
        let mut found = (0..self.combinations.len()).filter(|&n| fits(&self.combinations[n]));
        match (found.next(), found.next()) {
            (Some(number), None) => Ok(number),
            (None, _) => Err(Problem::new(
                Code::InvalidJob,
                "the job has no combination with these `l`, `k` and `c`; its `sweep` lists them",
            )),
            (Some(_), Some(_)) => {
                let open = (0..3).find(|&n| wanted[n].is_none() && self.varies(n));
                let parameter = PARAMETERS[open.unwrap_or(0)];
                Err(Problem::at(
                    Code::InvalidJob,
                    format!("/{parameter}"),
                    format!("the job has several combinations; say which by `{parameter}`"),
                ))
            }
        }
    }

    fn varies(&self, parameter: usize) -> bool {
        let mut values = self.combinations.iter().map(|one| &one.0[parameter]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    }
}

impl Combination {
    /// *L*, *K* and *C*, each where the model takes it.
    pub fn values(&self) -> [Option<&Value>; 3] {
        self.0.each_ref().map(Option::as_ref)
    }

    /// The job under this combination alone.
    pub fn apply(&self, definition: &Value) -> Value {
        let mut definition = definition.clone();
        for (parameter, value) in PARAMETERS.into_iter().zip(&self.0) {
            if let Some(value) = value {
                definition["privacy"][parameter] = json!(value);
            }
        }
        definition
    }
}

/// Where the first list of a job stands.
pub fn first_list(definition: &Value) -> Option<String> {
    let lists = PARAMETERS.into_iter();
    let mut lists = lists.filter(|parameter| definition["privacy"][parameter].is_array());
    lists.next().map(pointer)
}

/// The schema of a parameter that is a whole number, or a list of those to try.
pub fn whole_or_list() -> Schema {
    or_list(Type::Integer)
}

/// The schema of a parameter that is a fraction, or a list of those to try.
pub fn fraction_or_list() -> Schema {
    or_list(Type::Number)
}

fn or_list(kind: Type) -> Schema {
    let one = Object::with_type(SchemaType::Type(kind));
    let list = ArrayBuilder::new().items(one.clone());
    OneOfBuilder::new()
        .item(one)
        .item(list)
        .item(Object::with_type(SchemaType::Type(Type::Null)))
        .build()
        .into()
}

fn pointer(parameter: &str) -> String {
    format!("/privacy/{parameter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(l: Value, k: Value) -> Result<Sweep, Problem> {
        Sweep::of(&json!({ "privacy": { "model": "lkc", "l": l, "k": k, "c": 0.5 } }))
    }

    #[test]
    fn a_job_without_lists_is_one_combination() {
        let one = sweep(json!(2), json!(20)).unwrap();
        assert!(!one.is_sweep);
        assert_eq!(one.combinations.len(), 1);
        assert_eq!(one.find([None; 3]), Ok(0));
        assert_eq!(one.find([Some(2.0), None, Some(0.5)]), Ok(0));
        assert!(one.find([Some(3.0), None, None]).is_err());
    }

    #[test]
    fn lists_are_combined_each_with_each() {
        let four = sweep(json!([2, 4]), json!([20, 100])).unwrap();
        assert!(four.is_sweep);
        let job = json!({ "privacy": { "l": [2, 4], "k": [20, 100], "c": 0.5 }, "seed": 1 });
        let third = four.combinations[2].apply(&job);
        assert_eq!(
            third,
            json!({ "privacy": { "l": 4, "k": 20, "c": 0.5 }, "seed": 1 })
        );
        assert_eq!(four.find([Some(4.0), Some(20.0), None]), Ok(2));
        let open = four.find([Some(4.0), None, None]).unwrap_err();
        assert_eq!(open.errors[0].pointer.as_deref(), Some("/k"));
    }

    #[test]
    fn lists_that_make_no_sense_are_refused() {
        let many: Vec<u32> = (1..=65).collect();
        for (list, pointer) in [
            (json!([]), "/privacy/k"),
            (json!([2, 3, 2]), "/privacy/k"),
            (json!(many), "/privacy"),
        ] {
            let refused = sweep(json!(2), list).unwrap_err();
            assert_eq!(refused.code, Code::InvalidPrivacy);
            assert_eq!(refused.errors[0].pointer.as_deref(), Some(pointer));
        }
        assert!(sweep(json!([1, 2, 3, 4]), json!((1..=16).collect::<Vec<_>>())).is_ok());
    }
}

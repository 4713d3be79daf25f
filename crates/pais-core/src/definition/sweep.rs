//! Sweeps: one job over several combinations of L, K and C, to draw the trade-off between privacy
//! and utility.

use serde_json::Number;

use super::{JobDefinition, JobError, JobErrorKind, OneOrMany};

/// Most combinations of one job.
pub const MOST_COMBINATIONS: usize = 64;

/// The parameters that take lists, in the order in which combinations vary them.
const PARAMETERS: [&str; 3] = ["l", "k", "c"];

/// The combinations of a job: one, or the product of its lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Whether any parameter is a list.
    pub is_sweep: bool,
    /// In the order of the lists; the last parameter varies fastest.
    pub combinations: Vec<Combination>,
}

/// One value of each of L, K and C, each where the model takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// *L*.
    pub l: Option<Number>,
    /// *K*.
    pub k: Option<i64>,
    /// *C*.
    pub c: Option<f64>,
}

/// Which combination is meant; a parameter that is left out matches any value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CombinationQuery {
    /// *L*.
    pub l: Option<f64>,
    /// *K*.
    pub k: Option<f64>,
    /// *C*.
    pub c: Option<f64>,
}

impl Sweep {
    /// The combinations of a job.
    ///
    /// # Errors
    /// [`JobErrorKind::OutOfRange`] with a pointer for an empty list, a repeated value, and more
    /// than [`MOST_COMBINATIONS`] combinations.
    pub fn new(job: &JobDefinition) -> Result<Self, JobError> {
        let privacy = &job.privacy;
        let ls = values("l", &privacy.l)?;
        let ks = values("k", &privacy.k)?;
        let cs = values("c", &privacy.c)?;
        let count = ls.len().saturating_mul(ks.len()).saturating_mul(cs.len());
        if count > MOST_COMBINATIONS {
            let detail = format!(
                "the lists make {count} combinations, more than the {MOST_COMBINATIONS} of one \
                 job; shorten them"
            );
            return Err(JobError::at(JobErrorKind::OutOfRange, "/privacy", detail));
        }
        let mut combinations = Vec::with_capacity(count);
        for l in &ls {
            for k in &ks {
                for c in &cs {
                    combinations.push(Combination {
                        l: l.clone(),
                        k: *k,
                        c: *c,
                    });
                }
            }
        }
        Ok(Self {
            is_sweep: first_list(job).is_some(),
            combinations,
        })
    }

    /// The index of the one combination that matches.
    ///
    /// # Errors
    /// [`JobErrorKind::Unfit`] where none matches, or more than one, with a pointer to a value to
    /// give.
    pub fn find(&self, wanted: CombinationQuery) -> Result<usize, JobError> {
        let wanted = [wanted.l, wanted.k, wanted.c];
        let fits = |combination: &Combination| {
            let pairs = combination.numbers().into_iter().zip(wanted);
            pairs
                .into_iter()
                .all(|(value, wanted)| wanted.is_none() || wanted == value)
        };
        let mut found = (0..self.combinations.len()).filter(|&n| fits(&self.combinations[n]));
        match (found.next(), found.next()) {
            (Some(number), None) => Ok(number),
            (None, _) => Err(JobError::new(
                JobErrorKind::Unfit,
                "the job has no combination with these `l`, `k` and `c`; its `sweep` lists them",
            )),
            (Some(_), Some(_)) => {
                let open = (0..3).find(|&n| wanted[n].is_none() && self.varies(n));
                let parameter = PARAMETERS[open.unwrap_or(0)];
                Err(JobError::at(
                    JobErrorKind::Unfit,
                    format!("/{parameter}"),
                    format!("the job has several combinations; choose one by `{parameter}`"),
                ))
            }
        }
    }

    fn varies(&self, parameter: usize) -> bool {
        let mut values = self.combinations.iter().map(|one| one.numbers()[parameter]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    }
}

impl Combination {
    /// The job under this combination alone.
    pub fn apply(&self, job: &JobDefinition) -> JobDefinition {
        let mut job = job.clone();
        job.privacy.l = self.l.clone().map(OneOrMany::One);
        job.privacy.k = self.k.map(OneOrMany::One);
        job.privacy.c = self.c.map(OneOrMany::One);
        job
    }

    fn numbers(&self) -> [Option<f64>; 3] {
        let l = self.l.as_ref().and_then(Number::as_f64);
        [l, self.k.map(|k| k as f64), self.c]
    }
}

/// A pointer to the first list of a job; `None` where it has none.
pub fn first_list(job: &JobDefinition) -> Option<String> {
    let privacy = &job.privacy;
    let lists = [
        privacy.l.as_ref().is_some_and(|l| l.many().is_some()),
        privacy.k.as_ref().is_some_and(|k| k.many().is_some()),
        privacy.c.as_ref().is_some_and(|c| c.many().is_some()),
    ];
    let first = lists.into_iter().position(|is_list| is_list)?;
    Some(pointer(PARAMETERS[first]))
}

fn values<T: Clone + PartialEq>(
    parameter: &str,
    given: &Option<OneOrMany<T>>,
) -> Result<Vec<Option<T>>, JobError> {
    let refused = |detail: &str| JobError::at(JobErrorKind::OutOfRange, pointer(parameter), detail);
    let values = match given {
        None => return Ok(vec![None]),
        Some(OneOrMany::One(value)) => return Ok(vec![Some(value.clone())]),
        Some(OneOrMany::Many(values)) => values,
    };
    if values.is_empty() {
        return Err(refused(
            "the list of values to try is empty; give at least one",
        ));
    }
    // Comparing each with each is cheap only for lists that can be used.
    let compared = &values[..values.len().min(MOST_COMBINATIONS + 1)];
    if (1..compared.len()).any(|n| compared[..n].contains(&compared[n])) {
        return Err(refused("the list has a value twice; remove one"));
    }
    Ok(values.iter().cloned().map(Some).collect())
}

fn pointer(parameter: &str) -> String {
    format!("/privacy/{parameter}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(l: Value, k: Value) -> JobDefinition {
        let privacy = json!({ "model": "lkc", "l": l, "k": k, "c": 0.5 });
        serde_json::from_value(json!({ "privacy": privacy, "seed": 1 })).unwrap()
    }

    fn query(l: Option<f64>, k: Option<f64>, c: Option<f64>) -> CombinationQuery {
        CombinationQuery { l, k, c }
    }

    #[test]
    fn a_job_without_lists_is_one_combination() {
        let one = Sweep::new(&job(json!(2), json!(20))).unwrap();
        assert!(!one.is_sweep);
        assert_eq!(one.combinations.len(), 1);
        assert_eq!(one.find(CombinationQuery::default()), Ok(0));
        assert_eq!(one.find(query(Some(2.0), None, Some(0.5))), Ok(0));
        assert!(one.find(query(Some(3.0), None, None)).is_err());
    }

    #[test]
    fn lists_are_combined_each_with_each() {
        let lists = job(json!([2, 4]), json!([20, 100]));
        let four = Sweep::new(&lists).unwrap();
        assert!(four.is_sweep);
        let third = four.combinations[2].apply(&lists);
        assert_eq!(third, job(json!(4), json!(20)));
        assert_eq!(four.find(query(Some(4.0), Some(20.0), None)), Ok(2));
        let open = four.find(query(Some(4.0), None, None)).unwrap_err();
        assert_eq!(open.faults[0].pointer(), Some("/k"));
    }

    #[test]
    fn useless_lists_are_refused() {
        let many: Vec<u32> = (1..=65).collect();
        for (list, pointer) in [
            (json!([]), "/privacy/k"),
            (json!([2, 3, 2]), "/privacy/k"),
            (json!(many), "/privacy"),
        ] {
            let refused = Sweep::new(&job(json!(2), list)).unwrap_err();
            assert_eq!(refused.kind, JobErrorKind::OutOfRange);
            assert_eq!(refused.faults[0].pointer(), Some(pointer));
        }
        let sixteen: Vec<u32> = (1..=16).collect();
        assert!(Sweep::new(&job(json!([1, 2, 3, 4]), json!(sixteen))).is_ok());
    }
}

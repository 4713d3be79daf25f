//! Sweeps: one job over several combinations of L, K, C, recodings and objectives, to draw the
//! trade-off between privacy and utility.

use serde_json::Number;

use super::{JobDefinition, JobError, JobErrorKind, Objective, OneOrMany, Recoding};

/// Maximum number of combinations of one job.
pub const MOST_COMBINATIONS: usize = 64;

/// The parameters that take lists, in the order in which combinations vary them.
const PARAMETERS: [&str; 5] = ["l", "k", "c", "recoding", "objective"];

/// Their pointers in a job.
const POINTERS: [&str; 5] = [
    "/privacy/l",
    "/privacy/k",
    "/privacy/c",
    "/recoding",
    "/utility/objective",
];

/// The combinations of a job: one, or the product of its lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Whether any parameter is a list.
    pub is_sweep: bool,
    /// In the order of the lists; the last parameter varies fastest.
    pub combinations: Vec<Combination>,
}

/// One value of each parameter that takes lists, if the job gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// *L*.
    pub l: Option<Number>,
    /// *K*.
    pub k: Option<i64>,
    /// *C*.
    pub c: Option<f64>,
    /// One cut for the whole table, or groups.
    pub recoding: Option<Recoding>,
    /// What guides the search.
    pub objective: Option<Objective>,
}

/// Which combination is meant; a parameter that is left out matches any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct CombinationQuery {
    /// *L* of the combination.
    pub l: Option<f64>,
    /// *K* of the combination.
    pub k: Option<f64>,
    /// *C* of the combination.
    pub c: Option<f64>,
    /// Recoding of the combination.
    pub recoding: Option<Recoding>,
    /// Objective of the combination.
    pub objective: Option<Objective>,
}

impl Sweep {
    /// The combinations of a job.
    ///
    /// # Errors
    /// [`JobErrorKind::OutOfRange`] with a pointer for an empty list, a repeated value, and more
    /// than [`MOST_COMBINATIONS`] combinations.
    pub fn new(job: &JobDefinition) -> Result<Self, JobError> {
        let privacy = &job.privacy;
        let ls = values(0, &privacy.l)?;
        let ks = values(1, &privacy.k)?;
        let cs = values(2, &privacy.c)?;
        let recodings = values(3, &job.recoding)?;
        let objectives = job.utility.as_ref().and_then(|it| it.objective.clone());
        let objectives = values(4, &objectives)?;
        let sizes = [
            ls.len(),
            ks.len(),
            cs.len(),
            recodings.len(),
            objectives.len(),
        ];
        let count = sizes.into_iter().fold(1usize, usize::saturating_mul);
        if count > MOST_COMBINATIONS {
            let detail = format!(
                "the lists make {count} combinations, more than the {MOST_COMBINATIONS} of one \
                 job; shorten them"
            );
            return Err(JobError::at(JobErrorKind::OutOfRange, "/privacy", detail));
        }
        // The index of a combination is a mixed-radix number with one digit per parameter.
        let combination = |number: usize| {
            let mut rest = number;
            let mut digit = |size: usize| {
                let digit = rest % size;
                rest /= size;
                digit
            };
            let objective = objectives[digit(objectives.len())];
            let recoding = recodings[digit(recodings.len())];
            let c = cs[digit(cs.len())];
            let k = ks[digit(ks.len())];
            let l = ls[digit(ls.len())].clone();
            Combination {
                l,
                k,
                c,
                recoding,
                objective,
            }
        };
        let combinations = (0..count).map(combination).collect();
        Ok(Self {
            is_sweep: first_list(job).is_some(),
            combinations,
        })
    }

    /// The index of the one combination that matches.
    ///
    /// # Errors
    /// [`JobErrorKind::Unfit`] if no combination matches,
    /// or several do; the message names a parameter to give.
    pub fn find(&self, wanted: CombinationQuery) -> Result<usize, JobError> {
        let wanted = [
            wanted.l.map(Value::Number),
            wanted.k.map(Value::Number),
            wanted.c.map(Value::Number),
            wanted.recoding.map(Value::Recoding),
            wanted.objective.map(Value::Objective),
        ];
        let fits = |combination: &Combination| {
            let mut pairs = combination.values().into_iter().zip(wanted);
            pairs.all(|(value, wanted)| wanted.is_none() || wanted == value)
        };
        let mut found = (0..self.combinations.len()).filter(|&n| fits(&self.combinations[n]));
        match (found.next(), found.next()) {
            (Some(number), None) => Ok(number),
            (None, _) => Err(JobError::new(
                JobErrorKind::Unfit,
                "the job has no combination with these parameters; its `sweep` lists them",
            )),
            (Some(_), Some(_)) => {
                let open = (0..PARAMETERS.len()).find(|&n| wanted[n].is_none() && self.varies(n));
                let parameter = PARAMETERS[open.unwrap_or(0)];
                Err(JobError::new(
                    JobErrorKind::Unfit,
                    format!("the job has several combinations; choose one by `{parameter}`"),
                ))
            }
        }
    }

    fn varies(&self, parameter: usize) -> bool {
        let mut values = self.combinations.iter().map(|one| one.values()[parameter]);
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
        job.recoding = self.recoding.map(OneOrMany::One);
        if let Some(utility) = &mut job.utility {
            utility.objective = self.objective.map(OneOrMany::One);
        }
        job
    }

    /// In the order of the parameters.
    fn values(&self) -> [Option<Value>; PARAMETERS.len()] {
        let l = self.l.as_ref().and_then(Number::as_f64);
        [
            l.map(Value::Number),
            self.k.map(|k| Value::Number(k as f64)),
            self.c.map(Value::Number),
            self.recoding.map(Value::Recoding),
            self.objective.map(Value::Objective),
        ]
    }
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Number(f64),
    Recoding(Recoding),
    Objective(Objective),
}

/// A pointer to the first list of a job; `None` if it has none.
pub fn first_list(job: &JobDefinition) -> Option<String> {
    let privacy = &job.privacy;
    let objective = job.utility.as_ref().and_then(|it| it.objective.as_ref());
    let lists = [
        privacy.l.as_ref().is_some_and(|l| l.many().is_some()),
        privacy.k.as_ref().is_some_and(|k| k.many().is_some()),
        privacy.c.as_ref().is_some_and(|c| c.many().is_some()),
        job.recoding.as_ref().is_some_and(|it| it.many().is_some()),
        objective.is_some_and(|it| it.many().is_some()),
    ];
    let first = lists.into_iter().position(|is_list| is_list)?;
    Some(POINTERS[first].to_owned())
}

fn values<T: Clone + PartialEq>(
    parameter: usize,
    given: &Option<OneOrMany<T>>,
) -> Result<Vec<Option<T>>, JobError> {
    let refused =
        |detail: &str| JobError::at(JobErrorKind::OutOfRange, POINTERS[parameter], detail);
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
    // Pairwise comparison is cheap only for lists within the limit.
    let compared = &values[..values.len().min(MOST_COMBINATIONS + 1)];
    if (1..compared.len()).any(|n| compared[..n].contains(&compared[n])) {
        return Err(refused("the list has a value twice; remove one"));
    }
    Ok(values.iter().cloned().map(Some).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        Combination, CombinationQuery, JobDefinition, JobErrorKind, Objective, Recoding, Sweep,
    };

    fn job(l: Value, k: Value) -> JobDefinition {
        let privacy = json!({ "model": "lkc", "l": l, "k": k, "c": 0.5 });
        serde_json::from_value(json!({ "privacy": privacy, "seed": 1 })).unwrap()
    }

    fn query(l: Option<f64>, k: Option<f64>, c: Option<f64>) -> CombinationQuery {
        CombinationQuery {
            l,
            k,
            c,
            ..CombinationQuery::default()
        }
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
        assert!(open.detail.ends_with("choose one by `k`"), "{open}");
    }

    #[test]
    fn recodings_and_objectives_are_combined_too() {
        let lists: JobDefinition = serde_json::from_value(json!({
            "privacy": {"model": "lkc", "l": 2, "k": [5, 10], "c": 0.5},
            "recoding": ["global", "local"],
            "utility": {"objective": ["ncp", "discernibility"]},
        }))
        .unwrap();
        let eight = Sweep::new(&lists).unwrap();
        assert_eq!((eight.is_sweep, eight.combinations.len()), (true, 8));
        let shown = |it: &Combination| (it.k, it.recoding, it.objective);
        let of = |number: usize| shown(&eight.combinations[number]);
        let (global, local) = (Some(Recoding::Global), Some(Recoding::Local));
        let (ncp, dr) = (Some(Objective::Ncp), Some(Objective::Discernibility));
        assert_eq!(
            [of(0), of(1)],
            [(Some(5), global, ncp), (Some(5), global, dr)]
        );
        assert_eq!(
            [of(2), of(7)],
            [(Some(5), local, ncp), (Some(10), local, dr)]
        );
        let applied = eight.combinations[3].apply(&lists);
        let applied = applied.parse().unwrap();
        assert_eq!((applied.recoding, applied.objective), (local, dr));
        let pointer = lists.parse().unwrap_err().faults[0]
            .pointer()
            .map(str::to_owned);
        assert_eq!(pointer.as_deref(), Some("/recoding"));
        let mut wanted = query(None, Some(10.0), None);
        wanted.recoding = local;
        let open = eight.find(wanted).unwrap_err();
        assert!(open.detail.ends_with("choose one by `objective`"), "{open}");
        wanted.objective = ncp;
        assert_eq!(eight.find(wanted), Ok(6));
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

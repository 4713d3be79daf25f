//! The statements of the papers about their figures, compared with ours.

use super::{TRADITIONAL, named};
use crate::axis::Axis;
use crate::measured::{MeasuredSeries, range, shown};
use crate::plan::Claim;

/// The values of a series.
pub(super) fn level(name: &'static str, paper: &'static str) -> Claim {
    Claim::new(name, paper, move |found| range(found.named(name)?.values()))
}

/// CE - BE over some *L*.
pub(super) fn cost(l: &'static [usize], paper: &'static str) -> Claim {
    difference("CE - BE", l, paper)
}

/// UE - CE over some *L*.
pub(super) fn benefit(l: &'static [usize], paper: &'static str) -> Claim {
    difference("UE - CE", l, paper)
}

fn difference(of: &'static str, l: &'static [usize], paper: &'static str) -> Claim {
    Claim::new(format!("{of}, {}", listed(l)), paper, move |found| {
        let series = l
            .iter()
            .filter_map(|l| found.named(&format!("{of}, L = {l}")));
        Some(range(series.flat_map(MeasuredSeries::values))? + " points")
    })
}

/// DR over some *L*.
pub(super) fn dr(l: &'static [usize], paper: &'static str) -> Claim {
    Claim::new(format!("DR, {}", listed(l)), paper, move |found| {
        let series = l.iter().filter_map(|&l| found.named(&named(l)));
        range(series.flat_map(MeasuredSeries::values))
    })
}

/// The greatest value over *C* divided by the smallest one, for each *L*.
pub(super) fn effect_of_c(of: &'static str, l: &[usize]) -> Vec<Claim> {
    let one = |&l: &usize| {
        let what = format!("greatest {of} / least {of} over C, {}", named(l));
        Claim::new(what, "about 1: insensitive", move |found| {
            let values = || found.named(&named(l)).map(MeasuredSeries::values);
            let greatest = values()?.fold(f64::MIN_POSITIVE, f64::max);
            let least = values()?.fold(f64::INFINITY, f64::min);
            least.is_finite().then(|| shown(greatest / least))
        })
    };
    l.iter().map(one).collect()
}

/// DR of traditional k-anonymity minus ours, for each *L*.
pub(super) fn over_traditional(l: &[usize]) -> Vec<Claim> {
    let one = |&l: &usize| {
        let what = format!("DR of k-anonymity - DR, {}", named(l));
        Claim::new(what, "0.1 to 0.45 over all L", move |found| {
            let traditional = found.named(TRADITIONAL)?;
            range(traditional.minus(found.named(&named(l))?))
        })
    };
    l.iter().map(one).collect()
}

/// CE - BE of each way, for each *L*.
pub(super) fn costs_by_way(l: &[usize]) -> Vec<Claim> {
    let one = |&l: &usize| {
        let paper = if l == 2 {
            "less than 1 point"
        } else {
            "1.1 to 4.1 points"
        };
        let (greedy, thorough) = (format!("greedy, L = {l}"), format!("thorough, L = {l}"));
        let what = format!("CE - BE, L = {l}");
        Claim::new(what, paper, move |found| {
            let cost = |way: &str| range(found.named(&format!("CE - BE, {way}"))?.values());
            Some(format!(
                "greedy {}, thorough {}, local {} points",
                cost(&greedy)?,
                cost(&thorough)?,
                cost("local, any L")?
            ))
        })
    };
    l.iter().map(one).collect()
}

/// The value of a series at a place of an axis.
pub(super) fn value(
    name: &'static str,
    axis: Axis,
    x: f64,
    unit: &'static str,
    paper: &'static str,
) -> Claim {
    let place = match axis.names.get(x as usize) {
        Some(name) => (*name).to_owned(),
        None => shown(x),
    };
    Claim::new(format!("{name}, {place}"), paper, move |found| {
        Some(range(found.named(name)?.at(x))? + unit)
    })
}

fn listed(l: &[usize]) -> String {
    let numbers: Vec<String> = l.iter().map(usize::to_string).collect();
    format!("L = {}", numbers.join(" and "))
}

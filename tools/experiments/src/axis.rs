//! The axes of a figure.

/// An axis.
#[derive(Clone, Copy)]
pub(crate) struct Axis {
    /// Its label, with the unit.
    pub label: &'static str,
    /// What a measured value is multiplied by.
    pub times: f64,
    /// Whether its scale is logarithmic.
    pub logarithmic: bool,
    /// The names of the places 0, 1, 2, ..., where the axis has names instead of numbers.
    pub names: &'static [&'static str],
}

impl Axis {
    pub(crate) const fn new(label: &'static str) -> Self {
        Self {
            label,
            times: 1.0,
            logarithmic: false,
            names: &[],
        }
    }

    /// For shares that are shown in percent.
    pub(crate) const fn percent(label: &'static str) -> Self {
        let mut axis = Self::new(label);
        axis.times = 100.0;
        axis
    }

    pub(crate) const fn logarithmic(label: &'static str) -> Self {
        let mut axis = Self::new(label);
        axis.logarithmic = true;
        axis
    }

    pub(crate) const fn named(label: &'static str, names: &'static [&'static str]) -> Self {
        let mut axis = Self::new(label);
        axis.names = names;
        axis
    }
}

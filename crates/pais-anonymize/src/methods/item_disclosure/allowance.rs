//! How much work the refinement of a greedy result may cost, counted in steps, so that it does not
//! depend on the machine.

/// Steps of the refinement of a greedy result: some tenths of a second at most.
const OF_GREEDY: u64 = 1 << 24;

/// A number of steps that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance(u64);

impl Allowance {
    /// The steps that a greedy search may take beyond the published algorithm.
    pub(super) fn of_greedy() -> Self {
        Self(OF_GREEDY)
    }

    /// No limit in steps.
    pub(super) fn unlimited() -> Self {
        Self(u64::MAX)
    }

    /// Whether so many steps are left.
    pub(super) fn covers(self, steps: u64) -> bool {
        steps <= self.0
    }

    /// Takes so many steps if they are left.
    pub(super) fn take(&mut self, steps: u64) -> bool {
        let covered = self.covers(steps);
        if covered && self.0 < u64::MAX {
            self.0 -= steps;
        }
        covered
    }

    /// A part of it, for one purpose.
    pub(super) fn share(self, of: u64) -> Self {
        match self.0 {
            u64::MAX => self,
            left => Self(left / of),
        }
    }
}

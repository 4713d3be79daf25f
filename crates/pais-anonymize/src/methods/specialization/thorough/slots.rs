//! Small numbers for the keys that occur, without clearing a table between uses.

/// Numbers keys in the order in which they occur.
#[derive(Default)]
pub(super) struct Slots {
    /// By key, the use that numbered it and its number.
    numbered: Vec<(u32, u32)>,
    current: u32,
    count: u32,
}

impl Slots {
    /// Begins a new use with keys below `keys`.
    pub(super) fn begin(&mut self, keys: usize) {
        if self.numbered.len() < keys {
            self.numbered.resize(keys, (0, 0));
        }
        if self.current == u32::MAX {
            self.numbered.fill((0, 0));
            self.current = 0;
        }
        self.current += 1;
        self.count = 0;
    }

    /// The number of a key, and whether this is its first occurrence.
    #[inline]
    pub(super) fn number(&mut self, key: usize) -> (u32, bool) {
        let entry = &mut self.numbered[key];
        let is_new = entry.0 != self.current;
        if is_new {
            *entry = (self.current, self.count);
            self.count += 1;
        }
        (entry.1, is_new)
    }

    /// Number of keys that occurred.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }
}

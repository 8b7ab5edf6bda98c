//! Numbers of a seed: the same seed throws the same for ever.

#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Of a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number (splitmix64: every seed is a good one, 0 as well).
    pub const fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to one less than this.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.throw() % bound
    }

    /// One of a list.
    pub fn of_these<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

//! Changed copies of the fuzz targets' seeds.
//!
//! In: seeds, a dictionary, a number. Out: the same inputs for the same number. Each is a seed with a few small
//! changes: bits, bytes, words of the dictionary, parts cut out, doubled or taken from another seed. Deliberately
//! absent: code coverage of an input; libFuzzer measures that (`cargo xtask fuzz`).
#![forbid(unsafe_code)]

/// No input is longer.
const BYTES_MAX: usize = 8_192;

/// At most this many changes to one seed.
const CHANGES_MAX: u64 = 6;

/// Pseudo-random numbers (xorshift64*): the same for the same seed, on every machine.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Those of a seed and a name.
    #[must_use]
    pub fn of(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |state, byte| {
            (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mixed | 1)
    }

    /// The next one below a bound; 0 where the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        if bound == 0 { 0 } else { (number >> 11) % bound }
    }

    /// The next place in something of that length.
    fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }
}

/// The parts that inputs are made of.
#[derive(Clone, Debug, Default)]
pub struct Material {
    pub seeds: Vec<Vec<u8>>,
    /// Tokens that parsers know.
    pub words: Vec<Vec<u8>>,
}

impl Material {
    /// One changed copy of a seed.
    pub fn input(&self, numbers: &mut Numbers) -> Vec<u8> {
        let mut input = self.seeds.get(numbers.place(self.seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=numbers.below(CHANGES_MAX) {
            self.change(&mut input, numbers);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>, numbers: &mut Numbers) {
        let at = numbers.place(input.len() + 1);
        match numbers.below(7) {
            0 => {
                let bit = 1_u8 << numbers.below(8);
                input.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
            }
            1 => {
                let other = u8::try_from(numbers.below(256)).unwrap_or_default();
                input.get_mut(at).into_iter().for_each(|byte| *byte = other);
            }
            2 => {
                let word = self.words.get(numbers.place(self.words.len())).cloned().unwrap_or_default();
                insert(input, at, &word);
            }
            3 => {
                let word = self.words.get(numbers.place(self.words.len())).cloned().unwrap_or_default();
                let end = (at + word.len()).min(input.len());
                input.splice(at.min(end)..end, word);
            }
            4 => {
                let end = (at + 1 + numbers.place(32)).min(input.len());
                input.drain(at.min(end)..end);
            }
            5 => {
                let end = (at + 1 + numbers.place(64)).min(input.len());
                let part = input.get(at..end).unwrap_or_default().to_vec();
                insert(input, end, &part);
            }
            _ => {
                let other = self.seeds.get(numbers.place(self.seeds.len())).cloned().unwrap_or_default();
                let from = numbers.place(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
    }
}

fn insert(input: &mut Vec<u8>, at: usize, part: &[u8]) {
    let at = at.min(input.len());
    input.splice(at..at, part.iter().copied());
}

/// The entries of a libFuzzer dictionary: one in quotes a line, with `\\`, `\"` and `\xAB`.
#[must_use]
pub fn words(dictionary: &str) -> Vec<Vec<u8>> {
    let quoted = |line: &str| Some(line.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    dictionary.lines().filter_map(|line| quoted(line.trim())).map(|word| unescaped(&word)).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), word.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let (byte, used) = match (first, after) {
            (b'\\', [b'x', one, two, ..]) => (hex(&[*one, *two]).unwrap_or(b'x'), 4),
            (b'\\', [escaped, ..]) => (*escaped, 2),
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = rest.get(used..).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_inputs_and_they_differ() {
        let material =
            Material { seeds: vec![b"{\"a\":1}".to_vec(), Vec::new()], words: vec![b"null".to_vec()] };
        let all = |seed| -> Vec<Vec<u8>> {
            let mut numbers = Numbers::of(seed, "x");
            (0..200).map(|_| material.input(&mut numbers)).collect()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        let distinct: std::collections::BTreeSet<_> = all(1).into_iter().collect();
        assert!(distinct.len() > 100, "{}", distinct.len());
    }

    #[test]
    fn a_dictionary_is_read() {
        assert_eq!(
            words("# no\n\"a\\\"b\"\nname=no\n\"\\x00z\\\\\"\n"),
            [b"a\"b".to_vec(), b"\0z\\".to_vec()]
        );
    }
}

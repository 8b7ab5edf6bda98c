//! The path of a mistake in a document that a parser refused.
//!
//! The parser's own position is often later than the mistake: a value that a type refuses after its reading has none,
//! and its object is read to the end first. So beginnings of the text are read again. The shortest one that is refused
//! in the same way ends with the mistake. A parser that carries paths would cost twice the code for each type.

use super::scanner::Scanner;

/// Finds the path, `.` for the whole. `hint` is the parser's line and column, each from 1 and a column in bytes;
/// `is_refused` says whether a beginning of the text is refused for its content, and not because it is cut off.
///
/// Near the hint this takes a few more readings, and about twenty for a hint that says nothing.
pub fn path(text: &[u8], hint: (usize, usize), is_refused: &dyn Fn(&[u8]) -> bool) -> String {
    let beginning = |end: usize| text.get(..end).unwrap_or(text);
    let hinted = beginning(offset(text, hint));
    let text = if is_refused(hinted) { hinted } else { text };
    let ends: Vec<usize> = Scanner::new(text).collect();
    let first = first_refused(&ends, |end| is_refused(beginning(end)));
    let mut scanner = Scanner::new(text);
    scanner.by_ref().take(first + 1).for_each(drop);
    scanner.path()
}

/// The offset after the byte at a line and column: the parser may have seen that byte without taking it.
fn offset(text: &[u8], (line, column): (usize, usize)) -> usize {
    let before: usize =
        text.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    before.saturating_add(column).saturating_add(1)
}

/// The index of the first end that is refused, where all later ones are. It is searched backwards in growing steps,
/// and then by halves.
fn first_refused(ends: &[usize], is_refused: impl Fn(usize) -> bool) -> usize {
    let (mut refused, mut step) = (ends.len(), 1);
    while let Some(earlier) = refused.checked_sub(step)
        && ends.get(earlier).is_some_and(|end| is_refused(*end))
    {
        (refused, step) = (earlier, step * 2);
    }
    let from = refused.saturating_sub(step);
    let between = ends.get(from..refused).unwrap_or_default();
    from + between.partition_point(|end| !is_refused(*end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_refused_is_found() {
        for len in 0..40 {
            let ends: Vec<usize> = (0..len).collect();
            for first in 0..=len {
                assert_eq!(first_refused(&ends, |end| end >= first), first, "{first} of {len}");
            }
        }
    }

    #[test]
    fn a_line_and_a_column_are_an_offset() {
        let text = b"ab\ncd\n\nef";
        for (line, column, wanted) in
            [(1, 0, 1), (1, 2, 3), (2, 0, 4), (2, 1, 5), (4, 2, 10), (9, 9, 19), (0, 0, 1)]
        {
            assert_eq!(offset(text, (line, column)), wanted, "{line}:{column}");
        }
    }
}

//! Choice of lines that fit into a budget.

use crate::text::more;

/// Lines, and how many alerts they leave out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fitted {
    pub(crate) lines: Vec<String>,
    /// Includes those that the message itself leaves out.
    pub(crate) omitted: u64,
}

/// Chooses the most lines from the first on that fit into `budget`, together with the line that counts the others.
/// `size` measures a line in the unit of the budget; each line needs one unit more, for its end.
pub(crate) fn fit(
    mut lines: Vec<String>,
    omitted: u32,
    budget: usize,
    size: impl Fn(&str) -> usize,
) -> Fitted {
    let cost = |line: &str| size(line).saturating_add(1);
    let all = u64::try_from(lines.len()).unwrap_or(u64::MAX).saturating_add(u64::from(omitted));
    // The largest number has the longest line, so there is room for every smaller one.
    let reserve = cost(&more(all));
    let total: usize = lines.iter().map(|line| cost(line)).sum();
    if omitted == 0 && total <= budget || omitted > 0 && total.saturating_add(reserve) <= budget {
        return Fitted { lines, omitted: u64::from(omitted) };
    }
    let mut used = reserve;
    let kept = lines
        .iter()
        .take_while(|line| {
            used = used.saturating_add(cost(line));
            used <= budget
        })
        .count();
    lines.truncate(kept);
    Fitted { lines, omitted: all.saturating_sub(u64::try_from(kept).unwrap_or(u64::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_is_a_line_or_is_counted() {
        let lines = |n: usize| (0..n).map(|n| format!("line {n}")).collect::<Vec<_>>();
        for count in 0..12 {
            for omitted in [0, 1, 90] {
                for budget in 14..200 {
                    let fitted = fit(lines(count), omitted, budget, str::len);
                    let named = u64::try_from(fitted.lines.len()).unwrap();
                    assert_eq!(named + fitted.omitted, u64::try_from(count).unwrap() + u64::from(omitted));
                    let mut shown = fitted.lines.clone();
                    if fitted.omitted > 0 {
                        shown.push(more(fitted.omitted));
                    }
                    let used: usize = shown.iter().map(|line| line.len() + 1).sum();
                    assert!(used <= budget, "{used} of {budget}: {shown:?}");
                }
            }
        }
    }

    #[test]
    fn the_last_byte_decides() {
        let lines = vec!["aaaa".to_owned(), "bbbbbbbb".to_owned()];
        assert_eq!(fit(lines.clone(), 0, 14, str::len).lines.len(), 2);
        assert_eq!(fit(lines.clone(), 0, 13, str::len), Fitted { lines: vec![], omitted: 2 });
        assert_eq!(fit(lines, 1, 14 + 11, str::len).lines.len(), 2);
    }
}

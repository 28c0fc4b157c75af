//! The table of steps beside every peer: its rows of means, and the part of it that the front page shows.

use std::{fmt::Write as _, ops::RangeInclusive, path::Path};

use anyhow::{Context, Result, ensure};

const PAGE: &str = "docs/performance.md";
/// Between these marks stands what is measured, in each page that shows it.
pub(crate) const BEGIN: &str = "<!-- cargo xtask bench: begin -->\n";
pub(crate) const END: &str = "<!-- cargo xtask bench: end -->\n";
/// How the name of a row of means begins.
const MEAN: &str = "geometric mean";
/// Cases that are whole networks.
const NETWORKS: [&str; 7] = ["gpt", "lstm", "mlp", "mnist", "pinn", "resnet", "unet"];
/// Columns of the front page.
const SHOWN: [&str; 5] = ["`ltc`", "`torch_ltc.compile`", "torch.compile", "JAX", "PyTorch LTC"];
/// Rows of the front page, and what it calls them: the last two are of those that are behind eager execution.
const ROWS: [(&str, &str); 11] = [
    ("gpt", "a GPT"),
    ("resnet", "a residual network"),
    ("lstm", "an LSTM"),
    ("unet", "a U-Net"),
    ("mnist", "MNIST's convolutional network"),
    ("mlp", "a multilayer perceptron"),
    ("pinn", "a physics-informed network"),
    ("20 pointwise, 1000000", "20 pointwise operators, 1,000,000 elements"),
    ("softmax, 512x512", "a softmax, 512 x 512"),
    ("filtered, 64", "four operators whose shapes depend on values"),
    ("one add, 16", "one sum of 16 elements"),
];

/// The rows of a Markdown table of steps, without its rows of means.
struct Table<'t> {
    columns: Vec<&'t str>,
    rows: Vec<(&'t str, Vec<&'t str>)>,
}

impl<'t> Table<'t> {
    /// The first table of steps in a text.
    fn parse(text: &'t str) -> Result<Self> {
        let mut lines = text.lines().skip_while(|line| !line.starts_with("| steps:"));
        let cells = |line: &'t str| {
            let inner = line.trim().trim_start_matches('|').strip_suffix('|').unwrap_or(line);
            inner.split('|').map(str::trim).collect::<Vec<_>>()
        };
        let columns = cells(lines.next().context("there is no table of steps")?)[1..].to_vec();
        let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
        let rows = rows.filter(|row| !row[0].starts_with(MEAN)).map(|row| (row[0], row[1..].to_vec())).collect();
        Ok(Table { columns, rows })
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.columns.iter().position(|c| *c == name).with_context(|| format!("the table has no column {name}"))
    }

    /// The geometric mean of a column over the cases that are wanted, with two places, failures left out; nothing if
    /// one of these cases does not exist for the column.
    fn mean(&self, column: usize, wanted: &dyn Fn(&str, &[&str]) -> bool) -> String {
        let wanted = self.rows.iter().filter(|(case, cells)| wanted(case, cells));
        let cells: Vec<&str> = wanted.map(|(_, cells)| cells.get(column).copied().unwrap_or_default()).collect();
        let logs: Vec<f64> = cells.iter().filter_map(|cell| cell.parse::<f64>().ok()).map(f64::ln).collect();
        if logs.is_empty() || cells.contains(&"") {
            return String::new();
        }
        format!("{:.2}", (logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }
}

/// The same table with rows of means at its end: of all figures of a column, of the cases that JAX has, too, and of the
/// networks. The columns of first steps have none.
///
/// # Errors
/// Fails where the text has no table of steps.
pub(crate) fn with_means(table: &str) -> Result<String> {
    let parsed = Table::parse(table)?;
    let jax = parsed.column("JAX")?;
    let has_jax = |_: &str, cells: &[&str]| cells.get(jax).is_some_and(|c| c.parse::<f64>().is_ok());
    let is_network = |case: &str, _: &[&str]| NETWORKS.contains(&case);
    let first = parsed.columns.iter().position(|c| c.starts_with("first step")).unwrap_or(parsed.columns.len());
    let mut text = String::new();
    table.lines().filter(|line| !line.starts_with(&format!("| {MEAN}"))).for_each(|line| _ = writeln!(text, "{line}"));
    let mut row = |name: &str, wanted: &dyn Fn(&str, &[&str]) -> bool| {
        let _ = write!(text, "| {name} |");
        for column in 0..parsed.columns.len() {
            let mean = if column < first { parsed.mean(column, wanted) } else { String::new() };
            let _ = if mean.is_empty() { write!(text, " |") } else { write!(text, " {mean} |") };
        }
        text.push('\n');
    };
    row(MEAN, &|_, _| true);
    if parsed.rows.iter().any(|(case, cells)| has_jax(case, cells)) {
        row(&format!("{MEAN} of what JAX has"), &has_jax);
    }
    row(&format!("{MEAN} of the networks"), &is_network);
    Ok(text)
}

/// What the front page shows of the table, with the sentence below it.
fn front(performance: &str) -> Result<String> {
    let (_, measured) = performance.split_once(BEGIN).context("there is no begin mark of `cargo xtask bench`")?;
    let table = Table::parse(measured)?;
    let columns = SHOWN.iter().map(|name| table.column(name)).collect::<Result<Vec<_>>>()?;
    let mut text = format!("| a step of | {} |\n", SHOWN.join(" | "));
    text += &format!("{}|\n", "|---".repeat(SHOWN.len() + 1));
    for (case, name) in ROWS {
        let (_, cells) = table.rows.iter().find(|(c, _)| *c == case).with_context(|| format!("no case {case}"))?;
        let shown: Vec<_> = columns.iter().map(|&c| cells[c]).collect();
        text += &format!("| {name} | {} |\n", shown.join(" | ")).replace("|  |", "| |");
    }
    let jax = table.column("JAX")?;
    let in_jax = |_: &str, cells: &[&str]| cells[jax].parse::<f64>().is_ok();
    let count = table.rows.iter().filter(|(case, cells)| in_jax(case, cells)).count();
    let all = |_: &str, _: &[&str]| true;
    let mean = |wanted: &dyn Fn(&str, &[&str]) -> bool| {
        columns.iter().map(|&c| table.mean(c, wanted)).collect::<Vec<_>>().join(" | ").replace("|  |", "| |")
    };
    text += &format!("| all {}, geometric mean | {} |\n", table.rows.len(), mean(&all));
    text += &format!("| the {count} that JAX has, geometric mean | {} |\n", mean(&in_jax));
    let first = firsts(&table)?;
    let (low, high) = (first.start(), first.end());
    text += &format!(
        "\nA program's first step takes {low:.1} to {high:.1} times as long as eager's first: nobody waits for a \
         compiler.\n"
    );
    Ok(text)
}

/// The least and the largest of our first steps, as multiples of eager's.
fn firsts(table: &Table<'_>) -> Result<RangeInclusive<f64>> {
    let column = table.column("first step: ltc")?;
    let figures: Vec<f64> = table.rows.iter().filter_map(|(_, cells)| cells.get(column)?.parse().ok()).collect();
    ensure!(!figures.is_empty(), "the table has no first steps");
    Ok(figures.iter().copied().fold(f64::MAX, f64::min)..=figures.iter().copied().fold(0.0, f64::max))
}

/// The page with another text between its marks.
fn between_marks(page: &str, text: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("there is no begin mark of `cargo xtask bench`")?;
    let (_, after) = rest.split_once(END).context("there is no end mark of `cargo xtask bench`")?;
    Ok(format!("{before}{BEGIN}{text}{END}{after}"))
}

/// Writes the front page's rows from the table of `docs/performance.md`.
///
/// # Errors
/// Fails where a page has no marks, or the table lacks a row or a column.
pub(crate) fn write_front(root: &Path) -> Result<()> {
    let page = root.join("README.md");
    let performance = std::fs::read_to_string(root.join(PAGE))?;
    let written = between_marks(&std::fs::read_to_string(&page)?, &front(&performance)?)?;
    std::fs::write(page, written).context("README.md")
}

/// What is wrong with the front page's rows, if they are not those of the table; `None` where all is well.
pub(crate) fn complaint(readme: &str, performance: &str) -> Option<String> {
    match front(performance).and_then(|text| between_marks(readme, &text)) {
        Ok(expected) if expected == readme => None,
        Ok(_) => {
            Some(format!("README.md: its figures are not those of {PAGE}: `cargo xtask bench --front` writes them"))
        }
        Err(error) => Some(format!("README.md: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| steps: eager time / | `ltc` | JAX | first step: ltc |\n|---|---|---|---|\n";

    #[test]
    fn means_are_of_the_figures_that_a_column_has() {
        let table = format!("{HEAD}| gpt | 2.00 | | 0.5 |\n| other | 8.00 | 3.00 | 2.5 |\n| x | fails | | |\n");
        let text = with_means(&table).expect("a table");
        assert!(
            text.ends_with(
                "| geometric mean | 4.00 | | |\n| geometric mean of what JAX has | 8.00 | 3.00 | |\n\
             | geometric mean of the networks | 2.00 | | |\n"
            ),
            "{text}"
        );
        assert_eq!(with_means(&text).expect("a table"), text, "rows of means take the place of older ones");
        let parsed = Table::parse(&text).expect("a table");
        assert_eq!(firsts(&parsed).expect("figures"), 0.5..=2.5);
    }

    #[test]
    fn a_figure_that_is_changed_by_hand_is_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |name: &str| std::fs::read_to_string(root.join(name)).expect("a page");
        let (readme, performance) = (read("README.md"), read(PAGE));
        assert_eq!(complaint(&readme, &performance), None);
        let (start, end) = readme.split_once("| a GPT | ").expect("a row");
        assert!(complaint(&format!("{start}| a GPT | 9{end}"), &performance).is_some());
        assert!(complaint(&readme.replace(END, ""), &performance).is_some());
    }
}

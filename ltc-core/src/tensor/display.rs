//! Prints values as libtorch does in C++: columns of one width, a common scale, matrices one after another.

use std::fmt;

use ltc_ir::DType;

use super::LazyTensor;

/// Columns of text in a line.
const LINE: usize = 80;

/// How all numbers of a tensor are written.
struct Format {
    width: usize,
    scale: f64,
    style: Style,
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Integers,
    Fixed,
    Scientific,
}

/// How many digits stand before the point.
fn digits(x: f64) -> i32 {
    if x == 0.0 { 1 } else { x.log10().floor() as i32 + 1 }
}

impl Format {
    fn of(values: &[f64]) -> Format {
        let finite = || values.iter().map(|x| x.abs()).filter(|x| x.is_finite());
        let whole = finite().all(|x| x == x.ceil());
        let (low, high) = finite().fold((f64::INFINITY, 0f64), |(l, h), x| (l.min(x), h.max(x)));
        let (least, most) = if finite().next().is_none() { (1, 1) } else { (digits(low), digits(high)) };
        let wide = most.max(1) as usize;
        if values.is_empty() {
            Format { width: 0, scale: 1.0, style: Style::Integers }
        } else if whole && most > 9 {
            Format { width: 11, scale: 1.0, style: Style::Scientific }
        } else if whole {
            Format { width: wide + 1, scale: 1.0, style: Style::Integers }
        } else if most - least > 4 {
            let width = if most.abs() > 99 || least.abs() > 99 { 12 } else { 11 };
            Format { width, scale: 1.0, style: Style::Scientific }
        } else if !(0..=5).contains(&most) {
            Format { width: 7, scale: f64::powi(10.0, most - 1), style: Style::Fixed }
        } else {
            Format { width: if most == 0 { 7 } else { wide + 6 }, scale: 1.0, style: Style::Fixed }
        }
    }

    fn number(&self, x: f64) -> String {
        let x = x / self.scale;
        let text = if x.is_nan() {
            "nan".to_owned()
        } else if x.is_infinite() {
            if x > 0.0 { "inf" } else { "-inf" }.to_owned()
        } else {
            match self.style {
                Style::Integers => general(x),
                Style::Fixed => format!("{x:.4}"),
                Style::Scientific => scientific(x),
            }
        };
        format!("{text:>width$}", width = self.width)
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 1.0 { Ok(()) } else { writeln!(f, "{} *", general(self.scale)) }
    }
}

/// As many digits as it takes, with an exponent where that is much shorter.
fn general(x: f64) -> String {
    if x == 0.0 || (1e-4..1e16).contains(&x.abs()) {
        return x.to_string();
    }
    let (mantissa, exponent) = parts(&format!("{x:e}"));
    format!("{mantissa}e{exponent}")
}

/// `1.2346e+10`
fn scientific(x: f64) -> String {
    let (mantissa, exponent) = parts(&format!("{x:.4e}"));
    format!("{mantissa}e{exponent}")
}

/// Mantissa, and exponent with sign and two digits.
fn parts(text: &str) -> (String, String) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    (mantissa.to_owned(), format!("{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()))
}

fn matrix(f: &mut fmt::Formatter<'_>, values: &[f64], columns: usize, format: &Format, indent: usize) -> fmt::Result {
    let rows = values.len() / columns.max(1);
    let per_line = ((LINE - indent) / (format.width + 1)).max(1);
    let space = " ".repeat(indent);
    for first in (0..columns).step_by(per_line) {
        let last = columns.min(first + per_line);
        if per_line < columns {
            if first != 0 {
                writeln!(f)?;
            }
            writeln!(f, "Columns {} to {last}{space}", first + 1)?;
        }
        if format.scale != 1.0 {
            format.head(f)?;
        }
        for row in 0..rows {
            let line = &values[row * columns..][first..last];
            let line: Vec<String> = line.iter().map(|&x| format.number(x)).collect();
            // The first line stands where what came before it ended, as in libtorch.
            let indent = if row > 0 || format.scale != 1.0 || per_line < columns { &space[..] } else { "" };
            writeln!(f, "{indent}{}", line.join(" "))?;
        }
    }
    Ok(())
}

fn body(f: &mut fmt::Formatter<'_>, values: &[f64], sizes: &[i64]) -> fmt::Result {
    match *sizes {
        [] => writeln!(f, "{}", values.first().map_or(String::new(), |&x| general_or_special(x))),
        [n] if n > 0 => {
            let format = Format::of(values);
            format.head(f)?;
            values.iter().try_for_each(|&x| writeln!(f, "{}", format.number(x)))
        }
        [rows, columns] if rows > 0 && columns > 0 => matrix(f, values, columns as usize, &Format::of(values), 0),
        [ref lead @ .., rows, columns] if !values.is_empty() => {
            let format = Format::of(values);
            let each = (rows * columns) as usize;
            let mut at: Vec<i64> = vec![1; lead.len()];
            for (i, part) in values.chunks(each).enumerate() {
                if i > 0 {
                    writeln!(f)?;
                }
                let place: Vec<String> = at.iter().map(ToString::to_string).collect();
                writeln!(f, "({},.,.) = ", place.join(","))?;
                matrix(f, part, columns as usize, &format, 1)?;
                // The first of the leading dimensions moves fastest.
                for (a, &n) in at.iter_mut().zip(lead).rev() {
                    *a += 1;
                    if *a <= n {
                        break;
                    }
                    *a = 1;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn general_or_special(x: f64) -> String {
    if x.is_finite() { general(x) } else { Format { width: 0, scale: 1.0, style: Style::Integers }.number(x) }
}

fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "Byte",
        DType::I8 => "Char",
        DType::I16 => "Short",
        DType::I32 => "Int",
        DType::I64 => "Long",
        DType::F16 => "Half",
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::Bool => "Bool",
        DType::BF16 => "BFloat16",
        other => other.name(),
    }
}

/// The values, as libtorch prints them: a sync point, and a wait for this value. What failed is printed as its error.
impl fmt::Display for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_f64_vec() {
            Ok(values) => body(f, &values, self.sizes())?,
            Err(e) => writeln!(f, "<{e}>")?,
        }
        let sizes: Vec<String> = self.sizes().iter().map(ToString::to_string).collect();
        write!(f, "[ Ltc{}Type{{{}}} ]", type_name(self.dtype()), sizes.join(","))
    }
}

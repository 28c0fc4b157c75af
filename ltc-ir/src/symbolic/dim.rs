//! Sizes as expressions over symbols: what the original's dimension nodes (size, add, mul, div) say.
//!
//! Kept in one normal form, a polynomial over a divisor, so that equal meanings are equal values: `2*s0 + s0` is
//! `3*s0`.

use std::fmt;

use smallvec::{SmallVec, smallvec};

/// A product of symbols, in ascending order; empty for one.
type Monomial = SmallVec<[u8; 4]>;

/// An integer that depends on symbols: `s0`, `784*s0`, `s0*s1`, `(s0 - 1)/2`. Division is exact.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dim {
    /// Ascending; no coefficient is 0.
    terms: SmallVec<[(Monomial, i64); 2]>,
    /// At least 1, and without a common factor with all coefficients.
    divisor: i64,
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.saturating_abs() } else { gcd(b, a % b) }
}

impl Dim {
    /// An integer.
    pub fn constant(value: i64) -> Dim {
        let terms = if value == 0 { smallvec![] } else { smallvec![(Monomial::new(), value)] };
        Dim { terms, divisor: 1 }
    }

    /// Symbol `index`.
    pub fn symbol(index: u8) -> Dim {
        Dim { terms: smallvec![(smallvec![index], 1)], divisor: 1 }
    }

    /// Which integer this is, if it depends on no symbol.
    pub fn as_constant(&self) -> Option<i64> {
        match &self.terms[..] {
            [] => Some(0),
            [(m, c)] if m.is_empty() && self.divisor == 1 => Some(*c),
            _ => None,
        }
    }

    /// Which symbol this is.
    pub fn as_symbol(&self) -> Option<u8> {
        match &self.terms[..] {
            [(m, 1)] if m.len() == 1 && self.divisor == 1 => Some(m[0]),
            _ => None,
        }
    }

    /// What its numerator must be divisible by.
    pub fn divisor(&self) -> i64 {
        self.divisor
    }

    /// Whether it is more than one because all of its symbols are.
    pub fn is_plain(&self) -> bool {
        self.divisor == 1 && self.terms.iter().all(|(m, c)| *c > 0 && !m.is_empty()) && !self.terms.is_empty()
    }

    /// The number of symbols it could name: one more than its highest.
    pub fn symbol_bound(&self) -> usize {
        self.symbol_list().map(|s| usize::from(s) + 1).max().unwrap_or(0)
    }

    /// Its symbols, with repetitions.
    pub(super) fn symbol_list(&self) -> impl Iterator<Item = u8> {
        self.terms.iter().flat_map(|(m, _)| m.iter().copied())
    }

    fn normal(mut terms: SmallVec<[(Monomial, i64); 2]>, divisor: i64) -> Option<Dim> {
        terms.sort_unstable();
        let mut sum: SmallVec<[(Monomial, i64); 2]> = SmallVec::new();
        for (m, c) in terms {
            match sum.last_mut() {
                Some(last) if last.0 == m => last.1 = last.1.checked_add(c)?,
                _ => sum.push((m, c)),
            }
        }
        sum.retain(|t| t.1 != 0);
        let common = sum.iter().fold(divisor, |g, t| gcd(g, t.1)).max(1);
        sum.iter_mut().for_each(|t| t.1 /= common);
        Some(Dim { terms: sum, divisor: divisor / common })
    }

    /// Sum; `None` when coefficients overflow.
    pub fn add(&self, other: &Dim) -> Option<Dim> {
        let scaled = |d: &Dim, by: i64| {
            d.terms.iter().map(|(m, c)| Some((m.clone(), c.checked_mul(by)?))).collect::<Option<SmallVec<[_; 2]>>>()
        };
        let mut terms = scaled(self, other.divisor)?;
        terms.extend(scaled(other, self.divisor)?);
        Dim::normal(terms, self.divisor.checked_mul(other.divisor)?)
    }

    /// Product; `None` when coefficients overflow or there are too many factors to be a size.
    pub fn mul(&self, other: &Dim) -> Option<Dim> {
        let mut terms = SmallVec::new();
        for (m, c) in &self.terms {
            for (n, d) in &other.terms {
                let mut product: Monomial = m.iter().chain(n).copied().collect();
                product.sort_unstable();
                if product.len() > 8 {
                    return None;
                }
                terms.push((product, c.checked_mul(*d)?));
            }
        }
        Dim::normal(terms, self.divisor.checked_mul(other.divisor)?)
    }

    /// Exact quotient by a positive integer.
    pub fn div(&self, by: i64) -> Option<Dim> {
        if by < 1 { None } else { Dim::normal(self.terms.clone(), self.divisor.checked_mul(by)?) }
    }

    /// Its value; `None` when it is no integer or none that fits.
    pub fn value(&self, symbols: &[i64]) -> Option<i64> {
        let mut sum = 0i64;
        for (m, c) in &self.terms {
            let product = m.iter().try_fold(*c, |p, &s| p.checked_mul(*symbols.get(usize::from(s))?))?;
            sum = sum.checked_add(product)?;
        }
        (sum % self.divisor == 0).then_some(sum / self.divisor)
    }
}

/// `s0`, `784*s0`, `s0*s1`, `(s0 - 1)/2`.
impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        let parts = self.divisor != 1 && self.terms.len() > 1;
        f.write_str(if parts { "(" } else { "" })?;
        // The constant last.
        let constant = self.terms.first().filter(|t| t.0.is_empty());
        let rest = self.terms.iter().filter(|t| !t.0.is_empty()).chain(constant);
        for (i, (m, c)) in rest.enumerate() {
            match (i, *c < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let size = c.unsigned_abs();
            if size != 1 || m.is_empty() {
                write!(f, "{size}")?;
            }
            for (k, s) in m.iter().enumerate() {
                write!(f, "{}s{s}", if k == 0 && size == 1 { "" } else { "*" })?;
            }
        }
        f.write_str(if parts { ")" } else { "" })?;
        if self.divisor == 1 { Ok(()) } else { write!(f, "/{}", self.divisor) }
    }
}

/// Row-major strides of symbolic sizes, where every symbolic size is at least 1; as
/// [`crate::layout::contiguous_strides`].
pub(crate) fn contiguous(sizes: &[Dim]) -> Option<Vec<Dim>> {
    let mut strides = vec![Dim::constant(1); sizes.len()];
    for i in (1..sizes.len()).rev() {
        let size = if sizes[i] == Dim::constant(0) { Dim::constant(1) } else { sizes[i].clone() };
        strides[i - 1] = strides[i].mul(&size)?;
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(i: u8) -> Dim {
        Dim::symbol(i)
    }

    #[test]
    fn equal_meanings_are_equal() -> Result<(), &'static str> {
        let c = Dim::constant;
        let two = s(0).mul(&c(2)).and_then(|d| d.add(&s(0))).ok_or("overflow")?;
        assert_eq!(two, s(0).mul(&c(3)).ok_or("overflow")?);
        let half = s(0).add(&c(-1)).and_then(|d| d.div(2)).ok_or("overflow")?;
        assert_eq!(half.to_string(), "(s0 - 1)/2");
        assert_eq!((half.value(&[7]), half.value(&[8])), (Some(3), None));
        assert_eq!(half.mul(&c(2)).and_then(|d| d.add(&c(1))), Some(s(0)));
        let product = s(1).mul(&s(0)).and_then(|d| d.mul(&c(4))).ok_or("overflow")?;
        assert_eq!((product.to_string(), product.value(&[3, 5])), ("4*s0*s1".into(), Some(60)));
        assert_eq!(s(0).add(&s(0).mul(&c(-1)).ok_or("overflow")?), Some(c(0)));
        assert_eq!(c(i64::MAX).mul(&c(2)), None);
        assert_eq!(s(0).div(0), None);
        assert_eq!(s(3).symbol_bound(), 4);
        Ok(())
    }

    fn dims() -> impl Strategy<Value = Dim> {
        let leaf = prop_oneof![(-9..9i64).prop_map(Dim::constant), (0..3u8).prop_map(Dim::symbol)];
        leaf.prop_recursive(3, 12, 2, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.add(&b).unwrap_or(a)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| a.mul(&b).unwrap_or(a)),
                (inner, 1..5i64).prop_map(|(a, n)| a.div(n).unwrap_or(a)),
            ]
        })
    }

    proptest! {
        /// Arithmetic on expressions is arithmetic on their values.
        #[test]
        fn values_follow(a in dims(), b in dims(), x in prop::array::uniform3(1..20i64)) {
            if let (Some(p), Some(q)) = (a.value(&x), b.value(&x)) {
                prop_assert_eq!(a.add(&b).and_then(|d| d.value(&x)), Some(p + q));
                prop_assert_eq!(a.mul(&b).and_then(|d| d.value(&x)), Some(p * q));
                prop_assert_eq!(a.mul(&Dim::constant(6)).and_then(|d| d.div(6)), Some(a.clone()));
            }
        }
    }
}

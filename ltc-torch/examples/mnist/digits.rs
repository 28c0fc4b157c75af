//! Drawn digits, for when there are no MNIST files: strokes with a soft pen, small affine changes, noise; seeded.

use crate::data::{Dataset, SIDE};

/// splitmix64: the same digits everywhere for the same seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform between `low` and `high`.
    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (self.next() >> 40) as f32 / (1u64 << 24) as f32 * (high - low)
    }
}

type Point = (f32, f32);

/// Points on an ellipse, angles in degrees clockwise from the right.
fn arc(center: Point, radius: Point, from: f32, to: f32) -> Vec<Point> {
    let steps = 16;
    (0..=steps)
        .map(|i| {
            let a = (from + (to - from) * i as f32 / steps as f32).to_radians();
            (center.0 + radius.0 * a.cos(), center.1 + radius.1 * a.sin())
        })
        .collect()
}

/// Strokes of a digit in a unit square, x to the right, y down.
fn strokes(digit: u8) -> Vec<Vec<Point>> {
    match digit {
        0 => vec![arc((0.5, 0.5), (0.26, 0.38), 0.0, 360.0)],
        1 => vec![vec![(0.36, 0.26), (0.54, 0.12), (0.54, 0.88)]],
        2 => {
            let mut top = arc((0.5, 0.33), (0.24, 0.21), 190.0, 380.0);
            top.extend([(0.26, 0.86), (0.76, 0.86)]);
            vec![top]
        }
        3 => vec![arc((0.46, 0.31), (0.24, 0.19), 200.0, 450.0), arc((0.46, 0.68), (0.27, 0.19), 270.0, 520.0)],
        4 => vec![vec![(0.6, 0.88), (0.6, 0.12), (0.22, 0.62), (0.8, 0.62)]],
        5 => {
            let mut s = vec![(0.72, 0.13), (0.34, 0.13), (0.31, 0.46)];
            s.extend(arc((0.48, 0.65), (0.26, 0.22), 240.0, 510.0));
            vec![s]
        }
        6 => {
            let mut s = vec![(0.66, 0.12), (0.42, 0.34), (0.28, 0.6)];
            s.extend(arc((0.5, 0.67), (0.22, 0.2), 180.0, 540.0));
            vec![s]
        }
        7 => vec![vec![(0.24, 0.14), (0.76, 0.14), (0.42, 0.88)]],
        8 => vec![arc((0.5, 0.3), (0.2, 0.18), 0.0, 360.0), arc((0.5, 0.68), (0.25, 0.2), 0.0, 360.0)],
        _ => {
            let mut s = arc((0.5, 0.34), (0.22, 0.2), 0.0, 360.0);
            s.extend([(0.7, 0.6), (0.6, 0.88)]);
            vec![s]
        }
    }
}

fn distance(p: Point, a: Point, b: Point) -> f32 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx * dx + dy * dy;
    let t = if length > 0.0 { (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    ((p.0 - a.0 - t * dx).powi(2) + (p.1 - a.1 - t * dy).powi(2)).sqrt()
}

fn draw(digit: u8, rng: &mut Rng, image: &mut Vec<f32>) {
    let angle = rng.between(-0.22, 0.22);
    let (sx, sy) = (rng.between(0.78, 1.0), rng.between(0.78, 1.0));
    let shear = rng.between(-0.2, 0.2);
    let (tx, ty) = (rng.between(-0.07, 0.07), rng.between(-0.07, 0.07));
    let pen = rng.between(0.032, 0.06);
    let noise = rng.between(0.0, 0.08);
    let place = |(x, y): Point| {
        let (x, y) = ((x - 0.5) * sx + shear * (y - 0.5), (y - 0.5) * sy);
        (0.5 + tx + x * angle.cos() - y * angle.sin(), 0.5 + ty + x * angle.sin() + y * angle.cos())
    };
    let lines: Vec<Vec<Point>> = strokes(digit)
        .into_iter()
        .map(|line| {
            line.into_iter()
                .map(|p| place((p.0 + rng.between(-0.012, 0.012), p.1 + rng.between(-0.012, 0.012))))
                .collect()
        })
        .collect();
    let soft = 1.0 / SIDE as f32;
    for row in 0..SIDE {
        for column in 0..SIDE {
            let p = ((column as f32 + 0.5) / SIDE as f32, (row as f32 + 0.5) / SIDE as f32);
            let near =
                lines.iter().flat_map(|l| l.windows(2)).map(|w| distance(p, w[0], w[1])).fold(f32::MAX, f32::min);
            let ink = ((pen - near) / soft + 0.5).clamp(0.0, 1.0);
            image.push((ink + rng.between(-noise, noise)).clamp(0.0, 1.0));
        }
    }
}

/// `n` digits, the ten in turn in a shuffled order.
pub(crate) fn generate(n: usize, seed: u64) -> Dataset {
    let mut rng = Rng(seed);
    let mut data = Dataset { images: Vec::with_capacity(n * SIDE * SIDE), labels: Vec::with_capacity(n) };
    while data.len() < n {
        let mut ten: Vec<u8> = (0..10).collect();
        for i in (1..10).rev() {
            ten.swap(i, (rng.next() % (i as u64 + 1)) as usize);
        }
        for digit in ten.into_iter().take(n - data.len()) {
            draw(digit, &mut rng, &mut data.images);
            data.labels.push(digit);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_digits() {
        assert_eq!(generate(20, 1), generate(20, 1));
        assert_ne!(generate(20, 1).images, generate(20, 2).images);
    }

    #[test]
    fn every_digit_comes_equally_often_and_has_ink() {
        let data = generate(100, 3);
        for digit in 0..10 {
            assert_eq!(data.labels.iter().filter(|&&l| l == digit).count(), 10);
        }
        for image in data.images.chunks(SIDE * SIDE) {
            let ink = image.iter().filter(|&&p| p > 0.5).count();
            assert!((25..350).contains(&ink), "{ink} dark pixels");
            assert!(image.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}

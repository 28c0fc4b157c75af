//! MNIST files in IDX format, gzip-compressed or not.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use flate2::read::GzDecoder;

/// Pixels per side.
pub(crate) const SIDE: usize = 28;

/// Images as `n * 28 * 28` floats from 0 to 1, with one label each.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dataset {
    /// Pixels, row by row, image by image.
    pub(crate) images: Vec<f32>,
    /// Digits 0 to 9.
    pub(crate) labels: Vec<u8>,
}

impl Dataset {
    /// Number of images.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// Splits after `n` images.
    pub(crate) fn split(mut self, n: usize) -> (Dataset, Dataset) {
        let n = n.min(self.len());
        let images = self.images.split_off(n * SIDE * SIDE);
        let labels = self.labels.split_off(n);
        (self, Dataset { images, labels })
    }
}

/// Why a folder cannot be used; names the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataError {
    /// No such folder.
    #[error("{0} is not a folder")]
    NoFolder(PathBuf),
    /// A file is missing.
    #[error("{folder} has neither {name} nor {name}.gz")]
    Missing {
        /// Folder searched.
        folder: PathBuf,
        /// File wanted.
        name: &'static str,
    },
    /// Reading failed.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another format.
    #[error("{path} is not an IDX file of {wanted}: it begins with {found:#010x}")]
    NotIdx {
        /// File.
        path: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// First four bytes.
        found: u32,
    },
    /// The header promises more than there is.
    #[error("{path} is cut short: its header promises {promised} bytes, {found} are there")]
    Truncated {
        /// File.
        path: PathBuf,
        /// Bytes by the header.
        promised: usize,
        /// Bytes found.
        found: usize,
    },
    /// Not 28 by 28.
    #[error("{path}: images are {rows}x{columns}, not 28x28")]
    Size {
        /// File.
        path: PathBuf,
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
    },
    /// A label that is no digit.
    #[error("{path}: label {label} of image {index} is not a digit")]
    Label {
        /// File.
        path: PathBuf,
        /// Label.
        label: u8,
        /// Position.
        index: usize,
    },
    /// Images and labels do not belong together.
    #[error("{path} has {images} images but {labels_path} has {labels} labels")]
    Counts {
        /// File of images.
        path: PathBuf,
        /// Images.
        images: usize,
        /// File of labels.
        labels_path: PathBuf,
        /// Labels.
        labels: usize,
    },
}

/// Training and test images of a folder. A folder that only has the test split is itself split 4 to 1.
pub(crate) fn load(folder: &Path) -> Result<(Dataset, Dataset), DataError> {
    if !folder.is_dir() {
        return Err(DataError::NoFolder(folder.to_owned()));
    }
    let test = read_pair(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")?;
    match read_pair(folder, "train-images-idx3-ubyte", "train-labels-idx1-ubyte") {
        Ok(train) => Ok((train, test)),
        Err(DataError::Missing { name: "train-images-idx3-ubyte", .. }) => {
            let n = test.len() * 4 / 5;
            Ok(test.split(n))
        }
        Err(e) => Err(e),
    }
}

fn read_pair(folder: &Path, images: &'static str, labels: &'static str) -> Result<Dataset, DataError> {
    let path = find(folder, images)?;
    let (images, count) = read_images(&path)?;
    let labels_path = find(folder, labels)?;
    let labels = read_labels(&labels_path)?;
    if count != labels.len() {
        return Err(DataError::Counts { path, images: count, labels_path, labels: labels.len() });
    }
    Ok(Dataset { images, labels })
}

fn find(folder: &Path, name: &'static str) -> Result<PathBuf, DataError> {
    [name.to_owned(), format!("{name}.gz")]
        .into_iter()
        .map(|n| folder.join(n))
        .find(|p| p.is_file())
        .ok_or_else(|| DataError::Missing { folder: folder.to_owned(), name })
}

fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let io = |source| DataError::Io { path: path.to_owned(), source };
    let raw = fs::read(path).map_err(io)?;
    if raw.starts_with(&[0x1f, 0x8b]) {
        let mut bytes = Vec::new();
        GzDecoder::new(&raw[..]).read_to_end(&mut bytes).map_err(io)?;
        return Ok(bytes);
    }
    Ok(raw)
}

/// Header words after the magic number, and the payload they promise.
fn idx<'a, const N: usize>(
    path: &Path,
    bytes: &'a [u8],
    magic: u32,
    wanted: &'static str,
) -> Result<([u32; N], &'a [u8]), DataError> {
    let word = |i: usize| bytes.get(4 * i..4 * i + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    let found = word(0).unwrap_or(0);
    if found != magic {
        return Err(DataError::NotIdx { path: path.to_owned(), wanted, found });
    }
    let header = 4 * (N + 1);
    let short = |promised| DataError::Truncated { path: path.to_owned(), promised, found: bytes.len() };
    let mut dims = [0; N];
    for (i, d) in dims.iter_mut().enumerate() {
        *d = word(i + 1).ok_or_else(|| short(header))?;
    }
    let payload = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d as usize)).unwrap_or(usize::MAX);
    let end = header.saturating_add(payload);
    let data = bytes.get(header..end).ok_or_else(|| short(end))?;
    Ok((dims, data))
}

fn read_images(path: &Path) -> Result<(Vec<f32>, usize), DataError> {
    let bytes = read(path)?;
    let ([n, rows, columns], data) = idx::<3>(path, &bytes, 0x0803, "images")?;
    if (rows as usize, columns as usize) != (SIDE, SIDE) {
        return Err(DataError::Size { path: path.to_owned(), rows, columns });
    }
    Ok((data.iter().map(|&b| f32::from(b) / 255.0).collect(), n as usize))
}

fn read_labels(path: &Path) -> Result<Vec<u8>, DataError> {
    let bytes = read(path)?;
    let (_, data) = idx::<1>(path, &bytes, 0x0801, "labels")?;
    match data.iter().position(|&l| l > 9) {
        Some(index) => Err(DataError::Label { path: path.to_owned(), label: data[index], index }),
        None => Ok(data.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ltc-mnist-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn put(&self, name: &str, words: &[u32], payload: &[u8]) -> &Self {
            let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
            bytes.extend_from_slice(payload);
            fs::write(self.0.join(name), bytes).unwrap();
            self
        }

        fn with_test_images(&self, n: usize) -> &Self {
            self.put("t10k-images-idx3-ubyte", &[0x0803, n as u32, 28, 28], &vec![51; n * 784])
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_test_split_alone_is_split_again() {
        let f = Folder::new("alone");
        f.with_test_images(10).put("t10k-labels-idx1-ubyte", &[0x0801, 10], &[3; 10]);
        let (train, test) = load(&f.0).unwrap();
        assert_eq!((train.len(), test.len()), (8, 2));
        assert!(train.images.iter().all(|&p| (p - 0.2).abs() < 1e-6));
    }

    #[test]
    fn gzip_is_unpacked() {
        use std::io::Write;
        let f = Folder::new("gzip");
        f.with_test_images(5);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&[0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5]).unwrap();
        fs::write(f.0.join("t10k-labels-idx1-ubyte.gz"), gz.finish().unwrap()).unwrap();
        assert_eq!(load(&f.0).unwrap().0.labels, [1, 2, 3, 4]);
    }

    #[test]
    fn each_mistake_names_its_file() {
        let says = |f: &Folder, text: &str| {
            let e = load(&f.0).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        };
        let f = Folder::new("mistakes");
        says(&f, "t10k-images-idx3-ubyte");
        f.put("t10k-images-idx3-ubyte", &[0x0801, 1], &[0]);
        says(&f, "is not an IDX file of images");
        f.put("t10k-images-idx3-ubyte", &[0x0803, 2, 28, 28], &[0; 784]);
        says(&f, "cut short");
        f.put("t10k-images-idx3-ubyte", &[0x0803, u32::MAX, u32::MAX, u32::MAX], &[]);
        says(&f, "cut short");
        f.put("t10k-images-idx3-ubyte", &[0x0803], &[]);
        says(&f, "cut short");
        f.put("t10k-images-idx3-ubyte", &[0x0803, 1, 2, 2], &[0; 4]);
        says(&f, "2x2");
        f.with_test_images(2);
        says(&f, "t10k-labels-idx1-ubyte");
        f.put("t10k-labels-idx1-ubyte", &[0x0801, 2], &[7, 11]);
        says(&f, "label 11");
        f.put("t10k-labels-idx1-ubyte", &[0x0801, 3], &[1, 2, 3]);
        says(&f, "t10k-images-idx3-ubyte has 2 images");
        says(&f, "t10k-labels-idx1-ubyte has 3 labels");
        fs::write(f.0.join("t10k-labels-idx1-ubyte"), [0x1f, 0x8b, 1, 2, 3]).unwrap();
        says(&f, "t10k-labels-idx1-ubyte");
        assert!(matches!(load(Path::new("/no/such/folder")), Err(DataError::NoFolder(_))));
    }
}

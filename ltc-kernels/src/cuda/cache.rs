//! Machine code on disk, so that a kernel is compiled once and not once per process.
//!
//! A file has what its code was made of, text and versions, which is compared before the code is used, and a checksum.
//! Files come whole or not at all: they are written beside their place and renamed. Whatever goes wrong with a file,
//! the code is compiled as if there were none.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::SystemTime,
};

use xxhash_rust::xxh3::xxh3_128;

use super::Arch;

/// How files begin; another format begins otherwise.
const MAGIC: &[u8; 8] = b"LTCCODE1";
/// Bytes of a checksum, and of a length.
const SUM: usize = 16;
const LENGTH: usize = 8;

/// What code is made of.
#[derive(Clone, Copy, Debug)]
pub struct CodeKey<'a> {
    /// The program's text.
    pub text: &'a str,
    /// The GPU it is for.
    pub arch: Arch,
    /// The compiler's version.
    pub compiler: (i32, i32),
}

impl CodeKey<'_> {
    /// All that decides which code it is.
    fn bytes(&self) -> Vec<u8> {
        let (arch, (major, minor)) = (self.arch, self.compiler);
        format!("{arch} {major}.{minor} {}\n{}", env!("CARGO_PKG_VERSION"), self.text).into_bytes()
    }
}

/// A folder with machine code, for any number of processes.
#[derive(Clone, Debug)]
pub struct CodeCache {
    folder: PathBuf,
    max_bytes: u64,
}

impl CodeCache {
    /// A cache in this folder, which is made when there is code for it, of at most so many bytes: what was not used for
    /// longest goes first.
    pub fn new(folder: impl Into<PathBuf>, max_bytes: u64) -> CodeCache {
        CodeCache { folder: folder.into(), max_bytes }
    }

    /// The code for a key: that of an earlier call, else what `compile` gives.
    ///
    /// # Errors
    /// Those of `compile` alone.
    pub fn code<E>(&self, key: CodeKey<'_>, compile: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let key = key.bytes();
        let path = self.folder.join(format!("{:032x}.code", xxh3_128(&key)));
        if let Some(code) = read(&path, &key) {
            return Ok(code);
        }
        let code = compile()?;
        // Without the file, the code is compiled again next time.
        if self.write(&path, &key, &code).is_ok() {
            _ = self.shrink();
        }
        Ok(code)
    }

    fn write(&self, path: &Path, key: &[u8], code: &[u8]) -> io::Result<()> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut content = MAGIC.to_vec();
        content.extend((key.len() as u64).to_le_bytes());
        content.extend(key);
        content.extend(code);
        content.extend(xxh3_128(&content).to_le_bytes());
        fs::create_dir_all(&self.folder)?;
        let name = format!("{}-{}.part", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let part = self.folder.join(name);
        let done = fs::write(&part, content).and_then(|()| fs::rename(&part, path));
        if done.is_err() {
            _ = fs::remove_file(&part);
        }
        done
    }

    /// Removes files, those used last long ago first, until the rest is small enough.
    fn shrink(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in self.folder.read_dir()?.flatten() {
            // Another process may have removed it.
            if let Ok(metadata) = entry.metadata().and_then(|m| Ok((m.modified()?, m.len()))) {
                files.push((metadata.0, metadata.1, entry.path()));
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|file| file.1).sum();
        for (_, length, path) in files {
            if bytes <= self.max_bytes {
                break;
            }
            fs::remove_file(path)?;
            bytes -= length;
        }
        Ok(())
    }
}

/// The code in a file, if it is whole and was made of this; notes that it was used.
fn read(path: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let content = fs::read(path).ok()?;
    let code = code_of(&content, key)?.to_vec();
    // A file one may read and not write is good, too.
    _ = fs::File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
    Some(code)
}

fn code_of<'a>(content: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let (body, sum) = content.split_last_chunk::<SUM>()?;
    if xxh3_128(body) != u128::from_le_bytes(*sum) {
        return None;
    }
    let (length, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<LENGTH>()?;
    (u64::from_le_bytes(*length) == key.len() as u64).then(|| rest.strip_prefix(key))?
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A folder of the test's own, without anything in it.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ltc-code-{}-{name}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        folder
    }

    fn key(text: &str) -> CodeKey<'_> {
        CodeKey { text, arch: Arch { major: 8, minor: 0 }, compiler: (13, 0) }
    }

    /// The code for a key, and whether it was compiled.
    fn code(cache: &CodeCache, key: CodeKey<'_>, code: &[u8]) -> (Vec<u8>, bool) {
        let mut compiled = false;
        let found = cache.code(key, || {
            compiled = true;
            Ok::<_, Infallible>(code.to_vec())
        });
        (found.unwrap_or_default(), compiled)
    }

    #[test]
    fn code_is_compiled_once_for_what_it_is_made_of() {
        let cache = CodeCache::new(folder("once"), 1 << 20);
        assert_eq!(code(&cache, key("a"), b"one"), (b"one".to_vec(), true));
        assert_eq!(code(&cache, key("a"), b"other"), (b"one".to_vec(), false));
        let newer = CodeKey { arch: Arch { major: 9, minor: 0 }, ..key("a") };
        assert_eq!(code(&cache, newer, b"two"), (b"two".to_vec(), true));
        assert!(code(&cache, CodeKey { compiler: (13, 1), ..key("a") }, b"three").1);
        assert!(code(&cache, key("b"), b"four").1);
        assert_eq!(cache.code(key("c"), || Err::<Vec<u8>, _>("does not compile")), Err("does not compile"));
        fs::remove_dir_all(cache.folder).expect("the cache's folder");
    }

    /// Every byte that is changed, and every length a file is cut to.
    #[test]
    fn broken_files_are_not_used() {
        let cache = CodeCache::new(folder("broken"), 1 << 20);
        code(&cache, key("text"), b"code");
        let entry = cache.folder.read_dir().expect("a folder").flatten().next().expect("a file").path();
        let whole = fs::read(&entry).expect("a file");
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert_eq!(code_of(&wrong, &key("text").bytes()), None);
            assert_eq!(code_of(&whole[..at], &key("text").bytes()), None);
        }
        // A file of another text at the same place.
        assert_eq!(code_of(&whole, &key("next").bytes()), None);
        fs::write(&entry, b"nothing").expect("a file is written");
        assert_eq!(code(&cache, key("text"), b"again"), (b"again".to_vec(), true));
        assert_eq!(code(&cache, key("text"), b"other"), (b"again".to_vec(), false));
        fs::remove_dir_all(cache.folder).expect("the cache's folder");
    }

    #[test]
    fn a_cache_stays_small() {
        let cache = CodeCache::new(folder("small"), 1000);
        for i in 0..20 {
            code(&cache, key(&i.to_string()), &[0; 100]);
            let files = cache.folder.read_dir().expect("a folder").flatten();
            let bytes: u64 = files.map(|file| file.metadata().expect("a file").len()).sum();
            assert!(bytes <= 1000 && (i < 4 || bytes > 500), "{i} {bytes}");
        }
        fs::remove_dir_all(cache.folder).expect("the cache's folder");
    }

    /// A folder that cannot be made: code is compiled each time.
    #[test]
    fn without_a_folder_there_is_still_code() {
        let file = folder("file");
        fs::write(&file, b"").expect("a file is written");
        let cache = CodeCache::new(file.join("within"), 1000);
        assert_eq!(code(&cache, key("a"), b"one"), (b"one".to_vec(), true));
        assert_eq!(code(&cache, key("a"), b"two"), (b"two".to_vec(), true));
        fs::remove_file(file).expect("the file");
    }
}

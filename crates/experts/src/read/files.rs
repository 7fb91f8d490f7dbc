//! The files that experts are read from, and how each is read: past the page cache or through it.
//!
//! Invariant: what is read comes from the file that was opened, as it was then. A file whose size, time of change or
//! identity under its path differs is an error, found out when a read fails and about once a second besides. A path that
//! is gone is none: the open file is whole.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::{BLOCK, ReadError};

/// How often files are looked at while reads succeed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the user wants of the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IoMode {
    /// Direct reads where the file has them, else buffered ones.
    #[default]
    Auto,
    /// Direct reads, or an error.
    Direct,
    /// Reads through the page cache.
    Buffered,
}

/// Files that stay open for reading.
#[derive(Debug)]
pub struct Files {
    files: Vec<OpenFile>,
    #[cfg(test)]
    pub(super) meddler: Mutex<Option<super::tests::Meddler>>,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
    mark: Mark,
    /// Why it is read through the page cache, if it is.
    buffered: Option<String>,
    looked: Mutex<Instant>,
}

impl Files {
    /// Opens `paths`; a part of a read names one by its index here.
    ///
    /// # Errors
    /// A file that can't be opened; one without direct reads where `mode` insists on them.
    pub fn open<P: AsRef<Path>>(paths: &[P], mode: IoMode) -> Result<Arc<Files>, ReadError> {
        let files = paths.iter().map(|path| OpenFile::open(path.as_ref(), mode)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Files {
            files,
            #[cfg(test)]
            meddler: Mutex::new(None),
        }))
    }

    /// "direct", or "buffered" and why.
    pub fn describe(&self) -> String {
        match self.files.iter().filter_map(|file| file.buffered.as_deref()).collect::<Vec<_>>()[..] {
            [] => "direct".to_owned(),
            [why, ..] if self.files.iter().all(|file| file.buffered.is_some()) => format!("buffered ({why})"),
            [why, ..] => format!("partly direct, partly buffered ({why})"),
        }
    }

    /// Whether every file is read past the page cache.
    pub fn direct(&self) -> bool {
        self.files.iter().all(|file| file.buffered.is_none())
    }

    /// Bytes of `file` when it was opened.
    pub fn size(&self, file: usize) -> u64 {
        self.files[file].mark.size
    }

    #[cfg(target_os = "linux")]
    pub(super) fn handles(&self) -> Vec<std::os::fd::RawFd> {
        self.files.iter().map(|file| std::os::fd::AsRawFd::as_raw_fd(&file.file)).collect()
    }

    /// Refuses bytes that the file had not when it was opened, and now and then a file that has changed since.
    pub(super) fn admit(&self, file: usize, offset: u64, len: usize) -> Result<(), ReadError> {
        let open = &self.files[file];
        let size = open.mark.size;
        if offset.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(ReadError::BeyondEnd { path: open.path.clone(), offset, len, size });
        }
        let mut looked = open.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        match open.change() {
            None => *looked = Instant::now(),
            Some(change) => return Err(ReadError::Changed { path: open.path.clone(), change, offset, len }),
        }
        Ok(())
    }

    /// One positional read: the bytes that came, none at the file's end.
    pub(super) fn read_at(&self, file: usize, into: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        use std::os::unix::fs::FileExt;
        #[cfg(unix)]
        let result = self.files[file].file.read_at(into, offset);
        #[cfg(windows)]
        let result = std::os::windows::fs::FileExt::seek_read(&self.files[file].file, into, offset);
        self.meddle(offset, result)
    }

    /// What came of a read, which tests can change.
    #[cfg_attr(not(test), expect(clippy::unused_self))]
    pub(super) fn meddle(&self, _offset: u64, result: io::Result<usize>) -> io::Result<usize> {
        #[cfg(test)]
        {
            let meddler = self.meddler.lock().unwrap().clone();
            if let Some(meddler) = meddler {
                return (meddler.0)(_offset, result);
            }
        }
        result
    }

    /// How far a read of `file` is that had `got` bytes when `more` came; `None` where it can't get on.
    ///
    /// A direct read goes on at a whole block, so less than one is no progress.
    pub(super) fn progress(&self, file: usize, got: usize, more: usize) -> Option<usize> {
        let direct = self.files[file].buffered.is_none();
        let now = if direct { (got + more) / BLOCK * BLOCK } else { got + more };
        (now > got).then_some(now)
    }

    /// Why a read failed: the file has changed, the system said so, or the file ended.
    pub(super) fn explain(
        &self,
        file: usize,
        offset: u64,
        len: usize,
        error: Option<io::Error>,
    ) -> ReadError {
        let open = &self.files[file];
        let path = open.path.clone();
        match open.change() {
            Some(change) => ReadError::Changed { path, change, offset, len },
            None => {
                let source = error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
                ReadError::Io { path, offset, len, source }
            }
        }
    }

    pub(super) fn stalled(&self, file: usize, offset: u64, len: usize, after: Duration) -> ReadError {
        ReadError::Stalled { path: self.files[file].path.clone(), offset, len, seconds: after.as_secs() }
    }
}

impl OpenFile {
    fn open(path: &Path, mode: IoMode) -> Result<OpenFile, ReadError> {
        let failed = |source| ReadError::Open { path: path.to_owned(), source };
        let direct = match mode {
            IoMode::Buffered => Err("as asked".to_owned()),
            IoMode::Auto | IoMode::Direct => direct::open(path).map_err(failed)?,
        };
        let (file, buffered) = match direct {
            Ok(file) => (file, None),
            Err(reason) if mode == IoMode::Direct => {
                return Err(ReadError::NotDirect { path: path.to_owned(), reason });
            }
            Err(reason) => {
                let file = File::open(path).map_err(failed)?;
                // Readahead asks for little more than its own window at once, however much is wanted.
                #[cfg(target_os = "linux")]
                let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
                (file, Some(reason))
            }
        };
        let mark = Mark::of(&file.metadata().map_err(failed)?);
        Ok(OpenFile { path: path.to_owned(), file, mark, buffered, looked: Mutex::new(Instant::now()) })
    }

    /// What happened to the file since it was opened.
    fn change(&self) -> Option<String> {
        let now = match self.file.metadata() {
            Ok(metadata) => Mark::of(&metadata),
            Err(error) => return Some(format!("became unreadable ({error})")),
        };
        if now.size != self.mark.size {
            return Some(format!("changed its size from {} to {} bytes", self.mark.size, now.size));
        }
        if now.modified != self.mark.modified {
            return Some("was written to".to_owned());
        }
        let named = std::fs::metadata(&self.path).ok().map(|metadata| Mark::of(&metadata));
        named.is_some_and(|named| named != now).then(|| "was replaced".to_owned())
    }
}

/// What tells a file from another, or from itself after a change.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    size: u64,
    modified: Option<SystemTime>,
    /// Device and inode, where there are such.
    identity: Option<(u64, u64)>,
}

impl Mark {
    fn of(metadata: &Metadata) -> Mark {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Mark { size: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// Opening past the page cache: a file, or why it can't be had so.
#[cfg(target_os = "linux")]
mod direct {
    use super::{BLOCK, File, Path, io};
    use rustix::fs::{AtFlags, OFlags, StatxFlags, fstatfs, statx};
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    /// `f_type` of file systems that are memory; some take the flag for direct reads and ignore it.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

    pub(super) fn open(path: &Path) -> io::Result<Result<File, String>> {
        let flags = OFlags::DIRECT.bits() as i32;
        let file = match File::options().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(Err("its file system has no direct reads".to_owned()));
            }
            Err(error) => return Err(error),
        };
        if fstatfs(&file).is_ok_and(|fs| IN_MEMORY.contains(&(fs.f_type as u64))) {
            return Ok(Err("its file system is memory".to_owned()));
        }
        if let Ok(stat) = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
            && stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0
        {
            let needs = stat.stx_dio_offset_align.max(stat.stx_dio_mem_align) as usize;
            if needs == 0 {
                return Ok(Err("its file system has no direct reads".to_owned()));
            }
            if needs > BLOCK {
                return Ok(Err(format!("its direct reads need blocks of {needs} bytes")));
            }
        }
        // Some file systems take the flag and refuse the reads.
        let mut block = memmap2::MmapMut::map_anon(BLOCK)?;
        match file.read_at(&mut block, 0) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Ok(Err("its file system refuses direct reads".to_owned()))
            }
            _ => Ok(Ok(file)),
        }
    }
}

#[cfg(target_vendor = "apple")]
mod direct {
    use super::{File, Path, io};

    pub(super) fn open(path: &Path) -> io::Result<Result<File, String>> {
        let file = File::open(path)?;
        Ok(match rustix::fs::fcntl_nocache(&file, true) {
            Ok(()) => Ok(file),
            Err(error) => Err(format!("its file system always caches: {error}")),
        })
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod direct {
    use super::{File, Path, io};

    pub(super) fn open(_path: &Path) -> io::Result<Result<File, String>> {
        Ok(Err("direct reads are not known on this system".to_owned()))
    }
}

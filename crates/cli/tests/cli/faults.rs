//! A disk that fails while experts are read.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::budget::{model, running};
use crate::support::{Ran, arg, skipped};

/// A file system in a file, mounted; taken down when dropped.
struct Disk {
    image: PathBuf,
    mounted: PathBuf,
}

fn done(command: &str, args: &[&str]) -> bool {
    Command::new(command).args(args).output().is_ok_and(|o| o.status.success())
}

impl Disk {
    /// One that holds a copy of the model and nothing in memory, or a loud note that the test is skipped.
    fn new(folder: &Path) -> Option<Disk> {
        let (image, mounted) = (folder.join("disk.img"), folder.join("mounted"));
        fs::create_dir(&mounted).unwrap();
        File::create(&image).unwrap().set_len(320 << 20).unwrap();
        if !done("mkfs.ext4", &["-q", "-F", arg(&image)]) {
            skipped("mkfs.ext4 is not there, so there is no disk to break");
            return None;
        }
        let disk = Disk { image, mounted };
        if !disk.mount() {
            skipped("this process may not mount a file, so there is no disk to break");
            return None;
        }
        fs::copy(model(), disk.model()).unwrap();
        // Mounted anew, nothing of it is in the page cache.
        assert!(done("umount", &[arg(&disk.mounted)]) && disk.mount());
        Some(disk)
    }

    fn mount(&self) -> bool {
        done("mount", &["-o", "loop", arg(&self.image), arg(&self.mounted)])
    }

    fn model(&self) -> PathBuf {
        self.mounted.join("model.gguf")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", arg(&self.mounted)]).output();
    }
}

#[test]
fn a_disk_that_fails_is_an_error_that_names_file_layer_expert_and_offset() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Some(disk) = Disk::new(dir.path()) else { return };
    let child = running(&disk.model());
    // Reads past the end of a loop device's file fail with EIO. What is no expert lies in the first part and is in memory.
    File::options().write(true).open(&disk.image).unwrap().set_len(120 << 20).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 1, "{ran:?}");
    let last = ran.err.lines().last().unwrap_or_default();
    for part in ["error: ", "layer ", "expert ", "model.gguf", "os error 5"] {
        assert!(last.contains(part), "{part} is missing: {last}");
    }
}

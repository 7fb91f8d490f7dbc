//! The memory that this process may take: what the machine has free, the limits of the control groups it is in, and its limit of
//! address space, whichever leaves least.
//!
//! Invariant: nothing here trusts what it reads. A file that is missing or makes no sense sets no limit; if no limit can be read
//! at all there is no answer, and the caller has to be told a size.

use std::fs;
use std::path::{Component, Path, PathBuf};

const MIB: u64 = 1 << 20;

/// Memory that can be taken, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// Bytes, less the margin.
    pub bytes: u64,
    /// What leaves no more: `free memory of the machine`, `memory.max of cgroup /a/b`.
    pub limited_by: String,
    /// Bytes that are left to others: page tables and the page cache of a control group, other processes of a machine.
    pub margin: u64,
}

/// The memory that this process may take, or `None` where the system doesn't tell.
pub fn available() -> Option<Available> {
    available_under(Path::new("/"))
}

/// As [`available`], of the system whose `/proc` and control groups lie under `root`.
pub fn available_under(root: &Path) -> Option<Available> {
    let found = [machine(root), address_space(root)].into_iter().flatten();
    let found = found.chain(group_v2(root)).chain(groups_v1(root));
    found.min_by_key(|a| a.bytes)
}

impl Available {
    /// What the machine has free. Other processes will want some of it.
    fn of_machine(bytes: u64, limited_by: &str) -> Available {
        Available::less(bytes, (bytes / 20).max(256 * MIB), limited_by.to_owned())
    }

    /// What a limit that is this process's own, or its group's, leaves. What the kernel keeps for the process counts too.
    fn of_limit(limit: u64, used: u64, limited_by: String) -> Available {
        Available::less(limit.saturating_sub(used), (limit / 50).clamp(16 * MIB, 256 * MIB), limited_by)
    }

    fn less(bytes: u64, margin: u64, limited_by: String) -> Available {
        Available { bytes: bytes.saturating_sub(margin), limited_by, margin }
    }
}

/// `MemAvailable`: free memory and what the page cache could give back.
fn machine(root: &Path) -> Option<Available> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    Some(Available::of_machine(kib(&text, "MemAvailable:")?, "free memory of the machine"))
}

/// The limit of address space (`ulimit -v`), less what is mapped and not resident: a plan counts only resident bytes.
fn address_space(root: &Path) -> Option<Available> {
    let limits = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let line = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    let limit = line.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let mapped = kib(&status, "VmSize:").unwrap_or(0).saturating_sub(kib(&status, "VmRSS:").unwrap_or(0));
    Some(Available::of_limit(limit, mapped, "the limit of address space (ulimit -v)".to_owned()))
}

/// The number of a line `KEY   123 kB`, in bytes.
fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The number of a line `KEY 123`.
fn stat(text: &str, key: &str) -> Option<u64> {
    let (_, value) = text.lines().filter_map(|l| l.split_once(' ')).find(|(k, _)| *k == key)?;
    value.trim().parse().ok()
}

/// A file with one number; `max` and what makes no sense are `None`.
fn number(path: PathBuf) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A group's folder and those above it, up to where the hierarchy is mounted.
struct Hierarchy {
    mounted: PathBuf,
    group: PathBuf,
}

impl Hierarchy {
    /// The group that `proc/self/cgroup` names on the line that `line` picks, in the mount that `mount` picks by its filesystem
    /// and options.
    fn find(
        root: &Path,
        line: impl Fn(&str, &str) -> bool,
        mount: impl Fn(&str, &str) -> bool,
    ) -> Option<Hierarchy> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
        let group = groups.lines().find_map(|l| {
            let mut parts = l.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            line(number, controllers).then_some(path)
        })?;
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
        let (top, point) = mounts.lines().find_map(|l| {
            let (left, right) = l.split_once(" - ")?;
            let mut right = right.split(' ');
            let (kind, _source, options) = (right.next()?, right.next()?, right.next()?);
            let mut left = left.split(' ').skip(3);
            mount(kind, options).then_some((unescaped(left.next()?), unescaped(left.next()?)))
        })?;
        let mounted = root.join(point.trim_start_matches('/'));
        // A container sees its own group as the mount's root, and may be named a path outside of it.
        let below = Path::new(group).strip_prefix(&top).unwrap_or(Path::new(""));
        let below = below.strip_prefix("/").unwrap_or(below);
        let plain = below.components().all(|c| matches!(c, Component::Normal(_)));
        let group = if plain { mounted.join(below) } else { mounted.clone() };
        Some(Hierarchy { mounted, group })
    }

    /// The folders from the group up to the mount, each with its name.
    fn levels(&self) -> impl Iterator<Item = (&Path, String)> {
        let above = self.group.ancestors().take_while(|p| p.starts_with(&self.mounted));
        above.map(|p| (p, format!("/{}", p.strip_prefix(&self.mounted).unwrap_or(p).display())))
    }
}

/// A path of mountinfo, where a space is `\040`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

/// Pages of files that the kernel drops before it says that a group has no more memory.
fn reclaimable(folder: &Path, prefix: &str) -> u64 {
    let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let part = |key: &str| stat(&text, &format!("{prefix}{key}")).unwrap_or(0);
    part("inactive_file").saturating_add(part("active_file"))
}

/// `memory.max` and `memory.high` of the unified hierarchy, each of every group above.
fn group_v2(root: &Path) -> Vec<Available> {
    let Some(hierarchy) = Hierarchy::find(root, |number, _| number == "0", |kind, _| kind == "cgroup2")
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (folder, name) in hierarchy.levels() {
        let used = number(folder.join("memory.current")).unwrap_or(0);
        let used = used.saturating_sub(reclaimable(folder, ""));
        for file in ["memory.max", "memory.high"] {
            if let Some(limit) = number(folder.join(file)) {
                found.push(Available::of_limit(limit, used, format!("{file} of cgroup {name}")));
            }
        }
    }
    found
}

/// `memory.limit_in_bytes` of the memory controller's own hierarchy, of every group above, also of those that can't be seen from
/// here.
fn groups_v1(root: &Path) -> Vec<Available> {
    let names = |list: &str| list.split(',').any(|name| name == "memory");
    let hierarchy =
        Hierarchy::find(root, |_, list| names(list), |kind, options| kind == "cgroup" && names(options));
    let Some(hierarchy) = hierarchy else { return Vec::new() };
    let mut found = Vec::new();
    for (folder, name) in hierarchy.levels() {
        let used = number(folder.join("memory.usage_in_bytes")).unwrap_or(0);
        let used = used.saturating_sub(reclaimable(folder, "total_"));
        let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let limits = [
            ("memory.limit_in_bytes", number(folder.join("memory.limit_in_bytes"))),
            ("hierarchical_memory_limit", stat(&text, "hierarchical_memory_limit")),
        ];
        for (file, limit) in limits {
            if let Some(limit) = limit {
                found.push(Available::of_limit(limit, used, format!("{file} of cgroup {name}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const GIB: u64 = 1 << 30;
    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    /// A root folder with these files.
    fn system(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn found(files: &[(&str, &str)]) -> Option<Available> {
        available_under(system(files).path())
    }

    const FREE: (&str, &str) =
        ("proc/meminfo", "MemTotal:  33554432 kB\nMemFree: 1 kB\nMemAvailable:   20971520 kB\n");

    #[test]
    fn without_limits_the_machines_free_memory_less_a_share_is_available() {
        let a = found(&[FREE]).unwrap();
        assert_eq!((a.bytes, a.margin), (19 * GIB, GIB));
        assert_eq!(a.limited_by, "free memory of the machine");
        let little = found(&[("proc/meminfo", "MemAvailable: 1048576 kB\n")]).unwrap();
        assert_eq!(little.bytes, GIB - 256 * MIB);
        let less = found(&[("proc/meminfo", "MemAvailable: 1024 kB\n")]).unwrap();
        assert_eq!(less.bytes, 0);
    }

    #[test]
    fn nothing_readable_is_no_answer() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("proc/meminfo", "MemTotal: 5 kB\n")]), None);
        assert_eq!(
            found(&[("proc/meminfo", "MemAvailable: many kB\n"), ("proc/self/cgroup", "::::\n0\n")]),
            None
        );
    }

    #[test]
    fn the_narrowest_group_of_the_unified_hierarchy_counts_and_page_cache_is_free() {
        let max = (4 * GIB).to_string();
        let used = (3 * GIB).to_string();
        let stat = format!("anon 1\nfile {0}\ninactive_file {1}\nactive_file {1}\nshmem 9\n", 3 * GIB, GIB);
        let a = found(&[
            FREE,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/outer/memory.max", &max),
            ("sys/fs/cgroup/outer/memory.high", "max\n"),
            ("sys/fs/cgroup/outer/memory.current", &used),
            ("sys/fs/cgroup/outer/memory.stat", &stat),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/memory.current", "5\n"),
        ])
        .unwrap();
        assert_eq!(a.limited_by, "memory.max of cgroup /outer");
        assert_eq!(a.margin, 4 * GIB / 50);
        assert_eq!(a.bytes, 3 * GIB - a.margin);
    }

    #[test]
    fn memory_high_is_a_limit_too() {
        let a = found(&[
            FREE,
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/a/memory.high", "1073741824\n"),
        ])
        .unwrap();
        assert_eq!(a.limited_by, "memory.high of cgroup /a");
        assert_eq!(a.bytes, GIB - GIB / 50);
    }

    #[test]
    fn nested_groups_of_the_memory_controller_are_walked_up() {
        let unlimited = "9223372036854771712\n";
        let stat = format!("total_inactive_file {GIB}\ntotal_active_file {GIB}\ninactive_file 7\n");
        let a = found(&[
            FREE,
            ("proc/self/cgroup", "5:devices:/\n4:cpu,memory:/job/step\n0::/\n"),
            ("proc/self/mountinfo", V1),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8589934592\n"),
            ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "5368709120\n"),
            ("sys/fs/cgroup/memory/job/memory.stat", &stat),
            ("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", unlimited),
        ])
        .unwrap();
        assert_eq!(a.limited_by, "memory.limit_in_bytes of cgroup /job");
        assert_eq!(a.bytes, 5 * GIB - 8 * GIB / 50);
    }

    #[test]
    fn a_limit_above_what_a_container_sees_is_found_in_the_statistics() {
        let a = found(&[
            FREE,
            ("proc/self/cgroup", "4:memory:/docker/abc\n"),
            (
                "proc/self/mountinfo",
                "1 2 0:3 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n"),
            ("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 2147483648\n"),
        ])
        .unwrap();
        assert_eq!(a.limited_by, "hierarchical_memory_limit of cgroup /");
        assert_eq!(a.bytes, GIB - 2 * GIB / 50);
    }

    #[test]
    fn a_group_that_is_named_outside_of_its_mount_is_the_mounts_root() {
        for (group, top) in [("/../../other", "/"), ("/elsewhere", "/mine"), ("/a b", "/a\\040b")] {
            let mounts = format!("1 2 0:3 {top} /sys/fs/c\\040g rw - cgroup2 cgroup2 rw\n");
            let a = found(&[
                FREE,
                ("proc/self/cgroup", &format!("0::{group}\n")),
                ("proc/self/mountinfo", &mounts),
                ("sys/fs/c g/memory.max", "1073741824\n"),
            ])
            .unwrap();
            assert_eq!(a.limited_by, "memory.max of cgroup /", "{group}");
        }
    }

    #[test]
    fn more_in_use_than_allowed_leaves_nothing() {
        let a = found(&[
            FREE,
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/memory.max", "1000\n"),
            ("sys/fs/cgroup/memory.current", "18446744073709551615\n"),
            ("sys/fs/cgroup/memory.stat", "inactive_file x\nactive_file 18446744073709551616\n\n \n"),
        ]);
        assert_eq!(a.unwrap().bytes, 0);
    }

    #[test]
    fn groups_that_make_no_sense_set_no_limit() {
        for text in ["", "abc", "-1", "1e9", "\u{0}", "max max"] {
            let a = found(&[
                FREE,
                ("proc/self/cgroup", "garbage\n4:memory:/x\n0::/x\n"),
                ("proc/self/mountinfo", &format!("- - -\nnonsense\n - cgroup2\n{V1}{V2}")),
                ("sys/fs/cgroup/memory.max", text),
                ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", text),
            ]);
            assert_eq!(a.unwrap().bytes, 19 * GIB, "{text:?}");
        }
    }

    #[test]
    fn a_limit_of_address_space_leaves_what_is_not_mapped_yet() {
        let limits = |soft: &str| {
            format!(
                "Limit      Soft Limit  Hard Limit  Units\nMax address space   {soft}   unlimited   bytes\n"
            )
        };
        let status = ("proc/self/status", "VmSize:\t 1048576 kB\nVmRSS:\t 524288 kB\n");
        let a = found(&[FREE, ("proc/self/limits", &limits("4294967296")), status]).unwrap();
        assert_eq!(a.limited_by, "the limit of address space (ulimit -v)");
        assert_eq!(a.bytes, 4 * GIB - GIB / 2 - 4 * GIB / 50);
        let a = found(&[FREE, ("proc/self/limits", &limits("unlimited")), status]).unwrap();
        assert_eq!(a.bytes, 19 * GIB);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_an_answer() {
        assert!(available().unwrap().bytes > 0);
    }
}
